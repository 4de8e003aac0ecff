#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <algorithm>
#include <type_traits>

namespace dflow {

template <class T>
struct Kernel<UnsortedSegmentSum, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const {
    visit_dtype<IndexTypes>(context.input(1).dtype(), [&]<class I>() { sum_segments<I>(context); });
  }

 private:
  template <class I>
  static void sum_segments(KernelContext& context) {
    const Tensor<T>& data = context.input<T>(0);
    const Tensor<I>& ids = context.input<I>(1);
    const std::int64_t segments = context.input<std::int32_t>(2).scalar();
    if (segments < 0) context.fail(str_cat("cannot make ", segments, " segments"));
    if (ids.rank() > data.rank() || data.shape().subshape(0, ids.rank()) != ids.shape()) {
      context.fail(str_cat("the ids' shape ", ids.shape().to_string(), " is not the first part of data's, ",
                           data.shape().to_string()));
    }
    const Shape row = data.shape().subshape(ids.rank(), data.rank());
    Tensor<T>& sums = context.allocate_output<T>(0, Shape{segments}.concatenated(row));
    const std::int64_t bad = sum_rows(context, data, ids, segments, row.num_elements(), sums);
    if (bad >= 0) {
      context.fail(str_cat("segment_ids[", bad, "] = ", static_cast<std::int64_t>(ids.data()[bad]),
                           " is not below the number of segments, ", segments));
    }
  }

  /// 16-bit sums are rounded once.
  template <class I>
  static std::int64_t sum_rows(KernelContext& context, const Tensor<T>& data, const Tensor<I>& ids,
                               std::int64_t segments, std::int64_t row, Tensor<T>& sums) {
    const auto sum = [&](const auto* rows, auto* to) {
      std::fill_n(to, sums.num_elements(), std::remove_reference_t<decltype(*to)>());
      return cpu::scatter_rows(context.pool(), cpu::ScatterOp::add, segments, ids.num_elements(), row, ids.data(), rows,
                               to, cpu_options(context), {.drop_negative = true});
    };
    if constexpr (cpu::is_16_bit_float<T>) {
      const cpu::Widened<T> wide(context.pool(), cpu_options(context), data.num_elements(), data.data());
      const cpu::Widened<T> wide_sums(context.pool(), cpu_options(context), sums.num_elements(), nullptr);
      const std::int64_t bad = sum(static_cast<const float*>(wide.get()), wide_sums.get());
      wide_sums.narrow_to(sums.data());
      return bad;
    } else {
      return sum(data.data(), sums.data());
    }
  }
};

}  // namespace dflow
