#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <type_traits>

/// Colours of images, as TensorFlow's tf.image has them. Each function is made of ops that are there, so it has
/// gradients of every order where its formula has.
///
/// Images have their colours last: [..., height, width, channels]. Floats are numbers from 0 to 1, and integers from 0
/// to the largest of their type. A function that computes does so in float, or in double for images of double; integers
/// are scaled to [0, 1] before it, and back after it, where what lies outside becomes the nearest end.

namespace dflow {

namespace detail {

AnyOutput any_convert_image(const AnyOutput& images, DType to, const At& at);
AnyOutput any_rgb_to_hsv(const AnyOutput& images, const At& at);
AnyOutput any_hsv_to_rgb(const AnyOutput& images, const At& at);
AnyOutput any_rgb_to_grayscale(const AnyOutput& images, const At& at);
AnyOutput any_grayscale_to_rgb(const AnyOutput& images, const At& at);
AnyOutput any_per_image_standardization(const AnyOutput& images, const At& at);

/// How `any_adjust` changes images by a number.
enum class Adjustment : std::uint8_t { brightness, contrast, hue, saturation };
/// amount: a scalar of float.
AnyOutput any_adjust(Adjustment adjustment, const AnyOutput& images, const AnyOutput& amount, const At& at);
/// The amount is drawn from [low, high) in each step.
AnyOutput any_adjust_randomly(Adjustment adjustment, const AnyOutput& images, double low, double high,
                              std::uint64_t seed, const At& at);
AnyOutput any_adjust_gamma(const AnyOutput& images, const AnyOutput& gamma, const AnyOutput& gain, const At& at);

template <class T>
concept ImageElement = contains_v<T, RealTypes>;

}  // namespace detail

/// The images with elements of the type To. Floats in [0, 1] become integers in [0, largest], and the other way round;
/// between integers the number is scaled by a power of two.
///
/// ```cpp
/// auto pixels = df::convert_image_dtype<float>(bytes);  // 255 becomes 1
/// ```
template <detail::ImageElement To, detail::ImageElement T>
Output<To> convert_image_dtype(const Output<T>& images, const At& at = {}) {
  return Output<To>::unchecked(detail::any_convert_image(images, dtype_of<To>, at));
}

/// Hue, saturation and value, all in [0, 1], of red, green and blue (Smith 1978, "Color gamut transform pairs"):
/// images:
/// [..., 3]. Where the hue is not defined, it is 0.
///
/// Errors: InvalidArgument if the last dimension is not 3, in the step if it is known only there.
template <Element T>
  requires is_floating_element<T>
Output<T> rgb_to_hsv(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_rgb_to_hsv(images, at));
}
/// The inverse of rgb_to_hsv. Errors: as there.
template <Element T>
  requires is_floating_element<T>
Output<T> hsv_to_rgb(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_hsv_to_rgb(images, at));
}

/// The lightness of each pixel, 0.2989 R + 0.587 G + 0.114 B: [..., 3] becomes [..., 1].
///
/// Errors: InvalidArgument if the last dimension is not 3.
template <detail::ImageElement T>
Output<T> rgb_to_grayscale(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_rgb_to_grayscale(images, at));
}
/// The lightness as red, green and blue: [..., 1] becomes [..., 3].
///
/// Errors: InvalidArgument if the last dimension is known and not 1.
template <detail::ImageElement T>
Output<T> grayscale_to_rgb(const Output<T>& images, const At& at = {}) {
  return Output<T>::unchecked(detail::any_grayscale_to_rgb(images, at));
}

/// Each image of [..., height, width, channels] with mean 0 and variance 1: TensorFlow's per_image_whitening. The
/// deviation counts for at least 1 / sqrt(height * width * channels), which keeps uniform images finite. Integers are
/// not scaled; the result is float, or double for images of double.
///
/// Errors: InvalidArgument if images has fewer than 3 dimensions.
template <detail::ImageElement T>
auto per_image_standardization(const Output<T>& images, const At& at = {}) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  return Output<Real>::unchecked(detail::any_per_image_standardization(images, at));
}

// Adjustments. The second argument is a number, or a scalar edge.
//
// ```cpp
// auto brighter = df::adjust_brightness(images, 0.1f);
// ```
// Errors: InvalidArgument for an edge that is known to be no scalar; adjust_contrast: for images of fewer than 3
// dimensions; adjust_hue and adjust_saturation: if the last dimension is not 3.

/// x + delta.
template <detail::ImageElement T>
Output<T> adjust_brightness(const Output<T>& images, const std::type_identity_t<Operand<float>>& delta,
                            const At& at = {}) {
  return Output<T>::unchecked(detail::any_adjust(detail::Adjustment::brightness, images, delta.beside(images), at));
}
/// (x - mean) * factor + mean, with the mean of each channel of each image.
template <detail::ImageElement T>
Output<T> adjust_contrast(const Output<T>& images, const std::type_identity_t<Operand<float>>& factor,
                          const At& at = {}) {
  return Output<T>::unchecked(detail::any_adjust(detail::Adjustment::contrast, images, factor.beside(images), at));
}
/// The hue turned by `delta` of the whole circle.
template <detail::ImageElement T>
Output<T> adjust_hue(const Output<T>& images, const std::type_identity_t<Operand<float>>& delta, const At& at = {}) {
  return Output<T>::unchecked(detail::any_adjust(detail::Adjustment::hue, images, delta.beside(images), at));
}
/// The saturation multiplied by `factor`, and at most 1.
template <detail::ImageElement T>
Output<T> adjust_saturation(const Output<T>& images, const std::type_identity_t<Operand<float>>& factor,
                            const At& at = {}) {
  return Output<T>::unchecked(detail::any_adjust(detail::Adjustment::saturation, images, factor.beside(images), at));
}
/// gain * x ^ gamma. Errors: InvalidArgument for a negative gamma, in the step if it is an edge.
template <detail::ImageElement T>
Output<T> adjust_gamma(const Output<T>& images, const std::type_identity_t<Operand<float>>& gamma,
                       const std::type_identity_t<Operand<float>>& gain = 1.0f, const At& at = {}) {
  return Output<T>::unchecked(detail::any_adjust_gamma(images, gamma.beside(images), gain.beside(images), at));
}

// Random adjustments: one amount for all images, drawn anew in each step. A seed of 0: from the graph's seed, or
// another on each device.
//
// Errors: InvalidArgument for an empty or negative range, beside those of the adjustments.

/// By a delta from [-max_delta, max_delta).
template <detail::ImageElement T>
Output<T> random_brightness(const Output<T>& images, double max_delta, std::uint64_t seed = 0, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_adjust_randomly(detail::Adjustment::brightness, images, -max_delta, max_delta, seed, at));
}
/// By a factor from [lower, upper).
template <detail::ImageElement T>
Output<T> random_contrast(const Output<T>& images, double lower, double upper, std::uint64_t seed = 0,
                          const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_adjust_randomly(detail::Adjustment::contrast, images, lower, upper, seed, at));
}
/// By a delta from [-max_delta, max_delta).
template <detail::ImageElement T>
Output<T> random_hue(const Output<T>& images, double max_delta, std::uint64_t seed = 0, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_adjust_randomly(detail::Adjustment::hue, images, -max_delta, max_delta, seed, at));
}
/// By a factor from [lower, upper).
template <detail::ImageElement T>
Output<T> random_saturation(const Output<T>& images, double lower, double upper, std::uint64_t seed = 0,
                            const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_adjust_randomly(detail::Adjustment::saturation, images, lower, upper, seed, at));
}

}  // namespace dflow
