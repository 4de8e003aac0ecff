#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/io/summary/summary.hpp>
#include <dflow/ops/summary/summary_op.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace dflow {

// Ops that turn values of a step into summaries for TensorBoard. Each op gives the bytes of a Summary
// (io/summary/summary.hpp) as a scalar, which `EventWriter::add_summary` writes to a file.

/// Numbers under tags: tags and values have one shape. NaN and infinity are valid numbers. Errors: InvalidArgument for
/// tags and values of different shapes.
struct ScalarSummary : SummaryOp<"ScalarSummary", RealTypes> {
  using Inputs = In<std::string, T>;
  static void infer(InferContext& context);
};

/// The distribution of a tensor's elements: tag [], values of any shape. Errors: InvalidArgument for an element that is
/// NaN or infinite. The message names the tag.
struct HistogramSummary : SummaryOp<"HistogramSummary", RealTypes> {
  using Inputs = In<std::string, T>;
  static void infer(InferContext& context);
};

/// Images: tag [], tensor [batch, height, width, channels] with 1, 3 or 4 channels. Pixels are scaled as by the
/// function `image_summary` of a tensor. Errors: InvalidArgument for other shapes, and for images without pixels.
struct ImageSummary : SummaryOp<"ImageSummary", TypeList<std::uint8_t, float, Half, double, BFloat16>> {
  struct Attrs {
    std::int64_t max_images = 3;  ///< of a batch; at least 1
    /// uint8 [channels or more]: the colour of a pixel that has a value that is not finite.
    AnyTensor bad_color = Tensor<std::uint8_t>({4}, {255, 0, 0, 255});
  };
  using Inputs = In<std::string, T>;
  static void infer(InferContext& context);
};

/// Sounds: tag [], tensor [batch, frames] or [batch, frames, channels] in -1 to 1, sample_rate [] in samples a second.
/// Errors: InvalidArgument for other shapes, and for a rate that a WAV file cannot have.
struct AudioSummaryV2 : SummaryOp<"AudioSummaryV2"> {
  struct Attrs {
    std::int64_t max_outputs = 3;  ///< of a batch; at least 1
  };
  using Inputs = In<std::string, float, float>;
  static void infer(InferContext& context);
};

/// A tensor for a plugin of TensorBoard: tag [], tensor of any shape, serialized_summary_metadata [], the bytes that
/// `serialize_metadata` gives. Errors: InvalidArgument for other bytes.
struct TensorSummaryV2 : SummaryOp<"TensorSummaryV2", AllTypes> {
  using Inputs = In<std::string, T, std::string>;
  static void infer(InferContext& context);
};

/// All values of its inputs, in their order; an input may be several summaries. Errors: InvalidArgument for a tag that
/// occurs twice, and for bytes that are no Summary.
struct MergeSummary : SummaryOp<"MergeSummary"> {
  struct Attrs {
    std::int64_t N = 1;
  };
  using Inputs = In<List<std::string, "N">>;
  static void infer(InferContext& context);
};

/// The graph's collection of summaries, in the order in which they are built. `merge_all_summaries` reads it. The
/// builders below add their nodes to it, except the builders that merge. A node in the body of a function, branch or
/// loop has no value outside of the body and is not added. If the body returns a summary, the caller can add the
/// returned value.
inline constexpr std::string_view summaries_collection = "summaries";

namespace detail {
Output<std::string> any_scalar_summary(std::string_view tag, const AnyOutput& value, const At& at);
Output<std::string> any_histogram_summary(std::string_view tag, const AnyOutput& values, const At& at);
Output<std::string> any_image_summary(std::string_view tag, const AnyOutput& image, ImageSummary::Attrs attrs,
                                      const At& at);
Output<std::string> any_tensor_summary(std::string_view tag, const AnyOutput& tensor, const SummaryValue& shown,
                                       const At& at);
}  // namespace detail

/// value: []. TensorBoard groups tags by the part before a '/'.
///
/// ```cpp
/// df::scalar_summary("train/loss", loss);
/// df::histogram_summary("layer1/weights", w);
/// auto all = df::merge_all_summaries(graph);
/// events.add_summary(session.run(feeds, all), step);
/// ```
/// Errors: InvalidArgument for a value that is no scalar.
template <AllowedFor<ScalarSummary> T>
Output<std::string> scalar_summary(std::string_view tag, const Output<T>& value, const At& at = {}) {
  return detail::any_scalar_summary(tag, value, at);
}
/// values: any shape.
template <AllowedFor<HistogramSummary> T>
Output<std::string> histogram_summary(std::string_view tag, const Output<T>& values, const At& at = {}) {
  return detail::any_histogram_summary(tag, values, at);
}
/// images: [batch, height, width, channels], uint8 or floats.
template <AllowedFor<ImageSummary> T>
Output<std::string> image_summary(std::string_view tag, const Output<T>& images, ImageSummary::Attrs attrs = {},
                                  const At& at = {}) {
  return detail::any_image_summary(tag, images, std::move(attrs), at);
}
/// samples: [batch, frames] or [batch, frames, channels] in -1 to 1; sample_rate: [].
Output<std::string> audio_summary(std::string_view tag, const Operand<float>& samples,
                                  const Operand<float>& sample_rate, const AudioSummaryV2::Attrs& attrs = {},
                                  const At& at = {});
/// text: Markdown, []; text of other shapes is shown as a table.
Output<std::string> text_summary(std::string_view tag, const Output<std::string>& text, const At& at = {});
/// A tensor for the plugin of TensorBoard that `shown` names. Only the members of `shown` after its `value` are used.
template <AllowedFor<TensorSummaryV2> T>
Output<std::string> tensor_summary(std::string_view tag, const Output<T>& tensor, const SummaryValue& shown = {},
                                   const At& at = {}) {
  return detail::any_tensor_summary(tag, tensor, shown, at);
}

/// Merges all given summaries into one. Errors: InvalidArgument if there are none.
Output<std::string> merge_summaries(std::span<const Output<std::string>> summaries, const At& at = {});
inline Output<std::string> merge_summaries(std::initializer_list<Output<std::string>> summaries, const At& at = {}) {
  return merge_summaries(std::span(summaries.begin(), summaries.size()), at);
}

/// Merges the summaries in the graph's collection `name` into one. `has_summaries` tells whether the collection has
/// any. Summaries built later are not included. Errors: InvalidArgument for an empty collection, and for a collection
/// that holds other nodes.
Output<std::string> merge_all_summaries(GraphStore& graph, std::string_view name = summaries_collection,
                                        const At& at = {});
inline Output<std::string> merge_all_summaries(Graph& graph, std::string_view name = summaries_collection,
                                               const At& at = {}) {
  return merge_all_summaries(*graph.store(), name, at);
}
bool has_summaries(const GraphStore& graph, std::string_view name = summaries_collection);

}  // namespace dflow
