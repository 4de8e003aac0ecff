#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <cstdint>

namespace dflow {

/// Where the pixels of a resized image lie in the image. Without a flag, output pixel i stands at i * in / out.
struct ResizeAttrs {
  bool align_corners = false;       ///< the centres of the four corners stay: i * (in - 1) / (out - 1)
  bool half_pixel_centers = false;  ///< a pixel is at its centre: (i + 0.5) * in / out - 0.5
};

namespace detail {
/// Images [batch, height, width, channels] and an int32 [2] give images of that height and width.
void infer_resize(InferContext& context);
/// The gradient by the output, and the images, of which the output has the shape.
void infer_resize_gradient(InferContext& context);
}  // namespace detail

/// The base of the resizes that compute in float, whatever the element type.
template <FixedString Name>
struct ResizeOp : StandardOp<Name, RealTypes> {
  using Attrs = ResizeAttrs;
  using Inputs = In<TypeParam<0>, std::int32_t>;
  using Outputs = Out<float>;
  static void infer(InferContext& context) { detail::infer_resize(context); }
};

/// The base of their gradients: the gradient by the output, and the images, of which only the shape is read.
template <FixedString Name>
struct ResizeGradOp : StandardOp<Name, FloatTypes> {
  using Attrs = ResizeAttrs;
  using Inputs = In<float, TypeParam<0>>;
  static void infer(InferContext& context) { detail::infer_resize_gradient(context); }
};

/// Each pixel from the four around its position, by straight lines between them.
struct ResizeBilinear : ResizeOp<"ResizeBilinear"> {
  static void gradient(GradientContext& context);
};
/// The gradient of ResizeBilinear.
struct ResizeBilinearGrad : ResizeGradOp<"ResizeBilinearGrad"> {
  static void gradient(GradientContext& context);
};

/// Each pixel from the sixteen around its position, by cubic polynomials (Keys 1981, "Cubic convolution interpolation
/// for digital image processing"): a = -0.5 with half-pixel centers, and weights outside of the image go to the pixels
/// in it; else a = -0.75, and the image goes on with its last pixels. Positions are rounded to 1/1024 of a pixel.
struct ResizeBicubic : ResizeOp<"ResizeBicubic"> {
  static void gradient(GradientContext& context);
};
/// The gradient of ResizeBicubic.
struct ResizeBicubicGrad : ResizeGradOp<"ResizeBicubicGrad"> {
  static void gradient(GradientContext& context);
};

/// Each pixel is the mean of the area that it covers. It has no half-pixel centers.
struct ResizeArea : ResizeOp<"ResizeArea"> {
  struct Attrs {
    bool align_corners = false;
  };
  static void gradient(GradientContext& context);
};
/// The gradient of ResizeArea.
struct ResizeAreaGrad : ResizeGradOp<"ResizeAreaGrad"> {
  using Attrs = ResizeArea::Attrs;
  static void gradient(GradientContext& context);
};

/// Each pixel is the one that is next to its position: images and an int32 [2].
struct ResizeNearestNeighbor : StandardOp<"ResizeNearestNeighbor", RealTypes> {
  using Attrs = ResizeAttrs;
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context) { detail::infer_resize(context); }
  static void gradient(GradientContext& context);
};
/// The gradient of ResizeNearestNeighbor: the gradient by the output, and the height and width of the images.
struct ResizeNearestNeighborGrad : StandardOp<"ResizeNearestNeighborGrad", FloatTypes> {
  using Attrs = ResizeAttrs;
  using Inputs = In<T, std::int32_t>;
  static void infer(InferContext& context) { detail::infer_resize(context); }
  static void gradient(GradientContext& context);
};

/// How `resize_images` finds the pixels; the numbers are TensorFlow's.
enum class ResizeMethod : std::uint8_t { bilinear = 0, nearest_neighbor = 1, bicubic = 2, area = 3 };

namespace detail {
AnyOutput any_resize(ResizeMethod method, const AnyOutput& images, const IndexList& size, const ResizeAttrs& attrs,
                     const At& at);
AnyOutput any_resize_images(ResizeMethod method, const AnyOutput& images, const IndexList& size,
                            const ResizeAttrs& attrs, const At& at);
}  // namespace detail

/// images: [batch, height, width, channels], size: the new height and width, both positive. The result is float for all
/// element types, and computed in float. Gradients are of the images' type, if that is a floating one.
///
/// ```cpp
/// auto small = df::resize_bilinear(images, {224, 224}, {.half_pixel_centers = true});
/// ```
/// Without a flag, as TensorFlow 0.8 has it, pixels move up to half a pixel; TensorFlow 2 sets `half_pixel_centers`.
/// Errors: InvalidArgument if images is not of rank 4, height or width of it is 0, size is not two positive numbers, or
/// both flags are set.
template <AllowedFor<ResizeBilinear> T>
Output<float> resize_bilinear(const Output<T>& images, const IndexList& size, const ResizeAttrs& attrs = {},
                              const At& at = {}) {
  return Output<float>::unchecked(detail::any_resize(ResizeMethod::bilinear, images, size, attrs, at));
}

/// As resize_bilinear, with the smoother curves of ResizeBicubic, which may go beyond the values of the images.
template <AllowedFor<ResizeBicubic> T>
Output<float> resize_bicubic(const Output<T>& images, const IndexList& size, const ResizeAttrs& attrs = {},
                             const At& at = {}) {
  return Output<float>::unchecked(detail::any_resize(ResizeMethod::bicubic, images, size, attrs, at));
}

/// As resize_bilinear, with means of areas, the best to make images much smaller.
template <AllowedFor<ResizeArea> T>
Output<float> resize_area(const Output<T>& images, const IndexList& size, const ResizeArea::Attrs& attrs = {},
                          const At& at = {}) {
  return Output<float>::unchecked(
      detail::any_resize(ResizeMethod::area, images, size, {.align_corners = attrs.align_corners}, at));
}

/// As resize_bilinear; the result has the pixels of the images themselves, and their element type.
template <AllowedFor<ResizeNearestNeighbor> T>
Output<T> resize_nearest_neighbor(const Output<T>& images, const IndexList& size, const ResizeAttrs& attrs = {},
                                  const At& at = {}) {
  return Output<T>::unchecked(detail::any_resize(ResizeMethod::nearest_neighbor, images, size, attrs, at));
}

/// images: [batch, height, width, channels], or one image [height, width, channels], in the new height and width by the
/// method, as float.
///
/// ```cpp
/// auto square = df::resize_images(image, {299, 299}, df::ResizeMethod::area);
/// ```
/// Errors: as resize_bilinear, and InvalidArgument if images is of another rank or of none that is known.
template <AllowedFor<ResizeBilinear> T>
Output<float> resize_images(const Output<T>& images, const IndexList& size,
                            ResizeMethod method = ResizeMethod::bilinear, const ResizeAttrs& attrs = {},
                            const At& at = {}) {
  return Output<float>::unchecked(detail::any_resize_images(method, images, size, attrs, at));
}

}  // namespace dflow
