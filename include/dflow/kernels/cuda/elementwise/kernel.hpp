#pragma once

/// Public: a GPU's kernel of an op of your own: elementwise, or by `cuda::launch`.

#include <dflow/core/broadcast_walk.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/op/symbol.hpp>

#include <cstdint>
#include <cstring>
#include <memory>

namespace dflow {

namespace cuda {

/// The kernels of one elementwise op for one element type, and the meaning of its errors.
struct ElementwiseCode {
  const KernelFunction& (*dense)() = nullptr;
  const KernelFunction& (*broadcast)() = nullptr;  ///< null for an op of one input
  /// Gives the error message for the elements in the slot. Null for an op that takes every element.
  const char* (*check)(const ErrorSlot& elements) = nullptr;
  std::uint8_t num_inputs = 1;
  bool broadcasts = true;
};

/// Issues the code for all elements of `y`. Precondition: `y` has elements. The buffer of `y` may be an input's.
void run_elementwise(const KernelContext& context, const ElementwiseCode& code, const BroadcastWalk& walk,
                     const void* const* elements, AnyTensor& y);

/// The kernel of an elementwise op: broadcasts, and reuses the buffer of an input without other readers.
std::unique_ptr<AnyKernel> make_elementwise_kernel(const ElementwiseCode& code);

namespace detail {

template <class O, class T, std::size_t... I>
const char* check_elements(const ErrorSlot& slot, std::index_sequence<I...>) {
  T elements[sizeof...(I)];
  static_cast<void>(std::initializer_list<int>{(std::memcpy(&elements[I], slot.values[I], sizeof(T)), 0)...});
  return O::check(elements[I]...);
}

template <class O, class T, std::size_t... I>
constexpr bool checks_elements(std::index_sequence<I...>) {
  return ChecksElements<O, For<T, I>...>;
}

template <class O, class T>
constexpr ElementwiseCode elementwise_code() {
  using E = DeviceElement<T>;
  ElementwiseCode code;
  code.num_inputs = elementwise_arity<O>;
  if constexpr (requires { O::broadcasts; }) code.broadcasts = O::broadcasts;
  code.dense = &kernel_function<DenseBody<O, E>>;
  if constexpr (elementwise_arity<O> > 1) code.broadcast = &kernel_function<BroadcastBody<O, E>>;
  if constexpr (checks_elements<O, T>(ArgumentsOf<O>{})) {
    code.check = [](const ErrorSlot& slot) { return check_elements<O, T>(slot, ArgumentsOf<O>{}); };
  }
  return code;
}

}  // namespace detail

}  // namespace cuda

/// Every elementwise op has this kernel for the types that a GPU computes with; its bodies are compiled by nvcc
/// (`DFLOW_INSTANTIATE_BODIES(ElementwiseBodies<...>)`).
template <ElementwiseOpType O, class T>
  requires cuda::is_elementwise_type<T>
struct Kernel<O, Cuda, T> {
  static std::unique_ptr<AnyKernel> make(const KernelInit&) {
    return cuda::make_elementwise_kernel(cuda::detail::elementwise_code<O, T>());
  }
  /// The formula of an op that chains.
  static const Formula* formula(int)
    requires(O::chains)
  {
    return formula_of<O>();
  }
};

}  // namespace dflow
