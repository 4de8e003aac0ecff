#pragma once

#include <dflow/base/philox.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

/// The distributions of random ops, as functions of a stream that run on every device. Included by units that nvcc
/// compiles.
namespace dflow {

/// The type in which values of an element type are computed.
template <class T>
using RandomCompute = std::conditional_t<sizeof(T) == 8, double, float>;

// A distribution makes `values_per_group` values from the stream. Each group's part begins `groups_apart` groups of
// words after the part before. The rules are TensorFlow's (random_distributions.h), so that the bits are.

template <class T>
struct UniformDistribution {
  static constexpr int values_per_group = sizeof(T) == 8 ? 2 : 4;
  static constexpr std::uint64_t groups_apart = 1;
  static constexpr double cost_ns = 15;

  DFLOW_FN void operator()(PhiloxStream& stream, T* values) const {
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

  static UniformIntDistribution between(T low, T high) {
    return {low, static_cast<Bits>(static_cast<Bits>(high) - static_cast<Bits>(low))};
  }

  DFLOW_FN void operator()(PhiloxStream& stream, T* values) const {
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

  DFLOW_FN void operator()(PhiloxStream& stream, T* values) const {
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
  /// Room for 256 words for each value, for float and double alike: words that a group does not use are skipped.
  static constexpr std::uint64_t groups_apart = values_per_group * 256 / 4;
  static constexpr double cost_ns = 100;

  DFLOW_FN void operator()(PhiloxStream& stream, T* values) const {
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

}  // namespace dflow
