#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/passes/check_receives.ipp>
#include <dflow/passes/compile_step.ipp>
#include <dflow/passes/expand_collectives.ipp>
#include <dflow/passes/fusion/chains.ipp>
#include <dflow/passes/fusion/fuse.ipp>
#include <dflow/passes/optimize.ipp>
#include <dflow/passes/partition.ipp>
#include <dflow/passes/place.ipp>
#include <dflow/passes/prune.ipp>
