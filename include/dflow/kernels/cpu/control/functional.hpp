#pragma once

#include <dflow/core/memory/kept_memory.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/tensor_list.hpp>
#include <dflow/ops/control/functional.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

/// What a list has of the iteration that the second input says. Errors: InvalidArgument if it has none.
inline const AnyTensor& kept_element(KernelContext& context) {
  const TensorList& list = list_of(context.input(0));
  const auto i = context.scalar_input<std::int64_t>(1);
  const AnyTensor* const element = list.find(i);
  if (element == nullptr) context.fail(str_cat("iteration ", i, " of ", list.size()));
  return *element;
}

}  // namespace detail

template <>
struct Kernel<KeptListPush, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 40; }

  void operator()(KernelContext& context) const {
    TensorList& list = forward_or_copy_list(context, 0, 0);
    list.set(list.size(), context.input(1));
  }
};

template <class T>
struct Kernel<KeptElement, Cpu, T> {
  static constexpr bool splits = false;
  KeptElement::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 40; }

  void operator()(KernelContext& context) const {
    const AnyTensor& element = detail::kept_element(context);
    const auto* const kept = dynamic_cast<const KeptTensor*>(resource_of(element));
    const DType dtype = kept == nullptr ? element.dtype() : kept->dtype();
    const Shape& shape = kept == nullptr ? element.shape() : kept->shape();
    if (dtype != dtype_of<T> || !attrs.shape.is_compatible_with(shape)) {
      context.fail(str_cat("the list has ", name(dtype), shape.to_string(), ", not ", name(dtype_of<T>),
                           attrs.shape.to_string()));
    }
    context.set_output(0, kept == nullptr ? element : kept->value(context.output_allocator(0)));
  }
};

template <>
struct Kernel<KeptHandleElement, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 40; }

  void operator()(KernelContext& context) const {
    const AnyTensor& element = detail::kept_element(context);
    if (element.dtype() != DType::resource) context.fail("the list has no handles");
    context.set_output(0, element);
  }
};

template <>
struct Kernel<KeptListElement, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 40; }

  void operator()(KernelContext& context) const {
    const AnyTensor* const element = list_of(context.input(0)).find(context.scalar_input<std::int64_t>(1));
    if (element == nullptr) return context.set_output(0, make_list({}));
    static_cast<void>(list_of(*element));
    context.set_output(0, *element);
  }
};

}  // namespace dflow
