#pragma once

#include <dflow/ops/image/boxes.hpp>

#include <optional>

namespace dflow {

void DrawBoundingBoxes::infer(InferContext& context) {
  PartialShape images = context.with_rank(0, 4);
  const PartialShape boxes = context.with_rank(1, 3);
  images = images.with_dim(0, context.merge_dim(images[0], boxes[0]));
  static_cast<void>(context.merge_dim(boxes[2], 4));
  const std::int64_t channels = images[3];
  if (channels != dynamic && channels != 1 && channels != 3 && channels != 4) {
    context.fail(str_cat("images must have 1, 3 or 4 channels, got ", channels));
  }
  context.set_output(0, images);
}

void NonMaxSuppression::infer(InferContext& context) {
  const PartialShape boxes = context.with_rank(0, 2), scores = context.with_rank(1, 1);
  static_cast<void>(context.merge_dim(boxes[0], scores[0]));
  static_cast<void>(context.merge_dim(boxes[1], 4));
  static_cast<void>(context.with_rank(2, 0));
  const float threshold = context.attrs<NonMaxSuppression>().iou_threshold;
  if (!(threshold >= 0 && threshold <= 1)) context.fail(str_cat("iou_threshold ", threshold, " is not in [0, 1]"));
  const std::optional<detail::SmallIntegers> most = detail::known_integers(context, 2);
  if (most && (*most)[0] < 0) context.fail(str_cat("max_output_size ", (*most)[0], " is negative"));
  context.set_output(0, PartialShape::unknown(1));
}

Output<std::int32_t> non_max_suppression(const Output<float>& boxes, const Output<float>& scores,
                                         const Operand<std::int32_t>& max_output_size, float iou_threshold,
                                         const At& at) {
  return Output<std::int32_t>::unchecked(
      build<NonMaxSuppression>({boxes, scores, max_output_size.beside(boxes)}, {.iou_threshold = iou_threshold}, at));
}

}  // namespace dflow
