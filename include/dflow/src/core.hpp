#pragma once

/// The bodies of the core: graphs, ops, differentiation, the executor, passes and sessions. Include it in one unit of a
/// program that compiles dflow itself, with a header of `dflow/src/ops/` for each family of ops that the op table
/// names. Needs cereal on the include path, and RapidJSON, which it brings; neither Eigen nor Asio.

#include <dflow/src/units/core/autodiff.hpp>
#include <dflow/src/units/core/base.hpp>
#include <dflow/src/units/core/calls.hpp>
#include <dflow/src/units/core/core.hpp>
#include <dflow/src/units/core/cpu.hpp>
#include <dflow/src/units/core/graph.hpp>
#include <dflow/src/units/core/graph_def.hpp>
#include <dflow/src/units/core/json.hpp>
#include <dflow/src/units/core/kernels.hpp>
#include <dflow/src/units/core/op.hpp>
#include <dflow/src/units/core/op_import.hpp>
#include <dflow/src/units/core/passes.hpp>
#include <dflow/src/units/core/plan.hpp>
#include <dflow/src/units/core/runtime.hpp>
#include <dflow/src/units/core/session.hpp>
#include <dflow/src/units/core/state.hpp>
