#pragma once

/// Public: the CPU's kernel of an elementwise op of your own.

#include <dflow/base/cpu_features.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/op/elementwise.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow {

namespace cpu {

/// The kernel of an elementwise op: broadcasts, reuses the buffer of an input without other readers, splits large
/// tensors over the pool, and lets `code` compute runs of elements.
std::unique_ptr<AnyKernel> make_elementwise_kernel(const KernelInit& init, const ElementwiseCode& code);

/// y = code(inputs...), all inputs broadcast to the shape of y, to which they must broadcast. Throws InvalidArgument if
/// the code rejects an element.
void run_elementwise(ThreadPool& pool, const ElementwiseCode& code, std::span<const AnyTensor* const> inputs,
                     AnyTensor& y);

/// How far the node's device lets kernels use the processor.
CpuLevel allowed_cpu_level(const KernelInit& init) noexcept;

namespace detail {

using dflow::detail::For;

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// The op's expression for each i. An input whose bit is set in `repeated` stays at its first element.
template <class O, class T, unsigned repeated, std::size_t... I>
const char* run_expression(std::int64_t n, const void* const* inputs, void* output, std::index_sequence<I...>) {
  using C = ElementwiseComputeType<O, T>;
  using R = ElementwiseStoredType<O, T>;
  const std::tuple<For<const T*, I>...> x{static_cast<const T*>(inputs[I])...};
  R* y = static_cast<R*>(output);
  if constexpr (ChecksElements<O, For<T, I>...>) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (const char* wrong = O::check(std::get<I>(x)[(repeated >> I & 1u) != 0 ? 0 : i]...)) return wrong;
      y[i] = O::template apply<T>(std::get<I>(x)[(repeated >> I & 1u) != 0 ? 0 : i]...);
    }
  } else {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<R>(
          O::template apply<C>(static_cast<const C&>(std::get<I>(x)[(repeated >> I & 1u) != 0 ? 0 : i])...));
    }
  }
  return nullptr;
}

template <class O, class T, unsigned repeated = 0>
const char* expression_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  return run_expression<O, T, repeated>(n, inputs, output, ArgumentsOf<O>{});
}
DFLOW_END_INDEPENDENT_LOOPS

/// All about the op's code but the loops.
template <class O, class T>
constexpr ElementwiseCode layout_of() {
  ElementwiseCode code;
  code.num_inputs = elementwise_arity<O>;
  code.input_bytes = sizeof(T);
  code.output_bytes = sizeof(ElementwiseStoredType<O, T>);
  code.copies_as_bytes = std::is_trivially_copyable_v<T>;
  if constexpr (requires { O::broadcasts; }) code.broadcasts = O::broadcasts;
  return code;
}

template <class O, class T>
constexpr ElementwiseCode expression_code() {
  ElementwiseCode code = layout_of<O, T>();
  code.ns_per_element = 2;
  code.dense = &expression_loop<O, T>;
  // The library's own ops have better loops where repeating an input into a block would cost something.
  if constexpr (elementwise_arity<O> == 2 && (!O::in_library || !std::is_trivially_copyable_v<T>)) {
    code.first_repeated = &expression_loop<O, T, 1u>;
    code.second_repeated = &expression_loop<O, T, 2u>;
  }
  return code;
}

}  // namespace detail

/// The code of op `O` for element type T: its expression in a loop that the compiler may vectorise. Specialised for
/// ops that the library has better loops for.
template <class O, class T>
struct ElementwiseCodeOf {
  static ElementwiseCode get(CpuLevel) { return detail::expression_code<O, T>(); }
};

}  // namespace cpu

/// Every elementwise op has this kernel, also the user's own.
template <ElementwiseOpType O, class T>
struct Kernel<O, Cpu, T> {
  static std::unique_ptr<AnyKernel> make(const KernelInit& init) {
    return cpu::make_elementwise_kernel(init, cpu::ElementwiseCodeOf<O, T>::get(cpu::allowed_cpu_level(init)));
  }
};

}  // namespace dflow
