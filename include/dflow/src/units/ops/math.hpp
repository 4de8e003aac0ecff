#pragma once

/// Bodies of the ops of family math.

#include <dflow/ops/math/batch_matmul.ipp>
#include <dflow/ops/math/binary.ipp>
#include <dflow/ops/math/broadcast.ipp>
#include <dflow/ops/math/cast.ipp>
#include <dflow/ops/math/compare.ipp>
#include <dflow/ops/math/complex.ipp>
#include <dflow/ops/math/elementwise_op.ipp>
#include <dflow/ops/math/formulas.ipp>
#include <dflow/ops/math/matmul.ipp>
#include <dflow/ops/math/select.ipp>
#include <dflow/ops/math/special.ipp>
#include <dflow/ops/math/unary.ipp>
#include <dflow/ops/math/unary_gradients.ipp>
