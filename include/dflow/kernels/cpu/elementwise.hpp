#pragma once

#include <dflow/base/cpu_features.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/kernels/cpu/elementwise_code.hpp>
#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/typed_kernel.hpp>
#include <dflow/op/elementwise.hpp>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace dflow {

namespace cpu {

/// The kernel of an elementwise op: broadcasts, reuses an input's buffer that nobody else reads, splits large tensors
/// over the pool, and lets `code` compute runs of elements.
std::unique_ptr<AnyKernel> make_elementwise_kernel(const KernelInit& init, const ElementwiseCode& code);

/// y = code(inputs...), all inputs broadcast to the shape of y, to which they must broadcast. Throws InvalidArgument if
/// the code rejects an element.
void run_elementwise(ThreadPool& pool, const ElementwiseCode& code, std::span<const AnyTensor* const> inputs, AnyTensor& y);

/// How far the node's device lets kernels use the processor.
CpuLevel allowed_cpu_level(const KernelInit& init) noexcept;

namespace detail {

/// What the expression is evaluated in: the library's ops compute half precision in float and round once.
template <class O, class T>
using ComputeType = std::conditional_t<O::in_library && math::HalfPrecision<T>, float, T>;

template <class O, class T>
using StoredResult = std::conditional_t<std::same_as<ElementwiseResultOf<O, T>, bool>, bool, T>;

template <class O, class... Ts>
concept ChecksElements = requires(const Ts&... xs) {
  { O::check(xs...) } -> std::same_as<const char*>;
};

// One loop over an op's expression for each number of arguments.

template <class O, class T>
const char* unary_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  using C = ComputeType<O, T>;
  using R = StoredResult<O, T>;
  const T* x = static_cast<const T*>(inputs[0]);
  R* y = static_cast<R*>(output);
  if constexpr (ChecksElements<O, T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (const char* wrong = O::check(x[i])) return wrong;
      y[i] = O::template apply<T>(x[i]);
    }
  } else {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<R>(O::template apply<C>(static_cast<const C&>(x[i])));
  }
  return nullptr;
}

/// An input that does not move stays at its first element.
template <class O, class T, bool first_moves, bool second_moves>
const char* binary_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  using C = ComputeType<O, T>;
  using R = StoredResult<O, T>;
  const T* a = static_cast<const T*>(inputs[0]);
  const T* b = static_cast<const T*>(inputs[1]);
  R* y = static_cast<R*>(output);
  if constexpr (ChecksElements<O, T, T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (const char* wrong = O::check(a[first_moves ? i : 0], b[second_moves ? i : 0])) return wrong;
      y[i] = O::template apply<T>(a[first_moves ? i : 0], b[second_moves ? i : 0]);
    }
  } else {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<R>(O::template apply<C>(static_cast<const C&>(a[first_moves ? i : 0]),
                                                 static_cast<const C&>(b[second_moves ? i : 0])));
    }
  }
  return nullptr;
}

template <class O, class T>
const char* ternary_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  const T* a = static_cast<const T*>(inputs[0]);
  const T* b = static_cast<const T*>(inputs[1]);
  const T* c = static_cast<const T*>(inputs[2]);
  auto* y = static_cast<StoredResult<O, T>*>(output);
  if constexpr (ChecksElements<O, T, T, T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (const char* wrong = O::check(a[i], b[i], c[i])) return wrong;
      y[i] = O::template apply<T>(a[i], b[i], c[i]);
    }
  } else {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = O::template apply<T>(a[i], b[i], c[i]);
  }
  return nullptr;
}

template <class O, class T>
const char* quaternary_loop(std::int64_t n, const void* const* inputs, void* output, CpuLevel) {
  const T* a = static_cast<const T*>(inputs[0]);
  const T* b = static_cast<const T*>(inputs[1]);
  const T* c = static_cast<const T*>(inputs[2]);
  const T* d = static_cast<const T*>(inputs[3]);
  auto* y = static_cast<StoredResult<O, T>*>(output);
  if constexpr (ChecksElements<O, T, T, T, T>) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (const char* wrong = O::check(a[i], b[i], c[i], d[i])) return wrong;
      y[i] = O::template apply<T>(a[i], b[i], c[i], d[i]);
    }
  } else {
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) y[i] = O::template apply<T>(a[i], b[i], c[i], d[i]);
  }
  return nullptr;
}

/// All about the op's code but the loops.
template <class O, class T>
constexpr ElementwiseCode layout_of() {
  ElementwiseCode code;
  code.num_inputs = elementwise_arity<O>;
  code.input_bytes = sizeof(T);
  code.output_bytes = sizeof(StoredResult<O, T>);
  code.copies_as_bytes = std::is_trivially_copyable_v<T>;
  if constexpr (requires { O::broadcasts; }) code.broadcasts = O::broadcasts;
  return code;
}

template <class O, class T>
constexpr ElementwiseCode expression_code() {
  constexpr int arity = elementwise_arity<O>;
  ElementwiseCode code = layout_of<O, T>();
  code.ns_per_element = 2;
  if constexpr (arity == 1) {
    code.dense = &unary_loop<O, T>;
  } else if constexpr (arity == 2) {
    code.dense = &binary_loop<O, T, true, true>;
    // The library's own ops have better loops where repeating an input into a block would cost something.
    if constexpr (!O::in_library || !std::is_trivially_copyable_v<T>) {
      code.first_repeated = &binary_loop<O, T, false, true>;
      code.second_repeated = &binary_loop<O, T, true, false>;
    }
  } else if constexpr (arity == 3) {
    code.dense = &ternary_loop<O, T>;
  } else {
    code.dense = &quaternary_loop<O, T>;
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

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/elementwise.ipp>
#endif
