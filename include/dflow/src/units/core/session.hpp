#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/session/check_gradients.ipp>
#include <dflow/session/compiled_function.ipp>
#include <dflow/session/compiled_step.ipp>
#include <dflow/session/part_compiler.ipp>
#include <dflow/session/partial_run.ipp>
#include <dflow/session/session.ipp>
#include <dflow/session/session_state.ipp>
#include <dflow/session/step_cache.ipp>
#include <dflow/session/target.ipp>
