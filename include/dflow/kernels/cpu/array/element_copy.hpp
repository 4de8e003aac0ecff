#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

/// Shared by kernels that move elements without reading them: one body for all element types, strings included.
namespace dflow::detail {

inline const void* element(const AnyTensor& tensor, std::int64_t i) {
  return static_cast<const std::byte*>(tensor.raw_data()) + static_cast<std::size_t>(i) * size_of(tensor.dtype());
}
inline void* element(AnyTensor& tensor, std::int64_t i) {
  return static_cast<std::byte*>(tensor.raw_data()) + static_cast<std::size_t>(i) * size_of(tensor.dtype());
}

/// For a kernel that divides its work only if the elements are no strings.
struct SplitsUnlessStrings {
  static bool splits(const KernelInit& init) { return init.node.types[0] != DType::string; }
};

/// `f(std::integral_constant<std::size_t, bytes>())` with the size of an element that is no string.
template <class F>
auto with_element_bytes(DType dtype, const F& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(std::integral_constant<std::size_t, 1>());
    case 2:
      return f(std::integral_constant<std::size_t, 2>());
    case 4:
      return f(std::integral_constant<std::size_t, 4>());
    case 8:
      return f(std::integral_constant<std::size_t, 8>());
    default:
      return f(std::integral_constant<std::size_t, 16>());
  }
}

/// to[0, n) = from[0, n) in the calling thread.
inline void copy_elements(DType dtype, std::int64_t n, const void* from, void* to) {
  if (n == 0) return;
  if (dtype == DType::string) {
    std::copy_n(static_cast<const std::string*>(from), n, static_cast<std::string*>(to));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(n) * size_of(dtype));
  }
}

/// to[0, n) = zeros, or empty strings.
inline void clear_elements(DType dtype, std::int64_t n, void* to) {
  if (n == 0) return;
  if (dtype == DType::string) {
    std::fill_n(static_cast<std::string*>(to), n, std::string());
  } else {
    std::memset(to, 0, static_cast<std::size_t>(n) * size_of(dtype));
  }
}

/// to[0, n) = *value; `value` is outside of `to`.
inline void fill_elements(DType dtype, std::int64_t n, const void* value, void* to) {
  if (n == 0) return;
  if (dtype == DType::string) {
    std::fill_n(static_cast<std::string*>(to), n, *static_cast<const std::string*>(value));
    return;
  }
  // A block grows by copies of itself, then is copied from the first-level cache.
  constexpr std::size_t block = 4096;
  const std::size_t bytes = static_cast<std::size_t>(n) * size_of(dtype);
  std::size_t filled = size_of(dtype);
  std::memcpy(to, value, filled);
  while (filled < bytes) {
    const std::size_t more = std::min({filled, bytes - filled, block});
    std::memcpy(static_cast<std::byte*>(to) + filled, to, more);
    filled += more;
  }
}

/// Nanoseconds for one element of a copy.
inline double copy_cost_ns(DType dtype) {
  return dtype == DType::string ? 20 : 0.1 * static_cast<double>(size_of(dtype));
}

/// The cost of a kernel that writes each element of output 0 once.
inline double move_cost_ns(const KernelInit& init) {
  const OutputInfo& y = init.node.outputs[0];
  return 300 + estimated_elements(y) * copy_cost_ns(y.dtype);
}

/// cpu::strided_copy for elements of any type; strides past the last dimension are ignored.
inline void strided_copy(const KernelContext& context, DType dtype, std::span<const std::int64_t> dims,
                         const void* from, std::span<const std::int64_t> from_strides, void* to,
                         std::span<const std::int64_t> to_strides) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  if (dtype != DType::string) {
    return cpu::strided_copy(context.pool(), size_of(dtype), dims, from, from_strides.first(dims.size()), to,
                             to_strides.first(dims.size()), cpu_options(context));
  }
  const auto* source = static_cast<const std::string*>(from);
  auto* target = static_cast<std::string*>(to);
  std::array<std::int64_t, max_rank> index{};
  for (;;) {
    *target = *source;
    std::size_t i = dims.size();
    for (; i-- > 0;) {
      source += from_strides[i];
      target += to_strides[i];
      if (++index[i] < dims[i]) break;
      source -= from_strides[i] * dims[i];
      target -= to_strides[i] * dims[i];
      index[i] = 0;
    }
    if (i == static_cast<std::size_t>(-1)) return;
  }
}

/// `count` elements of x from `begin` on as a tensor of that shape: x's own memory where it is aligned there, else a
/// copy.
inline void set_contiguous_part(KernelContext& context, int o, const AnyTensor& x, std::int64_t begin,
                                const Shape& shape) {
  const std::int64_t count = shape.num_elements();
  AnyTensor part = x.reshaped({x.num_elements()}).slice(begin, begin + count).reshaped(shape);
  if (part.is_aligned() || count == 0) return context.set_output(o, std::move(part));
  AnyTensor& copy = context.allocate_output(o, shape);
  const DType dtype = x.dtype();
  context.pool().parallel_for(count, copy_cost_ns(dtype), [&](std::int64_t first, std::int64_t last) {
    copy_elements(dtype, last - first, element(part, first), element(copy, first));
  });
}

}  // namespace dflow::detail
