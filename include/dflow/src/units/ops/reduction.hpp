#pragma once

/// Bodies of the ops of family reduction.

#include <dflow/ops/reduction/add_n.ipp>
#include <dflow/ops/reduction/prod_gradient.ipp>
#include <dflow/ops/reduction/reduce.ipp>
#include <dflow/ops/reduction/scan.ipp>
#include <dflow/ops/reduction/segment.ipp>
#include <dflow/ops/reduction/sorted_segment.ipp>
#include <dflow/ops/reduction/statistics.ipp>
#include <dflow/ops/reduction/top_k.ipp>
