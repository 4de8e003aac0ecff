#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dflow::detail {

// Kernels that touch no element, the same for every device and element type.

struct NoOpKernel {
  double cost_ns(const KernelInit&) const { return 5; }
  void operator()(KernelContext&) const {}
};

/// Output 0 is input 0, its elements shared.
struct ForwardKernel {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

/// The same, where the op's shape function accepts the shape.
struct PlaceholderWithDefaultKernel {
  PlaceholderWithDefault::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const {
    const AnyTensor& x = context.input(0);
    if (!attrs.shape.is_compatible_with(x.shape())) refuse_shapes(context);
    context.set_output(0, x);
  }
};

/// Output 0 is input 0 in the shape that the op infers, its elements shared.
struct ReshapeKernel {
  double cost_ns(const KernelInit&) const { return 150; }
  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    context.set_output(0, context.input(0).reshaped(shape));
  }
};

/// The same, where it has a shape that the attribute allows.
struct EnsureShapeKernel {
  static constexpr bool splits = false;
  EnsureShape::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 20; }
  void operator()(KernelContext& context) const {
    const AnyTensor& x = context.input(0);
    if (!attrs.shape.is_compatible_with(x.shape())) {
      context.fail(str_cat("the tensor has shape ", x.shape().to_string(), ", not ", attrs.shape.to_string()));
    }
    context.set_output(0, x);
  }
};

/// The bytes of a 1 of that type, which is a number or bool.
inline std::array<std::byte, 16> one_of(DType dtype) {
  return visit_dtype<PlainTypes>(dtype, []<class T>() {
    const T one(1);
    std::array<std::byte, 16> bytes{};
    std::memcpy(bytes.data(), &one, sizeof(one));
    return bytes;
  });
}

// Their outputs are in host memory.

struct ShapeKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const Shape shape = context.input(0).shape();
    std::int32_t* y = context.allocate_output<std::int32_t>(0, {shape.rank()}).data();
    for (const std::int64_t dim : shape) *y++ = narrow<std::int32_t>(dim);
  }
};

struct RankKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const int rank = context.input(0).rank();
    *context.allocate_output<std::int32_t>(0, {}).data() = rank;
  }
};

struct SizeKernel {
  double cost_ns(const KernelInit&) const { return 60; }
  void operator()(KernelContext& context) const {
    const auto size = narrow<std::int32_t>(context.input(0).num_elements());
    *context.allocate_output<std::int32_t>(0, {}).data() = size;
  }
};

}  // namespace dflow::detail
