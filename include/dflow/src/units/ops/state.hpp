#pragma once

/// Bodies of the ops of family state.

#include <dflow/ops/state/count.ipp>
#include <dflow/ops/state/update.ipp>
#include <dflow/ops/state/variable.ipp>
