#pragma once

/// Bodies of the ops of family checkpoint.

#include <dflow/ops/checkpoint/resource_state.ipp>
#include <dflow/ops/checkpoint/save_restore.ipp>
