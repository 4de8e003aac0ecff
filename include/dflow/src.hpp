#pragma once

/// Public: all of dflow's bodies, for a program that compiles dflow itself. Include it in one unit of the program.
///
/// Parts of it may be included in units of their own instead, so that they build side by side. The parts are
/// `dflow/src/{core,data,trace,train,models,net}.hpp` and each header of `dflow/src/all/`. Smaller parts are the
/// headers of `dflow/src/units/`. A program with an op table of its own includes `core.hpp`, and the headers of
/// `dflow/src/ops/` for the families that its table names.

#include <dflow/src/all/array.hpp>
#include <dflow/src/all/checkpoint.hpp>
#include <dflow/src/all/control.hpp>
#include <dflow/src/all/cpu.hpp>
#include <dflow/src/all/data_flow.hpp>
#include <dflow/src/all/image.hpp>
#include <dflow/src/all/io.hpp>
#include <dflow/src/all/linalg.hpp>
#include <dflow/src/all/math.hpp>
#include <dflow/src/all/nn.hpp>
#include <dflow/src/all/parsing.hpp>
#include <dflow/src/all/random.hpp>
#include <dflow/src/all/reduction.hpp>
#include <dflow/src/all/send_recv.hpp>
#include <dflow/src/all/sparse.hpp>
#include <dflow/src/all/state.hpp>
#include <dflow/src/all/strings.hpp>
#include <dflow/src/all/summary.hpp>
#include <dflow/src/all/tables.hpp>
#include <dflow/src/core.hpp>
#include <dflow/src/data.hpp>
#include <dflow/src/models.hpp>
#include <dflow/src/net.hpp>
#include <dflow/src/trace.hpp>
#include <dflow/src/train.hpp>
