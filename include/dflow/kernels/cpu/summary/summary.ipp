#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/summary/summary.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace dflow {

namespace detail {

/// The tag, after the op's own shape function has seen the step's shapes.
const std::string& checked_tag(const KernelContext& context) {
  static_cast<void>(inferred_shape(context));
  return *context.input<std::string>(0).data();
}

void set_bytes(KernelContext& context, std::string bytes) {
  *context.allocate_output<std::string>(0, {}).data() = std::move(bytes);
}

void run_scalar_summary(KernelContext& context) {
  static_cast<void>(inferred_shape(context));
  const std::span<const std::string> tags = context.input<std::string>(0).span();
  const AnyTensor& values = context.input(1);
  Summary summary;
  summary.values.reserve(tags.size());
  visit_dtype<RealTypes>(values.dtype(), [&]<class T>() {
    const std::span<const T> elements = values.span<T>();
    for (std::size_t i = 0; i < tags.size(); ++i) {
      SummaryValue& value = summary.values.emplace_back();
      value.tag = tags[i];
      value.value = static_cast<float>(elements[i]);
    }
  });
  set_bytes(context, serialize(summary));
}

void run_histogram_summary(KernelContext& context) {
  const std::string& tag = checked_tag(context);
  set_bytes(context, serialize(Summary{{histogram_summary(tag, context.input(1))}}));
}

void run_image_summary(KernelContext& context) {
  const auto& attrs = context.node().attrs_as<ImageSummary>();
  const std::string& tag = checked_tag(context);
  set_bytes(context, serialize(Summary{image_summary(tag, context.input(1), static_cast<int>(attrs.max_images),
                                                     attrs.bad_color.span<std::uint8_t>())}));
}

void run_audio_summary(KernelContext& context) {
  const std::int64_t max_outputs = context.node().attrs_as<AudioSummaryV2>().max_outputs;
  const std::string& tag = checked_tag(context);
  const AnyTensor& samples = context.input(1);
  const float rate = context.scalar_input<float>(2);
  constexpr float max_rate = 4294967040.0f;  // the last float below 2^32
  if (!(rate > 0) || rate > max_rate)
    context.fail(str_cat("sample_rate must be > 0, not ", rate, " (tag '", tag, "')"));
  const Shape shape = samples.shape().subshape(1, samples.rank());
  Summary summary;
  for (std::int64_t i = 0; i < std::min(samples.dim(0), max_outputs); ++i) {
    const std::string name = max_outputs > 1 ? str_cat(tag, "/audio/", i) : str_cat(tag, "/audio");
    summary.values.push_back(audio_summary(name, samples.slice(i, i + 1).reshaped(shape), std::llrint(rate)));
    std::get<SummaryAudio>(summary.values.back().value).sample_rate = rate;
  }
  set_bytes(context, serialize(summary));
}

void run_tensor_summary(KernelContext& context) {
  SummaryValue value;
  value.tag = checked_tag(context);
  value.value = context.input(1);
  try {
    parse_metadata(*context.input<std::string>(2).data(), value);
  } catch (const Error& error) {
    context.fail(str_cat("the metadata of tag '", value.tag, "' are none: ", error.status().message()));
  }
  Summary summary;
  summary.values.push_back(std::move(value));
  set_bytes(context, serialize(summary));
}

/// Messages of one type side by side are one of all their values.
void run_merge_summary(KernelContext& context) {
  std::set<std::string, std::less<>> tags;
  std::string bytes;
  for (int i = 0; i < context.num_inputs(); ++i) {
    for (const std::string& one : context.input<std::string>(i).span()) {
      Summary summary;
      try {
        summary = parse_summary(one);
      } catch (const Error& error) {
        context.fail(str_cat("input ", i, " is no summary: ", error.status().message()));
      }
      for (SummaryValue& value : summary.values) {
        const auto [at, is_new] = tags.insert(std::move(value.tag));
        if (!is_new) context.fail(str_cat("duplicate tag '", *at, "' found in summary inputs"));
      }
      bytes += one;
    }
  }
  set_bytes(context, std::move(bytes));
}

}  // namespace detail

}  // namespace dflow
