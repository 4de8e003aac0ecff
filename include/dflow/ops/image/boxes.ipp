#pragma once

#include <dflow/ops/image/boxes.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

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

namespace detail {

/// The share that two boxes have of the area of both; 0 if one has no area.
float overlap_of_boxes(const float* a, const float* b) {
  const auto side = [](const float* box, int axis) { return std::minmax(box[axis], box[axis + 2]); };
  const auto [a_top, a_bottom] = side(a, 0);
  const auto [a_left, a_right] = side(a, 1);
  const auto [b_top, b_bottom] = side(b, 0);
  const auto [b_left, b_right] = side(b, 1);
  const float a_area = (a_bottom - a_top) * (a_right - a_left), b_area = (b_bottom - b_top) * (b_right - b_left);
  if (!(a_area > 0 && b_area > 0)) return 0;
  const float height = std::max(std::min(a_bottom, b_bottom) - std::max(a_top, b_top), 0.0f);
  const float width = std::max(std::min(a_right, b_right) - std::max(a_left, b_left), 0.0f);
  return height * width / (a_area + b_area - height * width);
}

std::vector<std::int32_t> boxes_apart(const Tensor<float>& boxes, const Tensor<float>& scores, std::int64_t most,
                                      float iou_threshold) {
  std::vector<std::int32_t> order, taken;
  for (std::int32_t i = 0; i < scores.num_elements(); ++i) {
    if (std::isfinite(scores.data()[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return scores.data()[a] > scores.data()[b]; });
  const auto box = [&](std::int32_t i) { return boxes.data() + std::int64_t{i} * 4; };
  for (const std::int32_t candidate : order) {
    if (static_cast<std::int64_t>(taken.size()) >= most) break;
    const bool is_covered = std::ranges::any_of(
        taken, [&](std::int32_t other) { return overlap_of_boxes(box(candidate), box(other)) > iou_threshold; });
    if (!is_covered) taken.push_back(candidate);
  }
  return taken;
}

}  // namespace detail

void NonMaxSuppression::infer(InferContext& context) {
  const PartialShape boxes = context.with_rank(0, 2), scores = context.with_rank(1, 1);
  static_cast<void>(context.merge_dim(boxes[0], scores[0]));
  static_cast<void>(context.merge_dim(boxes[1], 4));
  static_cast<void>(context.with_rank(2, 0));
  const float threshold = context.attrs<NonMaxSuppression>().iou_threshold;
  if (!(threshold >= 0 && threshold <= 1)) context.fail(str_cat("iou_threshold ", threshold, " is not in [0, 1]"));
  const std::optional<detail::SmallIntegers> most = detail::known_integers(context, 2);
  if (most && (*most)[0] < 0) context.fail(str_cat("max_output_size ", (*most)[0], " is negative"));
  if (scores[0] > std::numeric_limits<std::int32_t>::max()) context.fail("there are too many boxes");
  const AnyTensor *const of_boxes = context.value(0), *const of_scores = context.value(1);
  std::int64_t count = dynamic;
  if (of_boxes != nullptr && of_scores != nullptr && most) {
    const auto& corners = Tensor<float>::of(*of_boxes);
    const auto& marks = Tensor<float>::of(*of_scores);
    count = static_cast<std::int64_t>(detail::boxes_apart(corners, marks, (*most)[0], threshold).size());
  }
  context.set_output(0, PartialShape{count});
}

Output<std::int32_t> non_max_suppression(const Output<float>& boxes, const Output<float>& scores,
                                         const Operand<std::int32_t>& max_output_size, float iou_threshold,
                                         const At& at) {
  return Output<std::int32_t>::unchecked(
      build<NonMaxSuppression>({boxes, scores, max_output_size.beside(boxes)}, {.iou_threshold = iou_threshold}, at));
}

}  // namespace dflow
