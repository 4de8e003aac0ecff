#pragma once

#include <dflow/kernels/cpu/elementwise_code.hpp>

/// The loops of elementwise ops that exist once per CpuLevel. Loops of one input, or of two that have one shape, are
/// single; the others come with an input repeated as well.
namespace dflow::cpu {

struct BroadcastLoops {
  ElementwiseLoop dense, first_repeated, second_repeated;
};

/// T: float, double, HalfBits, BFloat16Bits.
template <class T> struct FloatElementwiseLoops {
  BroadcastLoops add, subtract, multiply, divide, maximum, minimum, squared_difference;
  ElementwiseLoop negate, absolute, invert, square, sqrt, rsqrt, sign, floor, ceil, round;
  ElementwiseLoop is_nan, is_inf, is_finite;
  ElementwiseLoop tanh_grad, sigmoid_grad, invert_grad, sqrt_grad, rsqrt_grad;
  ElementwiseLoop relu, relu6, elu, softplus, softsign;
  ElementwiseLoop relu_grad, relu6_grad, elu_grad, softplus_grad, softsign_grad;
};

/// Functions of 16-bit floats; those of float and double are in MathLoops. T: HalfBits, BFloat16Bits.
template <class T> struct HalfMathLoops { ElementwiseLoop exp, log, log1p, tanh, sigmoid, erf; };

/// What signed and unsigned integers have in common. T: uint8 to uint64.
template <class T> struct WrappingElementwiseLoops {
  BroadcastLoops add, subtract, multiply, squared_difference;
  ElementwiseLoop negate, square;
};

/// What depends on the sign. T: every integer type.
template <class T> struct OrderedElementwiseLoops {
  BroadcastLoops maximum, minimum;
  ElementwiseLoop relu, relu_grad;
};

/// Comparisons, in tables of their own since few programs of a selective op table have them. T: the floating-point types,
/// and for order every integer type, for equality the unsigned ones.
template <class T> struct OrderComparisonLoops { BroadcastLoops less, less_equal; };
template <class T> struct EqualityComparisonLoops { BroadcastLoops equal, not_equal; };

}  // namespace dflow::cpu
