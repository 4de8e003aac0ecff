#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/passes/contract.ipp>
#include <dflow/passes/frames.ipp>
#include <dflow/passes/functions.ipp>
#include <dflow/passes/lower_calls.ipp>
#include <dflow/passes/raise_frames.ipp>
#include <dflow/passes/split_calls.ipp>
#include <dflow/passes/step_graph_def.ipp>
