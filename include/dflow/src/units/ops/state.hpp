#pragma once

/// Bodies of the ops of family state.

#include <dflow/ops/state/count.ipp>
#include <dflow/ops/state/session_tensors.ipp>
#include <dflow/ops/state/temporary_variable.ipp>
#include <dflow/ops/state/update.ipp>
#include <dflow/ops/state/variable.ipp>
