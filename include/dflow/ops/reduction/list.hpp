#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/scan.hpp>
#include <dflow/ops/reduction/segment.hpp>
#include <dflow/ops/reduction/sorted_segment.hpp>
#include <dflow/ops/reduction/top_k.hpp>

namespace dflow {

/// The family's ops in the standard table: over axes, segments or inputs.
using ReductionOps =
    TypeList<Sum, Mean, Prod, Max, Min, All, Any, ArgMax, ArgMin, ReducedShape, ExclusiveProd, ExclusiveProdGrad, AddN,
             UnsortedSegmentSum, Cumsum, Cumprod, LinearScan, SegmentSum, SegmentMean, SegmentProd, SegmentMin,
             SegmentMax, SparseSegmentSum, SparseSegmentMean, SparseSegmentSqrtN, SparseSegmentSumGrad,
             SparseSegmentMeanGrad, SparseSegmentSqrtNGrad, TopKV2, InTopK>;

}  // namespace dflow
