#include "cuda/recorded_transform.hpp"

#include <dflow/base/str_cat.hpp>
#include <dflow/core/dtype.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace dflow::testing {

using cuda::MemoryUse;
using cuda::TransformCall;
using cuda::TransformKind;

namespace {

using Wide = std::complex<double>;

std::int64_t half_of(const TransformCall& call) { return call.length / 2 + 1; }

/// to[k] = the sum of from[j] exp(sign 2 pi i j k / n) for k below `count`.
std::vector<Wide> transformed(const std::vector<Wide>& from, double sign, std::size_t count) {
  const std::size_t n = from.size();
  std::vector<Wide> roots(n), to(count);
  for (std::size_t j = 0; j < n; ++j) {
    roots[j] = std::polar(1.0, sign * 2 * 3.14159265358979323846 * static_cast<double>(j) / static_cast<double>(n));
  }
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t j = 0, at = 0; j < n; ++j, at = (at + k) % n) to[k] += from[j] * roots[at];
  }
  return to;
}

template <class R>
void compute(const TransformCall& call, void* from, void* to) {
  using C = std::complex<R>;
  const auto n = static_cast<std::size_t>(call.length), half = static_cast<std::size_t>(half_of(call));
  const R nan = std::numeric_limits<R>::quiet_NaN();
  for (std::size_t line = 0; line < static_cast<std::size_t>(call.batch); ++line) {
    std::vector<Wide> x(n);
    switch (call.kind) {
      case TransformKind::real_forward: {
        for (std::size_t j = 0; j < n; ++j) x[j] = static_cast<const R*>(from)[line * n + j];
        const auto y = transformed(x, -1, half);
        for (std::size_t k = 0; k < half; ++k) static_cast<C*>(to)[line * half + k] = C(y[k]);
        break;
      }
      case TransformKind::real_backward: {
        C* const given = static_cast<C*>(from) + line * half;
        for (std::size_t k = 0; k < half; ++k) {
          x[k] = Wide(given[k]);
          if (k != 0 && 2 * k != n) x[n - k] = std::conj(x[k]);
          given[k] = C(nan, nan);
        }
        const auto y = transformed(x, 1, n);
        for (std::size_t j = 0; j < n; ++j) static_cast<R*>(to)[line * n + j] = static_cast<R>(y[j].real());
        break;
      }
      default: {
        for (std::size_t j = 0; j < n; ++j) x[j] = Wide(static_cast<const C*>(from)[line * n + j]);
        const auto y = transformed(x, call.kind == TransformKind::forward ? -1 : 1, n);
        for (std::size_t j = 0; j < n; ++j) static_cast<C*>(to)[line * n + j] = C(y[j]);
      }
    }
  }
}

}  // namespace

std::string what_is_wrong_with(const TransformCall& call) {
  if (!is_complex(call.dtype)) return str_cat("coefficients of type ", dtype_name(call.dtype));
  if (call.length < 1 || call.batch < 1) return "lines without elements, or none";
  return {};
}

std::size_t workspace_of(const TransformCall& call) {
  return static_cast<std::size_t>(call.length % 5 == 0 ? 0 : call.length * 16 + 256);
}

std::vector<MemoryUse> memory_of(const TransformCall& call, void* from, void* to) {
  const std::size_t complex = size_of(call.dtype), real = complex / 2;
  const auto bytes = [&](std::int64_t length, std::size_t each) {
    return static_cast<std::size_t>(length * call.batch) * each;
  };
  switch (call.kind) {
    case TransformKind::real_forward:
      return {{from, bytes(call.length, real), false}, {to, bytes(half_of(call), complex), true}};
    case TransformKind::real_backward:
      return {{from, bytes(half_of(call), complex), true}, {to, bytes(call.length, real), true}};
    default:
      return {{from, bytes(call.length, complex), false}, {to, bytes(call.length, complex), true}};
  }
}

void compute_transform(const TransformCall& call, void* from, void* to) {
  if (call.dtype == DType::complex64) return compute<float>(call, from, to);
  compute<double>(call, from, to);
}

}  // namespace dflow::testing
