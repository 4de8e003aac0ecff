#pragma once

#include <dflow/base/philox.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/inferred_shape.hpp>
#include <dflow/kernels/state/random_stream.hpp>
#include <dflow/ops/random/random.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace dflow {

namespace cpu {

/// What an element type is computed in.
template <class T>
using RandomCompute = std::conditional_t<sizeof(T) == 8, double, float>;

// A distribution makes `values_per_group` values from the stream, each group's part of which begins `groups_apart`
// groups of words after the one before. The rules are TensorFlow's (random_distributions.h), so that the bits are.

template <class T>
struct UniformDistribution {
  static constexpr int values_per_group = sizeof(T) == 8 ? 2 : 4;
  static constexpr std::uint64_t groups_apart = 1;
  static constexpr double cost_ns = 15;

  void operator()(PhiloxStream& stream, T* values) const {
    const PhiloxWords words = stream.next();
    for (int i = 0; i < values_per_group; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        values[i] = uniform_double(words[2 * i], words[2 * i + 1]);
      } else if constexpr (std::is_same_v<T, Half>) {
        values[i] = Half(static_cast<float>(words[i] & 0x3ffu) * 0x1p-10f);
      } else if constexpr (std::is_same_v<T, BFloat16>) {
        values[i] = BFloat16(static_cast<float>(words[i] & 0x7fu) * 0x1p-7f);
      } else {
        values[i] = uniform_float(words[i]);
      }
    }
  }
};

/// low + bits mod range; T is int32 or int64.
template <class T>
struct UniformIntDistribution {
  using Bits = std::make_unsigned_t<T>;
  static constexpr int values_per_group = sizeof(T) == 8 ? 2 : 4;
  static constexpr std::uint64_t groups_apart = 1;
  static constexpr double cost_ns = 20;

  T low;
  Bits range;

  void operator()(PhiloxStream& stream, T* values) const {
    const PhiloxWords words = stream.next();
    for (int i = 0; i < values_per_group; ++i) {
      Bits bits;
      if constexpr (sizeof(T) == 8) {
        bits = words[2 * i] | Bits{words[2 * i + 1]} << 32;
      } else {
        bits = words[i];
      }
      values[i] = static_cast<T>(static_cast<Bits>(low) + bits % range);
    }
  }
};

template <class T>
struct NormalDistribution {
  static constexpr int values_per_group = sizeof(T) == 8 ? 2 : 4;
  static constexpr std::uint64_t groups_apart = 1;
  static constexpr double cost_ns = 80;

  void operator()(PhiloxStream& stream, T* values) const {
    const PhiloxWords words = stream.next();
    if constexpr (std::is_same_v<T, double>) {
      const NormalPair<double> pair = normal_pair(words);
      values[0] = pair.first;
      values[1] = pair.second;
    } else {
      for (int i = 0; i < 4; i += 2) {
        const NormalPair<float> pair = normal_pair(words[i], words[i + 1]);
        values[i] = T(pair.first);
        values[i + 1] = T(pair.second);
      }
    }
  }
};

template <class T>
struct TruncatedNormalDistribution {
  static constexpr int values_per_group = sizeof(T) == 8 ? 2 : 4;
  /// Room for 256 words for each value of float and double alike: what a group does not use is skipped.
  static constexpr std::uint64_t groups_apart = values_per_group * 256 / 4;
  static constexpr double cost_ns = 100;

  void operator()(PhiloxStream& stream, T* values) const {
    int count = 0;
    const auto take = [&](RandomCompute<T> value) {
      if (std::abs(value) < 2 && count < values_per_group) values[count++] = T(value);
    };
    while (count < values_per_group) {
      const PhiloxWords words = stream.next();
      if constexpr (std::is_same_v<T, double>) {
        const NormalPair<double> pair = normal_pair(words);
        take(pair.first);
        take(pair.second);
      } else {
        for (int i = 0; i < 4; i += 2) {
          const NormalPair<float> pair = normal_pair(words[i], words[i + 1]);
          take(pair.first);
          take(pair.second);
        }
      }
    }
  }
};

/// y[0..n): value i depends on the stream's position and on i alone.
template <class T, class Distribution>
void fill_random(ThreadPool& pool, const PhiloxStream& stream, const Distribution& distribution, std::int64_t n, T* y) {
  constexpr std::int64_t per_group = Distribution::values_per_group;
  const std::int64_t groups = n / per_group + (n % per_group != 0 ? 1 : 0);
  pool.parallel_for(groups, Distribution::cost_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      PhiloxStream part = stream;
      part.skip(static_cast<std::uint64_t>(group) * Distribution::groups_apart);
      T* const to = y + group * per_group;
      if (n - group * per_group >= per_group) {
        distribution(part, to);
        continue;
      }
      T values[per_group];
      distribution(part, values);
      std::copy_n(values, n - group * per_group, to);
    }
  });
}

}  // namespace cpu

namespace detail {

/// A random op without parameters.
template <class O, class T, class Distribution>
class RandomKernel {
 public:
  explicit RandomKernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<O>().seed, init.node.attrs_as<O>().seed2) {}

  double cost_ns(const KernelInit& init) const {
    return 300 + estimated_elements(init.node.outputs[0]) * Distribution::cost_ns / Distribution::values_per_group;
  }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    Tensor<T>& y = context.allocate_output<T>(0, shape);
    cpu::fill_random(context.pool(), stream_.reserve(shape.num_elements()), Distribution{}, shape.num_elements(),
                     y.data());
  }

 private:
  NodeStream stream_;
};

}  // namespace detail

template <class T, class I>
struct Kernel<RandomUniform, Cpu, T, I> : detail::RandomKernel<RandomUniform, T, cpu::UniformDistribution<T>> {
  using detail::RandomKernel<RandomUniform, T, cpu::UniformDistribution<T>>::RandomKernel;
};

template <class T, class I>
struct Kernel<RandomStandardNormal, Cpu, T, I>
    : detail::RandomKernel<RandomStandardNormal, T, cpu::NormalDistribution<T>> {
  using detail::RandomKernel<RandomStandardNormal, T, cpu::NormalDistribution<T>>::RandomKernel;
};

template <class T, class I>
struct Kernel<TruncatedNormal, Cpu, T, I>
    : detail::RandomKernel<TruncatedNormal, T, cpu::TruncatedNormalDistribution<T>> {
  using detail::RandomKernel<TruncatedNormal, T, cpu::TruncatedNormalDistribution<T>>::RandomKernel;
};

template <class T, class I>
struct Kernel<RandomUniformInt, Cpu, T, I> {
 public:
  explicit Kernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<RandomUniformInt>().seed, init.node.attrs_as<RandomUniformInt>().seed2) {}

  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.node.outputs[0]) * 6; }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const T low = context.input<T>(1).scalar(), high = context.input<T>(2).scalar();
    using Bits = std::make_unsigned_t<T>;
    const cpu::UniformIntDistribution<T> distribution{
        low, static_cast<Bits>(static_cast<Bits>(high) - static_cast<Bits>(low))};
    Tensor<T>& y = context.allocate_output<T>(0, shape);
    cpu::fill_random(context.pool(), stream_.reserve(shape.num_elements()), distribution, shape.num_elements(),
                     y.data());
  }

 private:
  detail::NodeStream stream_;
};

}  // namespace dflow
