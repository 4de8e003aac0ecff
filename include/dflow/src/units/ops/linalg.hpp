#pragma once

/// Bodies of the ops of family linalg.

#include <dflow/ops/linalg/band.ipp>
#include <dflow/ops/linalg/decompose.ipp>
#include <dflow/ops/linalg/einsum.ipp>
#include <dflow/ops/linalg/fourier.ipp>
#include <dflow/ops/linalg/matrix_expr.ipp>
#include <dflow/ops/linalg/products.ipp>
#include <dflow/ops/linalg/solve.ipp>
