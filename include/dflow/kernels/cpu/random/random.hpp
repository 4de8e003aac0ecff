#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/random_distributions.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/random/random.hpp>

#include <algorithm>
#include <cstdint>

namespace dflow {

namespace cpu {

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

template <class T>
struct Kernel<RandomUniform, Cpu, T> : detail::RandomKernel<RandomUniform, T, UniformDistribution<T>> {
  using detail::RandomKernel<RandomUniform, T, UniformDistribution<T>>::RandomKernel;
};

template <class T>
struct Kernel<RandomStandardNormal, Cpu, T> : detail::RandomKernel<RandomStandardNormal, T, NormalDistribution<T>> {
  using detail::RandomKernel<RandomStandardNormal, T, NormalDistribution<T>>::RandomKernel;
};

template <class T>
struct Kernel<TruncatedNormal, Cpu, T> : detail::RandomKernel<TruncatedNormal, T, TruncatedNormalDistribution<T>> {
  using detail::RandomKernel<TruncatedNormal, T, TruncatedNormalDistribution<T>>::RandomKernel;
};

template <class T>
struct Kernel<RandomUniformInt, Cpu, T> {
 public:
  explicit Kernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<RandomUniformInt>().seed, init.node.attrs_as<RandomUniformInt>().seed2) {}

  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.node.outputs[0]) * 6; }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const T low = context.input<T>(1).scalar(), high = context.input<T>(2).scalar();
    const auto distribution = UniformIntDistribution<T>::between(low, high);
    Tensor<T>& y = context.allocate_output<T>(0, shape);
    cpu::fill_random(context.pool(), stream_.reserve(shape.num_elements()), distribution, shape.num_elements(),
                     y.data());
  }

 private:
  detail::NodeStream stream_;
};

}  // namespace dflow
