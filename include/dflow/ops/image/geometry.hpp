#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/slice.hpp>

#include <cstdint>

/// Flips, turns, crops and paddings of images, as TensorFlow's tf.image has them. Each function is made of
/// slices, reversals and paddings, so it has gradients of every order.
///
/// Images are [height, width, channels] or [batch, height, width, channels], of any element type. Functions that count
/// from behind (flips and crops by offsets) take other ranks of 3 or more, too.

namespace dflow {

namespace detail {

AnyOutput any_flip(const AnyOutput& images, int axis_from_end, const At& at);
AnyOutput any_transpose_image(const AnyOutput& images, const At& at);
AnyOutput any_rot90(const AnyOutput& images, std::int64_t times, const At& at);
AnyOutput any_random_flip(const AnyOutput& images, int axis_from_end, std::uint64_t seed, const At& at);
AnyOutput any_random_crop(const AnyOutput& x, const IndexList& size, std::uint64_t seed, const At& at);
AnyOutput any_central_crop(const AnyOutput& images, double fraction, const At& at);

/// A box of pixels.
struct PixelBox {
  std::int64_t offset_height, offset_width, height, width;
};
AnyOutput any_crop_to_box(const AnyOutput& images, const PixelBox& box, const At& at);
AnyOutput any_pad_to_box(const AnyOutput& images, const PixelBox& box, const At& at);
AnyOutput any_crop_or_pad(const AnyOutput& images, std::int64_t height, std::int64_t width, const At& at);

}  // namespace detail

/// The images with left and right exchanged. Errors: InvalidArgument if images has fewer than 3 dimensions.
template <AllowedFor<Slice> T>
Output<T> flip_left_right(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_flip(images, 2, at));
}
/// The images upside down. Errors: as flip_left_right.
template <AllowedFor<Slice> T>
Output<T> flip_up_down(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_flip(images, 3, at));
}
/// Each image by chance, with probability 1/2, with left and right exchanged; images of a batch each for itself, drawn
/// anew in each step.
///
/// Errors: InvalidArgument unless the rank is known and 3 or 4.
template <AllowedFor<Slice> T>
Output<T> random_flip_left_right(const Output<T>& images, std::uint64_t seed = 0, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_flip(images, 2, seed, at));
}
/// The same upside down.
template <AllowedFor<Slice> T>
Output<T> random_flip_up_down(const Output<T>& images, std::uint64_t seed = 0, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_flip(images, 3, seed, at));
}
/// Height and width exchanged: [h, w, c] becomes [w, h, c]. Errors: InvalidArgument unless the rank is known and 3
/// or 4.
template <AllowedFor<Slice> T>
Output<T> transpose_image(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_transpose_image(images, at));
}
/// The images turned counter-clockwise by 90 degrees as many times, clockwise if that is negative. Errors: as
/// transpose_image.
template <AllowedFor<Slice> T>
Output<T> rot90(const Output<T>& images, std::int64_t times = 1, const At& at = {}) {
  return Output<T>::unchecked(detail::any_rot90(images, times, at));
}

/// A part of x of the given size, one number for each dimension, at a position drawn anew in each step.
///
/// ```cpp
/// auto patch = df::random_crop(image, {24, 24, 3});
/// ```
/// Errors: InvalidArgument if the size has not one entry per dimension, or is larger than x; in the step if that is
/// known only there.
template <AllowedFor<Slice> T>
Output<T> random_crop(const Output<T>& x, const IndexList& size, std::uint64_t seed = 0, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_crop(x, size, seed, at));
}

/// The middle of the images, `fraction` of their height and width: 0.5 of 8 x 8 pixels is 4 x 4.
///
/// Errors: InvalidArgument unless 0 < fraction <= 1, and the rank is known and 3 or 4.
template <AllowedFor<Slice> T>
Output<T> central_crop(const Output<T>& images, double fraction, const At& at = {}) {
  return Output<T>::unchecked(detail::any_central_crop(images, fraction, at));
}
/// The box of `height` x `width` pixels whose upper left corner is at the offsets.
///
/// Errors: InvalidArgument if the box is empty or reaches outside of the images, or the rank is not known, or not 3 or
/// 4; in the step if that is known only there.
template <AllowedFor<Slice> T>
Output<T> crop_to_bounding_box(const Output<T>& images, std::int64_t offset_height, std::int64_t offset_width,
                               std::int64_t height, std::int64_t width, const At& at = {}) {
  return Output<T>::unchecked(detail::any_crop_to_box(images, {offset_height, offset_width, height, width}, at));
}
/// The images with their upper left corner at the offsets in `height` x `width` pixels; the others are zeros.
///
/// Errors: InvalidArgument if the images do not fit, and as crop_to_bounding_box.
template <AllowedFor<Pad> T>
Output<T> pad_to_bounding_box(const Output<T>& images, std::int64_t offset_height, std::int64_t offset_width,
                              std::int64_t height, std::int64_t width, const At& at = {}) {
  return Output<T>::unchecked(detail::any_pad_to_box(images, {offset_height, offset_width, height, width}, at));
}
/// The middle of the images where they are larger than `height` x `width`, and zeros around them where they are
/// smaller.
///
/// Errors: InvalidArgument if height or width is not positive, or the rank is not known, or not 3 or 4.
template <AllowedFor<Pad> T>
Output<T> resize_image_with_crop_or_pad(const Output<T>& images, std::int64_t height, std::int64_t width,
                                        const At& at = {}) {
  return Output<T>::unchecked(detail::any_crop_or_pad(images, height, width, at));
}

}  // namespace dflow
