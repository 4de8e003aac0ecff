#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/raw/rows.hpp>
#include <dflow/ops/math/segment.hpp>

#include <algorithm>

namespace dflow {

template <class T, class I>
struct Kernel<UnsortedSegmentSum, Cpu, T, I> {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const {
    const Tensor<T>& data = context.input<T>(0);
    const Tensor<I>& ids = context.input<I>(1);
    const std::int64_t segments = context.input<std::int32_t>(2).scalar();
    if (segments < 0) context.fail(str_cat("cannot make ", segments, " segments"));
    if (ids.rank() != 1 || data.rank() < 1 || data.dim(0) != ids.dim(0)) {
      context.fail(str_cat("data ", data.shape().to_string(), " needs one id per row, got ids of shape ", ids.shape().to_string()));
    }
    const std::int64_t count = ids.num_elements();
    Tensor<T>& sums = context.allocate_output<T>(0, data.shape().with_dim(0, segments));
    std::fill(sums.begin(), sums.end(), T());
    const std::int64_t row = count == 0 ? 0 : data.num_elements() / count;
    const std::int64_t bad = cpu::scatter_rows(context.pool(), cpu::ScatterOp::add, segments, count, row, ids.data(),
                                               data.data(), sums.data(), cpu_options(context));
    if (bad >= 0) {
      context.fail(str_cat("segment_ids[", bad, "] = ", static_cast<std::int64_t>(ids.data()[bad]), " is outside [0, ", segments, ")"));
    }
  }
};

}  // namespace dflow
