#pragma once

#include <dflow/op/expr.hpp>

/// Included where gradients are defined. The arithmetic of Expr is made of ops: in header-only mode this brings its
/// bodies, which `op/expr.hpp` may not include.

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/ops/expr.ipp>
#endif
