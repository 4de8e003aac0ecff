#pragma once

#include <dflow/base/cpu_features.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include "catch.hpp"

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

/// Shared by the tests of routines: operands, pools, options and comparison with a reference in double.
namespace dflow::cpu::test {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

/// The type in which references are computed.
template <class T>
struct WideOf {
  using type = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
};
template <class T>
struct WideOf<std::complex<T>> {
  using type = std::complex<double>;
};
template <class T>
using wide_t = typename WideOf<T>::type;

template <class T>
wide_t<T> wide(T x) {
  if constexpr (is_complex<T>) {
    return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  } else {
    return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
  }
}

/// The elements of an array in the type of references.
template <class T>
std::vector<wide_t<T>> wide_of(const std::vector<T>& values) {
  std::vector<wide_t<T>> all;
  for (const T& value : values) all.push_back(wide(value));
  return all;
}

/// Half the distance of 1 to the next larger number.
template <class T>
constexpr double unit_roundoff() {
  if constexpr (is_complex<T>) return unit_roundoff<typename T::value_type>();
  if constexpr (std::is_same_v<T, float>) return 0x1p-24;
  if constexpr (std::is_same_v<T, double>) return 0x1p-53;
  if constexpr (std::is_same_v<T, Half>) return 0x1p-11;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-8;
  return 0;
}

/// Operands that do not hide each other by rounding: uniform in [-1, 1], or small integers.
template <class T>
std::vector<T> random_values(std::int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<T> values(static_cast<std::size_t>(n));
  std::uniform_real_distribution<double> real(-1, 1);
  std::uniform_int_distribution<int> integer(std::is_signed_v<T> ? -9 : 0, 9);
  for (T& value : values) {
    if constexpr (is_complex<T>) {
      using Part = typename T::value_type;
      const double re = real(generator);
      value = T(static_cast<Part>(re), static_cast<Part>(real(generator)));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(integer(generator));
    } else {
      value = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(real(generator)));
    }
  }
  return values;
}

/// The type in which kernels compute values that are stored as T.
template <class T>
using computing_t = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// The largest allowed distance of an element of T from `expected`: `scale` roundings in the computing type of terms
/// of size `terms`. If T has fewer bits, the rounding of the stored result is added. The check then notices a sum that
/// is accumulated in a 16-bit type.
template <class T>
double largest_error(double expected, double terms, double scale) {
  double error = unit_roundoff<computing_t<T>>() * (scale * terms + 2 * expected);
  if constexpr (std::is_same_v<T, Half>) error += 1.01 * unit_roundoff<T>() * expected + 0x1p-25;
  if constexpr (std::is_same_v<T, BFloat16>) error += 1.01 * unit_roundoff<T>() * expected;
  return error;
}

/// CHECKs |got - expected| once for the whole array, against `largest_error` for terms of the sizes `terms(i)`.
/// Integers must agree modulo their width.
template <class T, class Terms>
void check_terms(const std::vector<T>& got, const std::vector<wide_t<T>>& expected, Terms&& terms, double scale,
                 const std::string& what) {
  INFO(what);
  REQUIRE(got.size() == expected.size());
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    bool same = false;
    if constexpr (std::is_integral_v<T>) {
      same = got[i] == static_cast<T>(expected[i]);
    } else {
      const auto g = wide(got[i]);
      const double error = std::abs(g - expected[i]);
      same = error <= largest_error<T>(std::abs(expected[i]), terms(i), scale) || g == expected[i];
      if constexpr (is_complex<T>) {
        same = same || (std::isnan(g.real()) && std::isnan(expected[i].real()));
      } else {
        same = same || (std::isnan(g) && std::isnan(expected[i]));
      }
    }
    if (!same && wrong++ == 0) first = i;
  }
  if (wrong > 0) {
    INFO("first at " << first << " of " << got.size() << ": got " << wide(got[first]) << ", expected "
                     << expected[first]);
    CHECK(wrong == 0);
  } else {
    CHECK(wrong == 0);
  }
}

/// The same for terms about as large as 1.
template <class T>
void check_close(const std::vector<T>& got, const std::vector<wide_t<T>>& expected, double scale,
                 const std::string& what) {
  check_terms(
      got, expected, [](std::size_t) { return 1.0; }, scale, what);
}

/// The same for results without cancellation: the error is relative to each result, however small.
template <class T>
void check_relative(const std::vector<T>& got, const std::vector<wide_t<T>>& expected, double scale,
                    const std::string& what) {
  const auto itself = [&](std::size_t i) {
    if constexpr (std::is_integral_v<T>) {
      return 0.0;
    } else {
      return std::abs(expected[i]);
    }
  };
  check_terms(got, expected, itself, scale, what);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline std::vector<CpuLevel> levels_here() {
  std::vector<CpuLevel> levels;
  for (CpuLevel level : {CpuLevel::baseline, CpuLevel::x86_64_v3, CpuLevel::x86_64_v4}) {
    if (level <= detect_cpu_level()) levels.push_back(level);
  }
  return levels;
}

/// Every level of this machine with the loops here, and oneDNN if it is there; without and with a cache.
inline std::vector<CpuOptions> all_options(KernelCache* cache) {
  std::vector<CpuOptions> all;
  for (CpuLevel level : levels_here()) {
    all.push_back({.backend = CpuBackend::builtin, .max_level = level, .cache = all.empty() ? nullptr : cache});
  }
  if (has_onednn()) all.push_back({.backend = CpuBackend::onednn, .cache = cache});
  all.push_back({.cache = cache});
  return all;
}

inline std::string name_of(const CpuOptions& options) {
  const char* backends[] = {"automatic", "builtin", "onednn"};
  return std::string(backends[static_cast<int>(options.backend)]) + " at most " +
         std::string(cpu_level_name(options.max_level));
}

}  // namespace dflow::cpu::test
