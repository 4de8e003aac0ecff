#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/reduction/add_n.hpp>
#include <dflow/kernels/cpu/reduction/prod_gradient.hpp>
#include <dflow/kernels/cpu/reduction/reduce.hpp>
#include <dflow/kernels/cpu/reduction/scan.hpp>
#include <dflow/kernels/cpu/reduction/segment.hpp>
#include <dflow/kernels/cpu/reduction/sorted_segment.hpp>
#include <dflow/kernels/cpu/reduction/top_k.hpp>
#include <dflow/ops/reduction/list.hpp>
