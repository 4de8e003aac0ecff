#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/image/color.hpp>

#include <array>
#include <cstdint>

/// Parts of images in boxes. The function gathers pixels and mixes them, so it has gradients of every
/// order, by images and by boxes.

namespace dflow {

/// How `crop_and_resize` finds the pixels.
enum class CropMethod : std::uint8_t { bilinear, nearest };

/// The options of crop_and_resize.
struct CropAndResizeOptions {
  CropMethod method = CropMethod::bilinear;
  float extrapolation_value = 0;  ///< of pixels that lie outside of their image
};

namespace detail {
AnyOutput any_crop_and_resize(const AnyOutput& images, const AnyOutput& boxes, const AnyOutput& box_indices,
                              std::array<std::int64_t, 2> size, const CropAndResizeOptions& options, const At& at);
}  // namespace detail

/// The part of image box_indices[i] in boxes[i], for each i, in one size: images [batch, height, width, channels],
/// boxes [n, 4], box_indices [n] gives [n, size[0], size[1], channels]. A box is y1, x1, y2, x2: 0 is the first row or
/// column, and 1 the last one. The corners of the result are those of the box; a box with y1 > y2 is upside down.
///
/// ```cpp
/// auto faces = df::crop_and_resize(images, boxes, df::cast<std::int32_t>(owners), {64, 64});
/// ```
/// Errors: InvalidArgument for other ranks, images without pixels, or a size that is not positive; in the step for an
/// index that is no image.
template <detail::ImageElement T>
Output<float> crop_and_resize(const Output<T>& images, const Output<float>& boxes,
                              const Output<std::int32_t>& box_indices, std::array<std::int64_t, 2> size,
                              const CropAndResizeOptions& options = {}, const At& at = {}) {
  return Output<float>::unchecked(detail::any_crop_and_resize(images, boxes, box_indices, size, options, at));
}

}  // namespace dflow
