#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/special.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/math/unary_gradients.hpp>

namespace dflow {

/// Element by element.
using ElementwiseMathOps =
    TypeList<Abs, Neg, Inv, InvGrad, Square, Sqrt, SqrtGrad, Rsqrt, RsqrtGrad, Exp, Log, Log1p, Tanh, TanhGrad, Sigmoid,
             SigmoidGrad, Sin, Cos, Lgamma, Digamma, DigammaGrad, Erf, Erfc, Sign, Floor, Ceil, Round, IsNan, IsInf,
             IsFinite, Conj, Add, Sub, Mul, Div, Mod, Pow, Maximum, Minimum, SquaredDifference, Igamma, Igammac, Less,
             LessEqual, Greater, GreaterEqual, Equal, NotEqual, LogicalAnd, LogicalOr, LogicalNot, Select, Cast,
             BroadcastTo, SumToShape>;

/// The family's ops in the standard table.
using MathOps = concat_t<ElementwiseMathOps, TypeList<MatMul>>;

}  // namespace dflow
