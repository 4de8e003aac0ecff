#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/math/add_n.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/prod_gradient.hpp>
#include <dflow/ops/math/reduce.hpp>
#include <dflow/ops/math/segment.hpp>
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

/// Over axes.
using ReductionOps =
    TypeList<Sum, Mean, Prod, Max, Min, All, Any, ArgMax, ArgMin, ReducedShape, ExclusiveProd, ExclusiveProdGrad>;

/// The family's ops in the standard table.
using MathOps = concat_t<ElementwiseMathOps, ReductionOps, TypeList<MatMul, BatchMatMul, AddN, UnsortedSegmentSum>>;

}  // namespace dflow
