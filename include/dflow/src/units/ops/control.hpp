#pragma once

/// Bodies of the ops of family control.

#include <dflow/ops/control/assertions.ipp>
#include <dflow/ops/control/check.ipp>
#include <dflow/ops/control/dependencies.ipp>
#include <dflow/ops/control/frames.ipp>
#include <dflow/ops/control/function_body.ipp>
#include <dflow/ops/control/function_builders.ipp>
#include <dflow/ops/control/functional.ipp>
#include <dflow/ops/control/no_op.ipp>
#include <dflow/ops/control/print.ipp>
#include <dflow/ops/control/row_loops.ipp>
#include <dflow/ops/control/tensor_array.ipp>
#include <dflow/ops/control/tensor_list.ipp>
