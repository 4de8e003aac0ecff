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

/// Takes the boxes with the highest scores, and leaves out each box that overlaps a taken box too much: boxes [n, 4],
/// scores [n], and the scalar max_output_size.
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

/// The images with the edges of boxes drawn on them. images: [batch, height, width, channels] with 1, 3 or 4 channels,
/// and numbers from 0 to 1. boxes: [batch, n, 4]. A box is y1, x1, y2, x2, as shares of the image from 0 to 1.
///
/// The edges are one pixel wide. Ten colours follow each other from box to box. In images of one channel the edges are
/// white. A box is drawn only if y1 <= y2 and x1 <= x2. An edge outside of the image is not drawn.
///
/// Errors: InvalidArgument for other shapes.
template <AllowedFor<DrawBoundingBoxes> T>
Output<T> draw_bounding_boxes(const Output<T>& images, const Output<float>& boxes, const At& at = {}) {
  return Output<T>::unchecked(build<DrawBoundingBoxes>({images, boxes}, {}, at));
}

/// The numbers of at most `max_output_size` boxes, the highest score first. boxes: [n, 4], a box is y1, x1, y2, x2.
/// scores: [n].
///
/// The overlap of two boxes is the area of their intersection by the area of their union. A box is left out if its
/// overlap with a taken box is larger than `iou_threshold`. A box is also left out if its score is not finite. If two
/// scores are equal, the first box is taken.
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
