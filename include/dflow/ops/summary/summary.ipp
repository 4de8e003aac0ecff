#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/summary/summary.hpp>

#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// " (tag 'x')" where input 0 is one tag that is known.
std::string shown_tag(const InferContext& context) {
  const AnyTensor* tags = context.value(0);
  if (tags == nullptr || tags->dtype() != DType::string || tags->num_elements() != 1) return {};
  return str_cat(" (tag '", *tags->as<std::string>().data(), "')");
}

/// Input `i` is one element.
void require_scalar(const InferContext& context, int i, std::string_view what) {
  const PartialShape& shape = context.input(i);
  if (shape.has_rank() && shape.rank() != 0) context.fail(str_cat(what, " must be a scalar, not ", shape.to_string()));
}

void require_at_least_one(const InferContext& context, std::int64_t value, std::string_view what) {
  constexpr std::int64_t most = 0x7fffffff;
  if (value < 1 || value > most) context.fail(str_cat(what, " must be 1 to ", most, ", not ", value));
}

/// Appends a node of the collection, if it has a value outside of the body of a function, branch or loop.
template <class O>
Output<std::string> summary_node(GraphStore& graph, std::initializer_list<AnyOutput> inputs, typename O::Attrs attrs,
                                 const At& at) {
  const BuiltNode node = build<O>(inputs, std::move(attrs), at);
  const Operation summary = node.operation();
  if (!summary.node().function.is_valid()) graph.add_to_collection(summaries_collection, summary.node_id());
  return Output<std::string>::unchecked(node.output(0));
}

AnyOutput text_constant(GraphStore& graph, std::string_view text, const At& at) {
  return constant(graph, Tensor<std::string>(std::string(text)), {.where = at.where});
}

}  // namespace detail

void ScalarSummary::infer(InferContext& context) {
  const PartialShape &tags = context.input(0), &values = context.input(1);
  if (!tags.is_compatible_with(values)) {
    context.fail(str_cat("tags and values are not the same shape: ", tags.to_string(), " != ", values.to_string(),
                         detail::shown_tag(context)));
  }
  context.set_output(0, Shape{});
}

void HistogramSummary::infer(InferContext& context) {
  detail::require_scalar(context, 0, "the tag");
  context.set_output(0, Shape{});
}

void ImageSummary::infer(InferContext& context) {
  const auto& attrs = context.attrs<ImageSummary>();
  const PartialShape& images = context.input(1);
  detail::require_scalar(context, 0, "the tag");
  detail::require_at_least_one(context, attrs.max_images, "max_images");
  if (attrs.bad_color.dtype() != DType::uint8) {
    context.fail(str_cat("bad_color must be uint8, not ", dtype_name(attrs.bad_color.dtype())));
  }
  if (attrs.bad_color.rank() != 1) {
    context.fail(str_cat("bad_color must be a vector, not ", attrs.bad_color.shape().to_string()));
  }
  if (images.has_rank()) {
    const std::int64_t channels = images.rank() == 4 ? images[3] : 0;
    if (channels != 1 && channels != 3 && channels != 4 && channels != dynamic) {
      context.fail(
          str_cat("images must be 4-D with last dim 1, 3, or 4, not ", images.to_string(), detail::shown_tag(context)));
    }
    if (context.input_dtype(1) != DType::uint8 && channels > attrs.bad_color.num_elements()) {
      context.fail(str_cat("bad_color has ", attrs.bad_color.num_elements(), " of ", channels, " channels"));
    }
  }
  context.set_output(0, Shape{});
}

void AudioSummaryV2::infer(InferContext& context) {
  const PartialShape& samples = context.input(1);
  detail::require_scalar(context, 0, "the tag");
  detail::require_scalar(context, 2, "sample_rate");
  detail::require_at_least_one(context, context.attrs<AudioSummaryV2>().max_outputs, "max_outputs");
  if (samples.has_rank() && samples.rank() != 2 && samples.rank() != 3) {
    context.fail(str_cat("sound must be 3-D or 2-D, not ", samples.to_string(), detail::shown_tag(context)));
  }
  context.set_output(0, Shape{});
}

void TensorSummaryV2::infer(InferContext& context) {
  detail::require_scalar(context, 0, "the tag");
  detail::require_scalar(context, 2, "serialized_summary_metadata");
  context.set_output(0, Shape{});
}

void MergeSummary::infer(InferContext& context) {
  if (context.num_inputs() == 0) context.fail("there is no summary to merge");
  context.set_output(0, Shape{});
}

Output<std::string> detail::any_scalar_summary(std::string_view tag, const AnyOutput& value, const At& at) {
  GraphStore& graph = graph_of({&value, 1}, ScalarSummary::name, at);
  return summary_node<ScalarSummary>(graph, {text_constant(graph, tag, at), value}, {}, at);
}

Output<std::string> detail::any_histogram_summary(std::string_view tag, const AnyOutput& values, const At& at) {
  GraphStore& graph = graph_of({&values, 1}, HistogramSummary::name, at);
  return summary_node<HistogramSummary>(graph, {text_constant(graph, tag, at), values}, {}, at);
}

Output<std::string> detail::any_image_summary(std::string_view tag, const AnyOutput& image, ImageSummary::Attrs attrs,
                                              const At& at) {
  GraphStore& graph = graph_of({&image, 1}, ImageSummary::name, at);
  return summary_node<ImageSummary>(graph, {text_constant(graph, tag, at), image}, std::move(attrs), at);
}

Output<std::string> detail::any_tensor_summary(std::string_view tag, const AnyOutput& tensor, const SummaryValue& shown,
                                               const At& at) {
  GraphStore& graph = graph_of({&tensor, 1}, TensorSummaryV2::name, at);
  const AnyOutput metadata = text_constant(graph, serialize_metadata(shown), at);
  return summary_node<TensorSummaryV2>(graph, {text_constant(graph, tag, at), tensor, metadata}, {}, at);
}

Output<std::string> audio_summary(std::string_view tag, const Operand<float>& samples,
                                  const Operand<float>& sample_rate, const AudioSummaryV2::Attrs& attrs, const At& at) {
  const AnyOutput edge = samples.beside(sample_rate);
  GraphStore& graph = detail::graph_of({&edge, 1}, AudioSummaryV2::name, at);
  return detail::summary_node<AudioSummaryV2>(
      graph, {detail::text_constant(graph, tag, at), edge, sample_rate.beside(edge)}, attrs, at);
}

Output<std::string> text_summary(std::string_view tag, const Output<std::string>& text, const At& at) {
  return detail::any_tensor_summary(tag, text, text_summary(tag, std::string_view()), at);
}

Output<std::string> merge_summaries(std::span<const Output<std::string>> summaries, const At& at) {
  const std::vector<AnyOutput> edges(summaries.begin(), summaries.end());
  return Output<std::string>::unchecked(
      build<MergeSummary>(std::span<const AnyOutput>(edges), {.N = static_cast<std::int64_t>(edges.size())}, at));
}

Output<std::string> merge_all_summaries(GraphStore& graph, std::string_view name, const At& at) {
  std::vector<AnyOutput> edges;
  for (const NodeId node : graph.collection(name)) edges.emplace_back(&graph, Endpoint{node, 0});
  return Output<std::string>::unchecked(build<MergeSummary>(graph, std::span<const AnyOutput>(edges),
                                                            {.N = static_cast<std::int64_t>(edges.size())}, at));
}

bool has_summaries(const GraphStore& graph, std::string_view name) { return !graph.collection(name).empty(); }

}  // namespace dflow
