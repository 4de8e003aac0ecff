#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/block_shapes.hpp>
#include <dflow/ops/array/blocks.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/array/transpose.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::detail {

void check_image_and_block(BlockShapes& shapes, const AnyOutput& x, std::int64_t block_size) {
  if (!x.shape().has_rank() || x.shape().rank() != 4) shapes.fail("an image has the rank 4");
  if (block_size < 1 || block_size > std::int64_t{1} << 30) shapes.fail(str_cat("the block size is ", block_size));
}

AnyOutput any_space_to_depth(const AnyOutput& x, std::int64_t block_size, const At& at) {
  BlockShapes shapes("SpaceToDepth", x, at);
  check_image_and_block(shapes, x, block_size);
  const At here{.where = at.where};
  const BlockDim n = shapes.dim(0), h = shapes.over(shapes.dim(1), block_size, "the height"),
                 w = shapes.over(shapes.dim(2), block_size, "the width"), c = shapes.dim(3);
  const BlockDim b{.number = block_size, .edge = {}};
  const AnyOutput blocks = shapes.reshape(x, {n, h, b, w, b, c}, here);
  return shapes.reshape(any_transpose(blocks, {0, 1, 3, 2, 4, 5}, here),
                        {n, h, w, shapes.times(c, block_size * block_size)}, at);
}

AnyOutput any_depth_to_space(const AnyOutput& x, std::int64_t block_size, const At& at) {
  BlockShapes shapes("DepthToSpace", x, at);
  check_image_and_block(shapes, x, block_size);
  const At here{.where = at.where};
  const BlockDim n = shapes.dim(0), h = shapes.dim(1), w = shapes.dim(2),
                 c = shapes.over(shapes.dim(3), block_size * block_size, "the depth");
  const BlockDim b{.number = block_size, .edge = {}};
  const AnyOutput blocks = shapes.reshape(x, {n, h, w, b, b, c}, here);
  return shapes.reshape(any_transpose(blocks, {0, 1, 3, 2, 4, 5}, here),
                        {n, shapes.times(h, block_size), shapes.times(w, block_size), c}, at);
}

/// The block's numbers, checked with the paddings or crops.
std::vector<std::int64_t> block_numbers(BlockShapes& shapes, std::string_view op, const AnyOutput& x,
                                        const IndexList& block, std::initializer_list<PadWidth> widths, const At& at) {
  const std::vector<std::int64_t>& numbers = block.numbers(op, at);
  if (numbers.empty() || numbers.size() > 3) shapes.fail(str_cat("a block has 1 to 3 numbers, not ", numbers.size()));
  if (!x.shape().has_rank() || static_cast<std::size_t>(x.shape().rank()) <= numbers.size()) {
    shapes.fail(str_cat("a block of ", numbers.size(), " numbers needs a known rank above that"));
  }
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > std::int64_t{1} << 20) shapes.fail(str_cat("the block has the number ", number));
  }
  if (widths.size() != 0 && widths.size() != numbers.size()) {
    shapes.fail(str_cat(widths.size(), " pairs of numbers for a block of ", numbers.size()));
  }
  for (const PadWidth& width : widths) {
    if (width.before < 0 || width.after < 0)
      shapes.fail(str_cat("[", width.before, ", ", width.after, "] is negative"));
  }
  return numbers;
}

std::int64_t product_of_block(const std::vector<std::int64_t>& block) {
  std::int64_t product = 1;
  for (const std::int64_t number : block) product *= number;
  return product;
}

bool has_widths(std::initializer_list<PadWidth> widths) {
  return std::ranges::any_of(widths, [](const PadWidth& width) { return width.before != 0 || width.after != 0; });
}

AnyOutput any_space_to_batch(const AnyOutput& x, const IndexList& block, std::initializer_list<PadWidth> paddings,
                             const At& at) {
  constexpr std::string_view op = "SpaceToBatchND";
  BlockShapes unpadded(op, x, at);
  const std::vector<std::int64_t> b = block_numbers(unpadded, op, x, block, paddings, at);
  const int rank = x.shape().rank(), m = static_cast<int>(b.size());
  const At here{.where = at.where};
  AnyOutput padded = x;
  if (has_widths(paddings)) {
    Tensor<std::int64_t> widths = Tensor<std::int64_t>::zeros({rank, 2});
    int i = 0;
    for (const PadWidth& width : paddings) {
      widths(++i, 0) = width.before;
      widths(i, 1) = width.after;
    }
    padded = build<Pad>({x, any_constant(*x.graph(), widths, here)}, {}, here);
  }
  BlockShapes shapes(op, padded, at);
  std::vector<BlockDim> split{shapes.dim(0)}, joined{shapes.times(shapes.dim(0), product_of_block(b))};
  std::vector<std::int64_t> perm;
  for (int i = 0; i < m; ++i) {
    const std::int64_t number = b[static_cast<std::size_t>(i)];
    joined.push_back(shapes.over(shapes.dim(i + 1), number, str_cat("dimension ", i + 1)));
    split.push_back(joined.back());
    split.push_back({.number = number, .edge = {}});
    perm.push_back(2 * i + 2);
  }
  split.push_back(shapes.all_of(m + 1, rank));
  perm.push_back(0);
  for (int i = 0; i < m; ++i) perm.push_back(2 * i + 1);
  perm.push_back(2 * m + 1);
  for (int i = m + 1; i < rank; ++i) joined.push_back(shapes.dim(i));
  return shapes.reshape(any_transpose(shapes.reshape(padded, split, here), perm, here), joined, at);
}

AnyOutput any_batch_to_space(const AnyOutput& x, const IndexList& block, std::initializer_list<PadWidth> crops,
                             const At& at) {
  constexpr std::string_view op = "BatchToSpaceND";
  BlockShapes shapes(op, x, at);
  const std::vector<std::int64_t> b = block_numbers(shapes, op, x, block, crops, at);
  const int rank = x.shape().rank(), m = static_cast<int>(b.size());
  const At here{.where = at.where};
  const BlockDim n = shapes.over(shapes.dim(0), product_of_block(b), "the batch");
  std::vector<BlockDim> split, joined{n};
  std::vector<std::int64_t> perm{m};
  for (const std::int64_t number : b) split.push_back({.number = number, .edge = {}});
  split.push_back(n);
  for (int i = 0; i < m; ++i) {
    split.push_back(shapes.dim(i + 1));
    joined.push_back(shapes.times(split.back(), b[static_cast<std::size_t>(i)]));
    perm.push_back(m + 1 + i);
    perm.push_back(i);
  }
  split.push_back(shapes.all_of(m + 1, rank));
  perm.push_back(2 * m + 1);
  for (int i = m + 1; i < rank; ++i) joined.push_back(shapes.dim(i));
  const bool has_crops = has_widths(crops);
  const AnyOutput whole =
      shapes.reshape(any_transpose(shapes.reshape(x, split, here), perm, here), joined, has_crops ? here : at);
  if (!has_crops) return whole;
  std::vector<SliceIndex> indices{SliceIndex(slice(), at.where)};
  for (const PadWidth& crop : crops) {
    const BlockDim& extent = joined[indices.size()];
    if (extent.number != dynamic && (crop.before > extent.number || crop.after > extent.number - crop.before)) {
      shapes.fail(str_cat("the crops [", crop.before, ", ", crop.after, "] are more than ", extent.number));
    }
    const SliceBound end = crop.after == 0 ? SliceBound() : SliceBound(-crop.after, at.where);
    indices.emplace_back(slice(SliceBound(crop.before, at.where), end), at.where);
  }
  return any_strided_slice(whole, indices, at);
}

}  // namespace dflow::detail
