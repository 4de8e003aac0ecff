#pragma once

#include <dflow/kernels/cuda/nn/batch_norm.hpp>
#include <dflow/kernels/cuda/routines/copies.ipp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace dflow::cuda {

namespace detail {

/// Sums over the rows of each channel: first in parts, then over the parts.
inline void sum_channels(const KernelContext& context, ChannelArgs args, DType dtype, int sums,
                         const KernelFunction& parts, const KernelFunction& join) {
  constexpr std::int64_t rows_of_part = 128, most_parts = 256, most_blocks = 1 << 16;
  const std::int64_t tiles = (args.channels + channels_of_block - 1) / channels_of_block;
  // Enough blocks for a large GPU, each with enough rows to be worth its start.
  args.splits = std::clamp<std::int64_t>(args.rows / rows_of_part, 1, std::max<std::int64_t>(1, most_parts / tiles));
  const AnyTensor room = context.allocate_temporary(dtype, {sums, args.splits, args.channels});
  const AnyTensor* const temporaries[] = {&room};
  args.parts = const_cast<void*>(room.raw_data());
  launch(context, parts,
         {static_cast<std::uint32_t>(std::min(tiles * args.splits, most_blocks)), channels_of_block * row_lanes}, &args,
         nullptr, temporaries);
  launch(context, join, grid_for(args.channels, 1), &args, nullptr, temporaries);
}

inline void fill_with_nan(const KernelContext& context, AnyTensor& statistic) {
  Bits<16> nan{};
  if (statistic.dtype() == DType::float64) {
    const double value = std::numeric_limits<double>::quiet_NaN();
    std::memcpy(&nan, &value, sizeof(value));
  } else {
    const float value = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(&nan, &value, sizeof(value));
  }
  fill_output(context, statistic, nullptr, nan);
}

}  // namespace detail

void batch_norm(KernelContext& context, const BatchNormAttrs& attrs, const BatchNormCode& code) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  const Shape channels{shape[3]};
  ChannelArgs args;
  args.channels = shape[3];
  args.rows = args.channels == 0 ? 0 : shape.num_elements() / args.channels;
  args.x = x.raw_data();
  args.scale = context.input(1).raw_data();
  args.offset = context.input(2).raw_data();
  args.epsilon = attrs.epsilon;
  const DType dtype = context.input(1).dtype();
  if (!attrs.is_training) {
    args.mean = context.input(3).raw_data();
    args.variance = context.input(4).raw_data();
    for (const int o : {1, 3}) context.set_output(o, context.input(3));
    for (const int o : {2, 4}) context.set_output(o, context.input(4));
  } else {
    for (const int o : {1, 2, 3, 4}) context.allocate_output(o, channels);
  }
  AnyTensor& y = context.allocate_output(0, shape);
  args.y = y.raw_data();
  if (args.rows == 0) {
    for (int o = 1; attrs.is_training && o < 5; ++o) detail::fill_with_nan(context, context.output(o));
    return;
  }
  if (attrs.is_training) {
    args.results[0] = context.output(1).raw_data();
    args.results[1] = context.output(3).raw_data();
    args.mean = args.results[1];
    detail::sum_channels(context, args, dtype, 1, *code.mean, *code.join_mean);
    args.results[0] = context.output(4).raw_data();
    args.results[1] = context.output(2).raw_data();
    args.variance = args.results[0];
    detail::sum_channels(context, args, dtype, 1, *code.variance, *code.join_variance);
  }
  launch(context, *code.normalise, grid_for(shape.num_elements()), &args);
}

void batch_norm_gradient(KernelContext& context, const BatchNormAttrs& attrs, const BatchNormCode& code) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const Shape channels{shape[3]};
  ChannelArgs args;
  args.channels = shape[3];
  args.rows = args.channels == 0 ? 0 : shape.num_elements() / args.channels;
  args.dy = context.input(0).raw_data();
  args.x = context.input(1).raw_data();
  args.scale = context.input(2).raw_data();
  args.mean = context.input(3).raw_data();
  args.variance = context.input(4).raw_data();
  args.epsilon = attrs.epsilon;
  args.is_training = attrs.is_training;
  AnyTensor& dx = context.allocate_output(0, shape);
  AnyTensor& dscale = context.allocate_output(1, channels);
  AnyTensor& doffset = context.allocate_output(2, channels);
  if (args.rows == 0) {
    clear_output(context, dscale);
    return clear_output(context, doffset);
  }
  args.results[0] = doffset.raw_data();
  args.results[1] = dscale.raw_data();
  detail::sum_channels(context, args, dscale.dtype(), 2, *code.gradients, *code.join_gradients);
  args.sums[0] = doffset.raw_data();
  args.sums[1] = dscale.raw_data();
  args.y = dx.raw_data();
  launch(context, *code.normalise_gradient, grid_for(shape.num_elements()), &args);
}

}  // namespace dflow::cuda
