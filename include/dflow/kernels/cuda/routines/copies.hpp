#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/cuda.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

/// For kernels of all element types that a GPU's memory holds: strings are objects of the host.
struct NoStrings {
  static bool supports(const TypeArgs& types) { return types[0] != DType::string; }
};

namespace detail {

/// The body for elements of that size.
template <template <int> class Body>
const KernelFunction& function_of_size(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return kernel_function<Body<1>>();
    case 2:
      return kernel_function<Body<2>>();
    case 4:
      return kernel_function<Body<4>>();
    case 8:
      return kernel_function<Body<8>>();
    default:
      return kernel_function<Body<16>>();
  }
}

}  // namespace detail

/// Every element of `y`, an output, becomes *value, which is in the GPU's memory, or `constant` if it is null.
void fill_output(const KernelContext& context, AnyTensor& y, const void* value, const Bits<16>& constant = {});
/// All bytes of `y`, an output, become 0.
void clear_output(const KernelContext& context, AnyTensor& y);

/// Elements of an input or an output: from `first` on, so many apart along each dimension.
struct StridedElements {
  const AnyTensor* tensor = nullptr;
  std::int64_t first = 0;
  std::array<std::int64_t, max_rank> strides{};
};
/// Copies a box of elements, from and to `temporaries` too.
void copy_strided(const KernelContext& context, const Shape& extents, const StridedElements& from,
                  const StridedElements& to, std::span<const AnyTensor* const> temporaries = {});
/// Output 0, of shape `shape`, is inputs `first` and on side by side along `axis`.
void join_rows(KernelContext& context, int first, int axis, const Shape& shape);
/// The outputs, of shape `shape` each, are x cut into equal parts along `axis`.
void cut_rows(KernelContext& context, const AnyTensor& x, int axis, const Shape& shape);

}  // namespace dflow::cuda
