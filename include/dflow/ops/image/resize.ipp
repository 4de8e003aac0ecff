#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/image/resize.hpp>
#include <dflow/ops/math/cast.hpp>

#include <optional>
#include <string_view>
#include <utility>

namespace dflow {

namespace detail {

void require_pixels(const InferContext& context, const PartialShape& images) {
  if (images[1] == 0 || images[2] == 0) context.fail("the images have no pixels");
}

/// All ops of the family but ResizeArea and its gradient.
template <class Attrs>
void require_one_convention(const InferContext& context, const Attrs& attrs) {
  if (attrs.align_corners && attrs.half_pixel_centers) {
    context.fail("align_corners and half_pixel_centers exclude each other");
  }
}

void require_convention(const InferContext& context) {
  const std::string_view op = context.node().op->name;
  if (op != ResizeArea::name && op != ResizeAreaGrad::name) {
    require_one_convention(context, context.attrs<ResizeBilinear>());
  }
}

}  // namespace detail

void detail::infer_resize(InferContext& context) {
  require_convention(context);
  PartialShape images = context.with_rank(0, 4);
  const PartialShape size = context.with_rank(1, 1);
  static_cast<void>(context.merge_dim(size[0], 2));
  require_pixels(context, images);
  images = images.with_dim(1, dynamic).with_dim(2, dynamic);
  if (const std::optional<SmallIntegers> known = known_integers(context, 1)) {
    for (int i = 0; i < 2; ++i) {
      if ((*known)[i] <= 0) context.fail(str_cat("size[", i, "] = ", (*known)[i], " is not positive"));
      images = images.with_dim(i + 1, (*known)[i]);
    }
  } else if (const std::optional<PartialShape> part = context.value_as_shape(1); part && part->has_rank()) {
    images = images.with_dim(1, (*part)[0]).with_dim(2, (*part)[1]);
  }
  context.set_output(0, images);
}

void detail::infer_resize_gradient(InferContext& context) {
  require_convention(context);
  const PartialShape dy = context.with_rank(0, 4), images = context.with_rank(1, 4);
  require_pixels(context, dy);
  require_pixels(context, images);
  const PartialShape same = context.merge(images, PartialShape{dy[0], dynamic, dynamic, dy[3]});
  context.set_output(0, same);
}

namespace detail {

/// Height and width of images, as an int32 vector.
AnyOutput size_of_images(const Expr& images) {
  const AnyOutput shape = shape_of(images);
  return any_slice(shape, {1}, {2}, {});
}

template <class Grad>
void set_resize_gradient(GradientContext& context, const typename Grad::Attrs& attrs) {
  if (!is_floating(context.input(0).dtype())) return;
  context.set_dx(0, build<Grad>({context.dy(), context.input(0)}, attrs));
}

/// The gradient by the gradient is the resize itself: both are linear, and each is the other's transpose.
template <class Resize>
void set_gradient_of_gradient(GradientContext& context, const typename Resize::Attrs& attrs) {
  const AnyOutput ddy = build<Resize>({context.dy(), size_of_images(context.input(0))}, attrs);
  context.set_dx(0, ddy);
}

}  // namespace detail

void ResizeBilinear::gradient(GradientContext& context) {
  detail::set_resize_gradient<ResizeBilinearGrad>(context, context.attrs<ResizeBilinear>());
}
void ResizeBilinearGrad::gradient(GradientContext& context) {
  detail::set_gradient_of_gradient<ResizeBilinear>(context, context.attrs<ResizeBilinearGrad>());
}
void ResizeBicubic::gradient(GradientContext& context) {
  detail::set_resize_gradient<ResizeBicubicGrad>(context, context.attrs<ResizeBicubic>());
}
void ResizeBicubicGrad::gradient(GradientContext& context) {
  detail::set_gradient_of_gradient<ResizeBicubic>(context, context.attrs<ResizeBicubicGrad>());
}
void ResizeArea::gradient(GradientContext& context) {
  detail::set_resize_gradient<ResizeAreaGrad>(context, context.attrs<ResizeArea>());
}
void ResizeAreaGrad::gradient(GradientContext& context) {
  detail::set_gradient_of_gradient<ResizeArea>(context, context.attrs<ResizeAreaGrad>());
}
void ResizeNearestNeighbor::gradient(GradientContext& context) {
  if (!is_floating(context.input(0).dtype())) return;
  const AnyOutput size = detail::size_of_images(context.input(0));
  context.set_dx(0, build<ResizeNearestNeighborGrad>({context.dy(), size}, context.attrs<ResizeNearestNeighbor>()));
}
void ResizeNearestNeighborGrad::gradient(GradientContext& context) {
  detail::set_gradient_of_gradient<ResizeNearestNeighbor>(context, context.attrs<ResizeNearestNeighborGrad>());
}

AnyOutput detail::any_resize(ResizeMethod method, const AnyOutput& images, const IndexList& size,
                             const ResizeAttrs& attrs, const At& at) {
  constexpr std::array<std::string_view, 4> names{ResizeBilinear::name, ResizeNearestNeighbor::name,
                                                  ResizeBicubic::name, ResizeArea::name};
  GraphStore& graph = graph_of({&images, 1}, names[static_cast<std::size_t>(method)], at);
  const Composite place(graph, at.where);
  const AnyOutput dims = size.edge(graph, DType::int32, {.where = at.where});
  switch (method) {
    case ResizeMethod::bilinear:
      return build<ResizeBilinear>({images, dims}, attrs, at);
    case ResizeMethod::nearest_neighbor:
      return build<ResizeNearestNeighbor>({images, dims}, attrs, at);
    case ResizeMethod::bicubic:
      return build<ResizeBicubic>({images, dims}, attrs, at);
    case ResizeMethod::area:
      break;
  }
  return build<ResizeArea>({images, dims}, {.align_corners = attrs.align_corners}, at);
}

AnyOutput detail::any_resize_images(ResizeMethod method, const AnyOutput& images, const IndexList& size,
                                    const ResizeAttrs& attrs, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "resize_images", at);
  const Composite place(graph, at.where);
  const PartialShape& shape = images.shape();
  if (!shape.has_rank() || (shape.rank() != 3 && shape.rank() != 4)) {
    throw_error(Status::invalid_argument(str_cat("images has shape ", shape.to_string(),
                                                 ", and not [batch, height, width, channels] or [height, width, "
                                                 "channels]"))
                    .with_node("resize_images", at.name)
                    .with_location(at.where));
  }
  if (method == ResizeMethod::area && attrs.half_pixel_centers) {
    throw_error(Status::invalid_argument("the method area has no half_pixel_centers")
                    .with_node("resize_images", at.name)
                    .with_location(at.where));
  }
  const bool is_one = shape.rank() == 3;
  const At here{.where = at.where};
  const AnyOutput batch = is_one ? any_expand_dims(images, 0, here) : images;
  AnyOutput y = any_resize(method, batch, size, attrs, is_one ? here : at);
  y = cast_to(y, DType::float32, is_one ? here : at);
  if (!is_one) return y;
  return build<Squeeze>({y}, {.squeeze_dims = {0}}, at);
}

}  // namespace dflow
