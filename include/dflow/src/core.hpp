#pragma once

/// Public: the bodies of the core: graphs, ops without their kernels, differentiation, file formats, the executor,
/// passes and sessions. A program that compiles dflow itself includes this header in one unit, with a header of
/// `dflow/src/ops/` for each family of ops that its op table names. It needs cereal on the include path, and neither
/// Eigen nor Asio.

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
#include <dflow/src/units/io/io.hpp>
#include <dflow/src/units/ops/array.hpp>
#include <dflow/src/units/ops/checkpoint.hpp>
#include <dflow/src/units/ops/collective.hpp>
#include <dflow/src/units/ops/control.hpp>
#include <dflow/src/units/ops/data_flow.hpp>
#include <dflow/src/units/ops/image.hpp>
#include <dflow/src/units/ops/io.hpp>
#include <dflow/src/units/ops/linalg.hpp>
#include <dflow/src/units/ops/math.hpp>
#include <dflow/src/units/ops/nn.hpp>
#include <dflow/src/units/ops/parsing.hpp>
#include <dflow/src/units/ops/random.hpp>
#include <dflow/src/units/ops/reduction.hpp>
#include <dflow/src/units/ops/send_recv.hpp>
#include <dflow/src/units/ops/sparse.hpp>
#include <dflow/src/units/ops/state.hpp>
#include <dflow/src/units/ops/strings.hpp>
#include <dflow/src/units/ops/summary.hpp>
