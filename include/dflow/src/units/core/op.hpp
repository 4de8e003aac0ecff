#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/op/attrs_reflection.ipp>
#include <dflow/op/build.ipp>
#include <dflow/op/derivative.ipp>
#include <dflow/op/gradient_context.ipp>
#include <dflow/op/op_def_of.ipp>
#include <dflow/op/op_table.ipp>
#include <dflow/op/symbol.ipp>
#include <dflow/ops/expr.ipp>
#include <dflow/ops/internal/elementwise_chain.ipp>
#include <dflow/ops/internal/member_collective.ipp>
