#pragma once

#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/op/elementwise.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/losses.hpp>

#include <type_traits>

namespace dflow::cpu {

/// The elementwise ops with an expression that is compiled once per CpuLevel, as vector code: all functions that they
/// call have a form without branches or calls (`loops/elementwise_loops.hpp`). The other ops evaluate their expression
/// as it stands.
using LoopOps = concat_t<UnaryOps, UnaryGradientOps, BinaryOps, ComparisonOps, ActivationOps,
                         TypeList<Erf, SigmoidCrossEntropyWithLogits>>;

/// Float and double have loops of their own for the ops below (`routines/math/vector_math.hpp`).
using ArrayFunctionOps = TypeList<Exp, Log, Log1p, Tanh, Sigmoid, Sin, Cos, Erf>;

namespace detail {

/// Real numbers; an op that may refuse an element has no loops for that type.
template <class O, class T>
constexpr bool has_loops = contains_v<O, LoopOps> && contains_v<T, element_t<0, typename O::TypeParams>> &&
                           ((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || math::HalfPrecision<T>)&&!(
                               std::is_floating_point_v<T> && contains_v<O, ArrayFunctionOps>)&&!ChecksElements<O, T> &&
                           !ChecksElements<O, T, T>;

}  // namespace detail

/// The loops of op O for element type T at one level. Loops with a repeated input are there for two inputs that
/// broadcast.
struct ElementwiseLoops {
  ElementwiseLoop dense = nullptr;
  ElementwiseLoop first_repeated = nullptr;
  ElementwiseLoop second_repeated = nullptr;
};

}  // namespace dflow::cpu
