#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reverse.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/image/geometry.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/random/random.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

[[noreturn]] void throw_no_geometry(std::string_view op, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message)).with_node(op, at.name).with_location(at.where));
}

/// The rank, which is 3 or 4.
int rank_of_images(const AnyOutput& images, std::string_view op, const At& at) {
  const PartialShape& shape = images.shape();
  if (!shape.has_rank() || (shape.rank() != 3 && shape.rank() != 4)) {
    throw_no_geometry(
        op,
        str_cat("shape ", shape.to_string(), " is not [batch, height, width, channels] or [height, width, channels]"),
        at);
  }
  return shape.rank();
}

/// The values of height and width as an int32 vector for each dimension of the images, with `other` elsewhere.
AnyOutput spread(GraphStore& graph, int rank, std::int64_t other, std::int64_t height, std::int64_t width) {
  SmallIntegers values;
  if (rank == 4) values.push_back(other);
  values.push_back(height);
  values.push_back(width);
  values.push_back(other);
  return int32_constant(graph, values.span());
}
/// The same for the vector [height, width].
AnyOutput spread(int rank, std::int64_t other, const AnyOutput& size) {
  const AnyOutput one = int32_constant(*size.graph(), std::array<std::int64_t, 1>{other});
  if (rank == 3) return any_concat(0, std::array<AnyOutput, 2>{size, one});
  return any_concat(0, std::array<AnyOutput, 3>{one, size, one});
}

/// The height and width of the images of a step.
Expr pixels_of(const AnyOutput& images, int rank) { return any_slice(shape_of(images), {rank - 3}, {2}, {}); }

bool has_known_pixels(const AnyOutput& images, int rank) {
  return images.shape()[rank - 3] != dynamic && images.shape()[rank - 2] != dynamic;
}

Expr at_least_zero(const Expr& x) { return AnyOutput(build<Maximum>({x, scalar_like(x, 0)})); }

/// Numbers from above to below a box, as paddings [rank, 2].
AnyOutput paddings_of(int rank, const AnyOutput& before, const AnyOutput& after) {
  const std::array<AnyOutput, 2> ends{spread(rank, 0, before), spread(rank, 0, after)};
  return build<Pack>(std::span<const AnyOutput>(ends), {.axis = 1});
}

}  // namespace detail

AnyOutput detail::any_flip(const AnyOutput& images, int axis_from_end, const At& at) {
  const std::string_view name = axis_from_end == 2 ? "flip_left_right" : "flip_up_down";
  static_cast<void>(graph_of({&images, 1}, name, at));
  const PartialShape& shape = images.shape();
  if (shape.has_rank() && shape.rank() < 3) {
    throw_no_geometry(name, str_cat("shape ", shape.to_string(), " is not [..., height, width, channels]"), at);
  }
  return any_reverse(images, -axis_from_end, at);
}

AnyOutput detail::any_transpose_image(const AnyOutput& images, const At& at) {
  static_cast<void>(graph_of({&images, 1}, "transpose_image", at));
  if (rank_of_images(images, "transpose_image", at) == 3) return any_transpose(images, {1, 0, 2}, at);
  return any_transpose(images, {0, 2, 1, 3}, at);
}

AnyOutput detail::any_rot90(const AnyOutput& images, std::int64_t times, const At& at) {
  const Composite place(graph_of({&images, 1}, "rot90", at), at.where);
  const At here{.where = at.where};
  static_cast<void>(rank_of_images(images, "rot90", at));
  switch ((times % 4 + 4) % 4) {
    case 1:
      return any_transpose_image(any_reverse(images, -2, here), at);
    case 2:
      return any_reverse(images, {-3, -2}, at);
    case 3:
      return any_reverse(any_transpose_image(images, here), -2, at);
    default:
      return build<Identity>({images}, {}, at);
  }
}

AnyOutput detail::any_random_flip(const AnyOutput& images, int axis_from_end, std::uint64_t seed, const At& at) {
  const std::string_view name = axis_from_end == 2 ? "random_flip_left_right" : "random_flip_up_down";
  GraphStore& graph = graph_of({&images, 1}, name, at);
  const Composite place(graph, at.where);
  const bool is_batch = rank_of_images(images, name, at) == 4;
  const At here{.where = at.where};
  AnyOutput dims = int32_constant(graph, std::span<const std::int64_t>());
  if (is_batch) dims = any_slice(shape_of(images), {0}, {1}, here);
  const Expr chance =
      any_random_uniform(graph, DType::float32, Output<std::int32_t>::unchecked(dims), {.seed = seed}, here);
  const AnyOutput is_flipped = build<Less>({chance, scalar_like(chance, 0.5)});
  return build<Select>({is_flipped, any_reverse(images, -axis_from_end, here), images}, {}, at);
}

AnyOutput detail::any_random_crop(const AnyOutput& x, const IndexList& size, std::uint64_t seed, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, "random_crop", at);
  const Composite place(graph, at.where);
  const AnyOutput dims = size.edge(graph, DType::int32, {.where = at.where});
  if (const std::optional<SmallIntegers> known = constant_integers(dims); known && x.shape().has_rank()) {
    bool fits = known->size() == x.shape().rank();
    for (int i = 0; fits && i < known->size(); ++i) {
      fits = (*known)[i] >= 0 && (x.shape()[i] == dynamic || (*known)[i] <= x.shape()[i]);
    }
    if (!fits) {
      throw_no_geometry("random_crop", str_cat("no part of shape ", x.shape().to_string(), " has that size"), at);
    }
  }
  // A size that is too large leaves one position, from which the slice reaches outside.
  const Expr shape = shape_of(x);
  const Expr positions = at_least_zero(shape - Expr(dims)) + 1.0;
  const AnyOutput rank = shape_of(shape);
  const AnyOutput draw =
      any_random_uniform_int(graph, Output<std::int32_t>::unchecked(rank), Tensor<std::int32_t>(0),
                             Tensor<std::int32_t>(std::numeric_limits<std::int32_t>::max()), seed, {.where = at.where});
  const AnyOutput begin = build<Mod>({draw, positions});
  return build<Slice>({x, begin, dims}, {}, at);
}

AnyOutput detail::any_central_crop(const AnyOutput& images, double fraction, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "central_crop", at);
  const Composite place(graph, at.where);
  if (!(fraction > 0 && fraction <= 1)) {
    throw_no_geometry("central_crop", str_cat("the fraction ", fraction, " is not in (0, 1]"), at);
  }
  const int rank = rank_of_images(images, "central_crop", at);
  if (has_known_pixels(images, rank)) {
    const std::int64_t height = images.shape()[rank - 3], width = images.shape()[rank - 2];
    const auto start = [fraction](std::int64_t extent) {
      const auto pixels = static_cast<double>(extent);
      return static_cast<std::int64_t>((pixels - pixels * fraction) / 2);
    };
    return build<Slice>({images, spread(graph, rank, 0, start(height), start(width)),
                         spread(graph, rank, -1, height - 2 * start(height), width - 2 * start(width))},
                        {}, at);
  }
  const Expr pixels = pixels_of(images, rank), real = cast_to(pixels, DType::float64);
  const Expr start = cast_to((real - real * fraction) / 2.0, DType::int32);
  return build<Slice>({images, spread(rank, 0, start), spread(rank, -1, pixels - start - start)}, {}, at);
}

AnyOutput detail::any_crop_to_box(const AnyOutput& images, const PixelBox& box, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "crop_to_bounding_box", at);
  const Composite place(graph, at.where);
  const int rank = rank_of_images(images, "crop_to_bounding_box", at);
  if (box.offset_height < 0 || box.offset_width < 0 || box.height < 1 || box.width < 1) {
    throw_no_geometry("crop_to_bounding_box",
                      str_cat("the box of ", box.height, " x ", box.width, " pixels at (", box.offset_height, ", ",
                              box.offset_width, ") is empty or begins outside of the images"),
                      at);
  }
  return build<Slice>({images, spread(graph, rank, 0, box.offset_height, box.offset_width),
                       spread(graph, rank, -1, box.height, box.width)},
                      {}, at);
}

AnyOutput detail::any_pad_to_box(const AnyOutput& images, const PixelBox& box, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "pad_to_bounding_box", at);
  const Composite place(graph, at.where);
  const int rank = rank_of_images(images, "pad_to_bounding_box", at);
  const std::int64_t height = images.shape()[rank - 3], width = images.shape()[rank - 2];
  const auto fits = [](std::int64_t offset, std::int64_t extent, std::int64_t whole) {
    return offset >= 0 && whole >= 1 && offset <= whole && (extent == dynamic || extent <= whole - offset);
  };
  if (!fits(box.offset_height, height, box.height) || !fits(box.offset_width, width, box.width)) {
    throw_no_geometry("pad_to_bounding_box",
                      str_cat("images of shape ", images.shape().to_string(), " do not fit in ", box.height, " x ",
                              box.width, " pixels at (", box.offset_height, ", ", box.offset_width, ")"),
                      at);
  }
  const AnyOutput before = int32_constant(graph, std::array<std::int64_t, 2>{box.offset_height, box.offset_width});
  if (has_known_pixels(images, rank)) {
    const PadWidth rows{box.offset_height, box.height - box.offset_height - height};
    const PadWidth columns{box.offset_width, box.width - box.offset_width - width};
    if (rank == 3) return any_pad(images, {rows, columns, {}}, at);
    return any_pad(images, {{}, rows, columns, {}}, at);
  }
  const Expr whole = int32_constant(graph, std::array<std::int64_t, 2>{box.height, box.width});
  return build<Pad>({images, paddings_of(rank, before, whole - Expr(before) - pixels_of(images, rank))}, {}, at);
}

AnyOutput detail::any_crop_or_pad(const AnyOutput& images, std::int64_t height, std::int64_t width, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "resize_image_with_crop_or_pad", at);
  const Composite place(graph, at.where);
  const int rank = rank_of_images(images, "resize_image_with_crop_or_pad", at);
  if (height < 1 || width < 1) {
    throw_no_geometry("resize_image_with_crop_or_pad", str_cat("there are no ", height, " x ", width, " pixels"), at);
  }
  if (has_known_pixels(images, rank)) {
    const std::int64_t rows = images.shape()[rank - 3], columns = images.shape()[rank - 2];
    const auto half = [](std::int64_t more, std::int64_t less) { return std::max<std::int64_t>(more - less, 0) / 2; };
    const AnyOutput cut = build<Slice>({images, spread(graph, rank, 0, half(rows, height), half(columns, width)),
                                        spread(graph, rank, -1, std::min(rows, height), std::min(columns, width))});
    return any_pad_to_box(cut, {half(height, rows), half(width, columns), height, width}, at);
  }
  const Expr wanted = int32_constant(graph, std::array<std::int64_t, 2>{height, width});
  const Expr pixels = pixels_of(images, rank);
  const Expr kept = AnyOutput(build<Minimum>({pixels, wanted}));
  const AnyOutput cut =
      build<Slice>({images, spread(rank, 0, at_least_zero(pixels - wanted) / 2.0), spread(rank, -1, kept)});
  const Expr before = at_least_zero(wanted - pixels) / 2.0;
  return build<Pad>({cut, paddings_of(rank, before, wanted - kept - before)}, {}, at);
}

}  // namespace dflow
