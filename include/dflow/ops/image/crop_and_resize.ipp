#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/image/crop_and_resize.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Where the pixels of boxes lie along one axis, [n, size].
struct BoxPositions {
  Expr positions;
  AnyOutput are_inside;  ///< of the image
};

/// last: the number of the last row or column, a scalar of float.
BoxPositions positions_in_boxes(const Expr& begin, const Expr& end, const Expr& last, std::int64_t size) {
  GraphStore& graph = *begin.graph();
  const Expr first = any_expand_dims(begin, 1, {}), length = any_expand_dims(end - begin, 1, {});
  Expr positions;
  if (size == 1) {
    positions = (first + any_expand_dims(end, 1, {})) * 0.5 * last;
  } else {
    const AnyOutput counted = counting(int32_constant(graph, static_cast<std::int32_t>(size)));
    const Expr steps = any_expand_dims(cast_to(counted, DType::float32), 0, {});
    positions = first * last + steps * (length * last / static_cast<double>(size - 1));
  }
  const AnyOutput is_behind = build<GreaterEqual>({positions, scalar_like(positions, 0)});
  return {positions, build<LogicalAnd>({is_behind, build<LessEqual>({positions, last})})};
}

/// Whole positions as numbers of rows or columns, those outside moved to the ends.
Expr whole_positions(const Expr& positions, const Expr& last) {
  const AnyOutput above = build<Maximum>({positions, scalar_like(positions, 0)});
  return cast_to(build<Minimum>({above, last}), DType::int64);
}

void require_crops(const AnyOutput& images, const AnyOutput& boxes, const AnyOutput& box_indices,
                   std::array<std::int64_t, 2> size, const At& at) {
  const auto refuse = [&](std::string message) {
    throw_error(
        Status::invalid_argument(std::move(message)).with_node("crop_and_resize", at.name).with_location(at.where));
  };
  const PartialShape &pixels = images.shape(), &corners = boxes.shape(), &owners = box_indices.shape();
  const auto has_rank = [](const PartialShape& shape, int rank) { return !shape.has_rank() || shape.rank() == rank; };
  const bool are_boxes = has_rank(corners, 2) && (!corners.has_rank() || corners[1] == dynamic || corners[1] == 4);
  if (!has_rank(pixels, 4) || !are_boxes || !has_rank(owners, 1)) {
    refuse(str_cat("images, boxes and box_indices of shapes ", pixels.to_string(), ", ", corners.to_string(), " and ",
                   owners.to_string(), " must be [batch, height, width, channels], [n, 4] and [n]"));
  }
  const bool have_counts = corners.has_rank() && owners.has_rank() && corners[0] != dynamic && owners[0] != dynamic;
  if (have_counts && corners[0] != owners[0]) {
    refuse(str_cat("there are ", corners[0], " boxes and ", owners[0], " box_indices"));
  }
  if (pixels.has_rank() && (pixels[1] == 0 || pixels[2] == 0)) refuse("the images have no pixels");
  if (size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX) {
    refuse(str_cat("a crop cannot have ", size[0], " x ", size[1], " pixels"));
  }
}

}  // namespace detail

AnyOutput detail::any_crop_and_resize(const AnyOutput& images, const AnyOutput& boxes, const AnyOutput& box_indices,
                                      std::array<std::int64_t, 2> size, const CropAndResizeOptions& options,
                                      const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{images, boxes, box_indices}, "crop_and_resize", at);
  const Composite place(graph, at.where);
  require_crops(images, boxes, box_indices, size, at);
  const AnyOutput dims = shape_of(images);
  const std::vector<AnyOutput> extents = any_unpack(dims, 4, 0);
  const Expr height = cast_to(extents[1], DType::int64), width = cast_to(extents[2], DType::int64);
  const Expr last_row = cast_to(height - 1.0, DType::float32), last_column = cast_to(width - 1.0, DType::float32);
  const std::vector<AnyOutput> corners = any_unpack(boxes, 4, 1);
  const BoxPositions y = positions_in_boxes(corners[0], corners[2], last_row, size[0]);
  const BoxPositions x = positions_in_boxes(corners[1], corners[3], last_column, size[1]);

  // The pixels as rows, and the number of the first one of each image.
  const std::array<AnyOutput, 2> flat{int32_constant(graph, std::array<std::int64_t, 1>{-1}),
                                      any_slice(dims, {3}, {1}, {})};
  const AnyOutput pixels = build<Reshape>({images, any_concat(0, flat)});
  const Expr images_before = cast_to(counting(extents[0]), DType::int64);
  const Expr first = any_reshape(build<Gather>({images_before * height * width, box_indices}), {-1, 1, 1}, {});
  const auto pixels_at = [&](const Expr& rows, const Expr& columns) {
    const Expr row = any_expand_dims(whole_positions(rows, last_row), 2, {});
    const Expr column = any_expand_dims(whole_positions(columns, last_column), 1, {});
    return Expr(cast_to(build<Gather>({pixels, first + row * width + column}), DType::float32));
  };
  Expr crops;
  if (options.method == CropMethod::nearest) {
    const auto nearest = [](const Expr& at_pixels) { return Expr(AnyOutput(build<Floor>({at_pixels + 0.5}))); };
    crops = pixels_at(nearest(y.positions), nearest(x.positions));
  } else {
    const Expr top = AnyOutput(build<Floor>({y.positions})), left = AnyOutput(build<Floor>({x.positions}));
    const Expr bottom = AnyOutput(build<Ceil>({y.positions})), right = AnyOutput(build<Ceil>({x.positions}));
    const Expr down = any_reshape(y.positions - top, {-1, size[0], 1, 1}, {});
    const Expr across = any_reshape(x.positions - left, {-1, 1, size[1], 1}, {});
    const Expr above_left = pixels_at(top, left), below_left = pixels_at(bottom, left);
    const Expr above = above_left + (pixels_at(top, right) - above_left) * across;
    const Expr below = below_left + (pixels_at(bottom, right) - below_left) * across;
    crops = above + (below - above) * down;
  }
  const AnyOutput inside = build<LogicalAnd>(
      {any_reshape(y.are_inside, {-1, size[0], 1, 1}, {}), any_reshape(x.are_inside, {-1, 1, size[1], 1}, {})});
  const Expr zeros = zeros_like(crops);
  const AnyOutput condition = build<LogicalAnd>({inside, build<Equal>({zeros, zeros})});  // one for each number
  const Expr outside = zeros + static_cast<double>(options.extrapolation_value);
  return build<Select>({condition, crops, outside}, {}, at);
}

}  // namespace dflow
