#pragma once

#include <dflow/ops/nn/ctc_decoders.hpp>

namespace dflow {

namespace detail {

PartialShape infer_ctc_inputs(InferContext& context, int lengths);

/// The outputs of `paths` sparse matrices, then their scores.
void infer_decoded(InferContext& context, int paths) {
  const std::int64_t batch = infer_ctc_inputs(context, 1)[1];
  for (int p = 0; p < paths; ++p) {
    context.set_output(p, PartialShape{dynamic, 2});
    context.set_output(paths + p, PartialShape{dynamic});
    context.set_output(2 * paths + p, Shape{2});
  }
  context.set_output(3 * paths, PartialShape{batch, paths});
}

SparseOutput<std::int64_t> decoded_labels(const BuiltNode& node, int path, int paths) {
  return {Output<std::int64_t>::unchecked(node.output(path)),
          Output<std::int64_t>::unchecked(node.output(paths + path)),
          Output<std::int64_t>::unchecked(node.output(2 * paths + path))};
}

}  // namespace detail

void CTCGreedyDecoder::infer(InferContext& context) { detail::infer_decoded(context, 1); }

void CTCBeamSearchDecoder::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<CTCBeamSearchDecoder>();
  if (attrs.top_paths < 1) context.fail(str_cat("top_paths = ", attrs.top_paths, " is below 1"));
  if (attrs.beam_width < attrs.top_paths || attrs.beam_width > max_beam_width) {
    context.fail(str_cat("beam_width = ", attrs.beam_width, " is outside [top_paths, ", max_beam_width,
                         "], top_paths = ", attrs.top_paths));
  }
  detail::infer_decoded(context, static_cast<int>(attrs.top_paths));
}

}  // namespace dflow
