#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>
#include <dflow/ops/array/reverse.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

struct ReverseSequenceKernel : SplitsUnlessStrings {
  ReverseSequence::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const Shape shape = inferred_shape(context);
    const AnyTensor& x = context.input(0);
    const AnyTensor& lengths = context.input(1);
    const auto batch = static_cast<std::size_t>(non_negative_axis(attrs.batch_dim, shape.rank()));
    const auto seq = static_cast<std::size_t>(non_negative_axis(attrs.seq_dim, shape.rank()));
    const std::int64_t extent = shape.dims()[seq];
    for (std::int64_t b = 0; b < lengths.num_elements(); ++b) {
      const std::int64_t length = length_of(lengths, b);
      if (length < 0 || length > extent) {
        context.fail(
            str_cat("lengths[", b, "] = ", length, " is not in [0, ", extent, "], which dimension ", seq, " has"));
      }
    }
    AnyTensor& y = context.allocate_output(0, shape);
    if (shape.num_elements() == 0) return;
    const auto strides = row_major_strides(shape);
    auto backwards = strides;
    backwards[seq] = -backwards[seq];
    std::array<std::int64_t, max_rank> extents{};
    std::ranges::copy(shape.dims(), extents.begin());
    extents[batch] = 1;
    const std::span<const std::int64_t> dims = std::span(extents).first(static_cast<std::size_t>(shape.rank()));
    for (std::int64_t b = 0; b < shape.dims()[batch]; ++b) {
      const std::int64_t length = length_of(lengths, b), first = b * strides[batch];
      const std::int64_t rest = first + length * strides[seq];
      extents[seq] = length;
      if (length != 0) {
        strided_copy(context, x.dtype(), dims, element(x, rest - strides[seq]), backwards, element(y, first), strides);
      }
      extents[seq] = extent - length;
      if (length != extent) {
        strided_copy(context, x.dtype(), dims, element(x, rest), strides, element(y, rest), strides);
      }
    }
  }

 private:
  static std::int64_t length_of(const AnyTensor& lengths, std::int64_t b) {
    const auto at = static_cast<std::size_t>(b);
    return lengths.dtype() == DType::int64 ? lengths.span<std::int64_t>()[at] : lengths.span<std::int32_t>()[at];
  }
};

}  // namespace detail

template <>
struct Kernel<ReverseSequence, Cpu> : detail::ReverseSequenceKernel {};

}  // namespace dflow
