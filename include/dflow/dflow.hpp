#pragma once

/// Everything an application needs to build, differentiate, train and run typed dataflow graphs. Nothing inside the library
/// includes this header.

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/kernels/cpu/elementwise.hpp>
#include <dflow/kernels/typed_kernel.hpp>
#include <dflow/op/build.hpp>
#include <dflow/kernels/op_set.hpp>
#include <dflow/ops/ops.hpp>
#include <dflow/session/session.hpp>
#include <dflow/trace/chrome_trace.hpp>
#include <dflow/train/train.hpp>
#include <dflow/base/thread_pool.hpp>
#include <dflow/base/version.hpp>

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/all.hpp>
#endif
