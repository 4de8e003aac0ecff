#pragma once

#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/cpu/raw/loop_types.hpp>
#include <dflow/kernels/cpu/raw/variants/dispatch.hpp>
#include <dflow/kernels/cpu/raw/variants/elementwise_tables.hpp>
#include <dflow/kernels/cpu/raw/vector_math.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>
#include <dflow/ops/nn/activation.hpp>

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/raw/variants/elementwise_loops.hpp>
#endif

#include <concepts>
#include <cstddef>
#include <type_traits>

/// Which of the loops compiled per CpuLevel computes which op. Ops and element types that have none there (complex
/// numbers, integer division, the gamma functions) are computed by their expression.

namespace dflow::cpu {

namespace detail {

/// Loops in a table, where the table has them.
template <class O>
struct LoopsIn;

#define DFLOW_LOOPS_OF_OP(Op, member)                                         \
  template <>                                                                 \
  struct LoopsIn<Op> {                                                        \
    template <class Table>                                                    \
    static auto get(const Table& table) -> std::decay_t<decltype(table.member)> { \
      return table.member;                                                    \
    }                                                                         \
  };

DFLOW_LOOPS_OF_OP(Add, add)
DFLOW_LOOPS_OF_OP(Sub, subtract)
DFLOW_LOOPS_OF_OP(Mul, multiply)
DFLOW_LOOPS_OF_OP(Div, divide)
DFLOW_LOOPS_OF_OP(Maximum, maximum)
DFLOW_LOOPS_OF_OP(Minimum, minimum)
DFLOW_LOOPS_OF_OP(SquaredDifference, squared_difference)
DFLOW_LOOPS_OF_OP(Less, less)
DFLOW_LOOPS_OF_OP(LessEqual, less_equal)
DFLOW_LOOPS_OF_OP(Greater, less)
DFLOW_LOOPS_OF_OP(GreaterEqual, less_equal)
DFLOW_LOOPS_OF_OP(Equal, equal)
DFLOW_LOOPS_OF_OP(NotEqual, not_equal)
DFLOW_LOOPS_OF_OP(Neg, negate)
DFLOW_LOOPS_OF_OP(Abs, absolute)
DFLOW_LOOPS_OF_OP(Inv, invert)
DFLOW_LOOPS_OF_OP(Square, square)
DFLOW_LOOPS_OF_OP(Sqrt, sqrt)
DFLOW_LOOPS_OF_OP(Rsqrt, rsqrt)
DFLOW_LOOPS_OF_OP(Sign, sign)
DFLOW_LOOPS_OF_OP(Floor, floor)
DFLOW_LOOPS_OF_OP(Ceil, ceil)
DFLOW_LOOPS_OF_OP(Round, round)
DFLOW_LOOPS_OF_OP(IsNan, is_nan)
DFLOW_LOOPS_OF_OP(IsInf, is_inf)
DFLOW_LOOPS_OF_OP(IsFinite, is_finite)
DFLOW_LOOPS_OF_OP(TanhGrad, tanh_grad)
DFLOW_LOOPS_OF_OP(SigmoidGrad, sigmoid_grad)
DFLOW_LOOPS_OF_OP(InvGrad, invert_grad)
DFLOW_LOOPS_OF_OP(SqrtGrad, sqrt_grad)
DFLOW_LOOPS_OF_OP(RsqrtGrad, rsqrt_grad)
DFLOW_LOOPS_OF_OP(Relu, relu)
DFLOW_LOOPS_OF_OP(Relu6, relu6)
DFLOW_LOOPS_OF_OP(Elu, elu)
DFLOW_LOOPS_OF_OP(Softplus, softplus)
DFLOW_LOOPS_OF_OP(Softsign, softsign)
DFLOW_LOOPS_OF_OP(ReluGrad, relu_grad)
DFLOW_LOOPS_OF_OP(Relu6Grad, relu6_grad)
DFLOW_LOOPS_OF_OP(EluGrad, elu_grad)
DFLOW_LOOPS_OF_OP(SoftplusGrad, softplus_grad)
DFLOW_LOOPS_OF_OP(SoftsignGrad, softsign_grad)
DFLOW_LOOPS_OF_OP(Exp, exp)
DFLOW_LOOPS_OF_OP(Log, log)
DFLOW_LOOPS_OF_OP(Log1p, log1p)
DFLOW_LOOPS_OF_OP(Tanh, tanh)
DFLOW_LOOPS_OF_OP(Sigmoid, sigmoid)
DFLOW_LOOPS_OF_OP(Erf, erf)
#undef DFLOW_LOOPS_OF_OP

template <class O, class Table>
concept HasLoopsIn = requires(const Table& table) { LoopsIn<O>::get(table); };

/// The tables that hold loops of element type T.
template <class T>
struct TablesOf {
  using type = TypeList<>;
};
template <std::floating_point T>
struct TablesOf<T> {
  using type = TypeList<FloatElementwiseLoops<T>, OrderComparisonLoops<T>, EqualityComparisonLoops<T>>;
};
template <math::HalfPrecision T>
struct TablesOf<T> {
  using type = TypeList<FloatElementwiseLoops<loop_t<T>>, HalfMathLoops<loop_t<T>>, OrderComparisonLoops<loop_t<T>>,
                        EqualityComparisonLoops<loop_t<T>>>;
};
template <std::integral T>
  requires(!std::same_as<T, bool>)
struct TablesOf<T> {
  using type = TypeList<WrappingElementwiseLoops<wrapping_loop_t<T>>, OrderedElementwiseLoops<T>, OrderComparisonLoops<T>,
                        EqualityComparisonLoops<wrapping_loop_t<T>>>;
};

template <class O, class List>
struct TableWith {
  using type = void;
};
template <class O, class Table, class... Tables>
struct TableWith<O, TypeList<Table, Tables...>> : TableWith<O, TypeList<Tables...>> {};
template <class O, class Table, class... Tables>
  requires HasLoopsIn<O, Table>
struct TableWith<O, TypeList<Table, Tables...>> {
  using type = Table;
};
template <class O, class T>
using LoopTable = typename TableWith<O, typename TablesOf<T>::type>::type;

/// A function of raw/vector_math.hpp as a loop.
template <class T, void (*function)(std::int64_t, const T*, T*, CpuLevel)>
const char* math_loop(std::int64_t n, const void* const* inputs, void* y, CpuLevel max_level) {
  function(n, static_cast<const T*>(inputs[0]), static_cast<T*>(y), max_level);
  return nullptr;
}

template <class O, class T>
inline constexpr std::nullptr_t math_loop_of = nullptr;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Exp, T> = &math_loop<T, &vexp<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Log, T> = &math_loop<T, &vlog<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Log1p, T> = &math_loop<T, &vlog1p<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Tanh, T> = &math_loop<T, &vtanh<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Sigmoid, T> = &math_loop<T, &vsigmoid<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Sin, T> = &math_loop<T, &vsin<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Cos, T> = &math_loop<T, &vcos<T>>;
template <std::floating_point T>
inline constexpr ElementwiseLoop math_loop_of<Erf, T> = &math_loop<T, &verf<T>>;

/// By type: to UBSan the address of a function is not a constant that differs from null.
template <class O, class T>
concept HasMathLoop = std::same_as<decltype(math_loop_of<O, T>), const ElementwiseLoop>;

}  // namespace detail

template <class O, class T>
  requires(!std::is_void_v<detail::LoopTable<O, T>>)
struct ElementwiseCodeOf<O, T> {
  static ElementwiseCode get(CpuLevel max_level) {
    ElementwiseCode code = detail::layout_of<O, T>();
    const auto found = detail::LoopsIn<O>::get(loops<detail::LoopTable<O, T>>(max_level));
    if constexpr (std::same_as<decltype(found), const ElementwiseLoop>) {
      code.dense = found;
    } else {
      code.dense = found.dense;
      code.first_repeated = found.first_repeated;
      code.second_repeated = found.second_repeated;
    }
    code.swaps_inputs = std::same_as<O, Greater> || std::same_as<O, GreaterEqual>;
    // A core takes some 40 bytes per nanosecond from its caches.
    code.ns_per_element = 0.025f * static_cast<float>(code.num_inputs * code.input_bytes + code.output_bytes);
    return code;
  }
};

template <class O, std::floating_point T>
  requires detail::HasMathLoop<O, T>
struct ElementwiseCodeOf<O, T> {
  static ElementwiseCode get(CpuLevel) {
    ElementwiseCode code = detail::layout_of<O, T>();
    code.dense = detail::math_loop_of<O, T>;
    code.ns_per_element = 0.6f;
    return code;
  }
};

}  // namespace dflow::cpu
