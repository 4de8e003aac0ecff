#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/autodiff/body_edges.ipp>
#include <dflow/autodiff/call_gradients.ipp>
#include <dflow/autodiff/gradients.ipp>
#include <dflow/autodiff/loop_sums.ipp>
