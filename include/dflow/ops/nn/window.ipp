#pragma once

#include <dflow/ops/nn/window.hpp>

#include <optional>
#include <string>

namespace dflow::detail {

WindowPlaces window_places(std::int64_t input, std::int64_t window, std::int64_t stride, Padding padding) {
  if (padding == Padding::valid) return {input < window ? 0 : (input - window) / stride + 1, 0, 0};
  const std::int64_t count = input / stride + (input % stride != 0 ? 1 : 0);
  if (count == 0) return {};
  const std::int64_t last = (count - 1) * stride;  // < input, where the last window begins but for the padding
  const std::int64_t total = window > input - last ? window - (input - last) : 0;
  return {count, total / 2, total - total / 2};
}

std::int64_t infer_window(const InferContext& context, std::string_view dimension, std::int64_t input,
                          std::int64_t window, std::int64_t stride, Padding padding, std::int64_t dilation) {
  if (window == 0) context.fail(str_cat("the window has 0 ", dimension));
  const auto fail = [&](std::string_view what) {
    const std::string apart = dilation == 1 ? "" : str_cat(", ", dilation, " apart,");
    context.fail(str_cat("the window's ", window, " ", dimension, apart, " ", what));
  };
  constexpr std::int64_t limit = std::int64_t{1} << 62;
  if (dilation > 1 && window != dynamic && window - 1 > (limit - 2) / dilation) fail("are 2^62 or more");
  if (input == dynamic || (window == dynamic && padding == Padding::valid)) return dynamic;
  const std::int64_t extent = window == dynamic ? 1 : dilated(window, dilation);
  if (padding == Padding::valid && extent > input) {
    fail(str_cat("do not fit into the input's ", input, " without padding"));
  }
  return window_places(input, extent, stride, padding).count;
}

void require_spatial(const InferContext& context, std::string_view name, const std::vector<std::int64_t>& values) {
  const auto list = [&] {
    std::string text;
    for (const std::int64_t value : values) text += str_cat(text.empty() ? "" : ", ", value);
    return text;
  };
  if (values.size() != 4) context.fail(str_cat(name, " must have 4 elements, got [", list(), "]"));
  if (values[0] != 1 || values[3] != 1) {
    context.fail(str_cat(name, " over batch and channels must be 1, got [", list(), "]"));
  }
  constexpr std::int64_t limit = std::int64_t{1} << 31;
  if (values[1] < 1 || values[2] < 1 || values[1] >= limit || values[2] >= limit) {
    context.fail(str_cat(name, " must be positive and less than 2^31, got [", list(), "]"));
  }
}

void require_nhwc(const InferContext& context, DataFormat format) {
  if (format == DataFormat::nhwc) return;
  context.fail("data_format NCHW is not supported; transpose to NHWC");
}

PartialShape infer_sizes(const InferContext& context, int i) {
  const PartialShape vector = context.with_rank(i, 1);
  if (vector.dim(0) != dynamic && vector.dim(0) != 4) {
    context.fail(str_cat("input ", i, " must have 4 elements, got shape ", vector.to_string()));
  }
  if (const std::optional<std::vector<std::int64_t>> sizes = context.value_as_integers(i)) {
    for (const std::int64_t size : *sizes) {
      if (size < 0) context.fail(str_cat("input ", i, " has the negative size ", size));
    }
  }
  return context.value_as_shape(i).value_or(PartialShape::unknown(4));
}

}  // namespace dflow::detail
