#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/summary/summary.hpp>

namespace dflow {

/// The family's ops in the standard table.
using SummaryOps =
    TypeList<ScalarSummary, HistogramSummary, ImageSummary, AudioSummaryV2, TensorSummaryV2, MergeSummary>;

}  // namespace dflow
