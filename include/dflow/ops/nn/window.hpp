#pragma once

#include <dflow/base/status.hpp>
#include <dflow/graph/infer_context.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dflow {

/// The places where a sliding window may stand. `valid`: inside the input. `same`: one position per `stride` elements
/// of the input. The input is extended by the least padding that is needed, the odd element at the end (bottom, right).
enum class Padding : std::uint8_t { valid, same };

constexpr std::array<std::string_view, 2> attr_enum_names(Padding) { return {"VALID", "SAME"}; }

/// The order of an image tensor's dimensions. Convolution and pooling know NHWC. NCHW is named here only to refuse a
/// graph that asks for it with a clear message.
enum class DataFormat : std::uint8_t { nhwc, nchw };

constexpr std::array<std::string_view, 2> attr_enum_names(DataFormat) { return {"NHWC", "NCHW"}; }

namespace detail {

/// How a window moves along one dimension.
struct WindowPlaces {
  std::int64_t count = 0;       ///< positions, the output's extent
  std::int64_t pad_before = 0;  ///< padding before the first element
  std::int64_t pad_after = 0;
};

/// TensorFlow's rule: VALID has ceil((input - window + 1) / stride) positions, SAME has ceil(input / stride). SAME
/// splits the padding that the last position needs in half. A window larger than the input has no position under VALID.
///
/// Precondition: input >= 0, window > 0, stride > 0.
WindowPlaces window_places(std::int64_t input, std::int64_t window, std::int64_t stride, Padding padding);

/// The extent of a window of `size` elements that are `dilation` apart.
constexpr std::int64_t dilated(std::int64_t size, std::int64_t dilation) { return (size - 1) * dilation + 1; }

/// The output's extent of one dimension, `dynamic` if the input's or the window's is. Fails if a VALID window is larger
/// than the input, or a dilated window is 2^62 or more. `dimension` ("rows", "columns") is for the message.
std::int64_t infer_window(const InferContext& context, std::string_view dimension, std::int64_t input,
                          std::int64_t window, std::int64_t stride, Padding padding, std::int64_t dilation = 1);

/// Fails unless `values` (the attribute `name`) are [1, rows, columns, 1] with rows and columns in [1, 2^31).
void require_spatial(const InferContext& context, std::string_view name, const std::vector<std::int64_t>& values);

/// Fails unless the format is NHWC.
void require_nhwc(const InferContext& context, DataFormat format);

/// Input `i`, a vector of four extents of a tensor, as far as it is known. Fails if its length is not 4 or if an extent
/// is negative.
PartialShape infer_sizes(const InferContext& context, int i);

}  // namespace detail

}  // namespace dflow
