#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <cstdint>
#include <vector>

namespace dflow {

/// The images with the edges of boxes drawn on them: images [batch, height, width, channels], boxes [batch, n, 4].
struct DrawBoundingBoxes : StandardOp<"DrawBoundingBoxes", FloatTypes> {
  using Inputs = In<T, float>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The boxes of the highest scores, of which none covers much of another: boxes [n, 4], scores [n], max_output_size, a
/// scalar.
struct NonMaxSuppression : StandardOp<"NonMaxSuppression"> {
  struct Attrs {
    float iou_threshold = 0.5f;
  };
  using Inputs = In<float, float, std::int32_t>;
  using Outputs = Out<std::int32_t>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace detail {
/// The numbers of the boxes that NonMaxSuppression takes. Precondition: the shapes fit, and `most` is not negative.
std::vector<std::int32_t> boxes_apart(const Tensor<float>& boxes, const Tensor<float>& scores, std::int64_t most,
                                      float iou_threshold);
}  // namespace detail

/// images: [batch, height, width, channels] with 1, 3 or 4 channels, and numbers from 0 to 1; boxes: [batch, n, 4], of
/// y1, x1, y2, x2 as shares of the image, from 0 to 1. The edges are one pixel wide, in ten colours that follow each
/// other, and white in images of one channel. A box without y1 <= y2 and x1 <= x2 is not drawn, nor are edges outside.
///
/// Errors: InvalidArgument for other shapes.
template <AllowedFor<DrawBoundingBoxes> T>
Output<T> draw_bounding_boxes(const Output<T>& images, const Output<float>& boxes, const At& at = {}) {
  return Output<T>::unchecked(build<DrawBoundingBoxes>({images, boxes}, {}, at));
}

/// The numbers of at most `max_output_size` boxes, those of the highest scores first: boxes [n, 4] of y1, x1, y2, x2,
/// scores [n]. A box is left out if it shares more than `iou_threshold` of the area of both with one that is taken, or
/// its score is not a finite number. Of equal scores the first box is taken.
///
/// ```cpp
/// auto taken = df::non_max_suppression(boxes, scores, 100, 0.7f);
/// auto best = df::gather(boxes, taken);
/// ```
/// Errors: InvalidArgument for other shapes, more than 2^31 - 1 boxes, a negative size, or a threshold outside of [0,
/// 1].
Output<std::int32_t> non_max_suppression(const Output<float>& boxes, const Output<float>& scores,
                                         const Operand<std::int32_t>& max_output_size, float iou_threshold = 0.5f,
                                         const At& at = {});

}  // namespace dflow
