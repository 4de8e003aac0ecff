#pragma once

/// Builders that move blocks of an image, or of any grid, to its depth or its batch and back. They are
/// reshapes and transposes, so they have gradients of any order and no kernel of their own.

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/slice.hpp>

#include <cstdint>
#include <initializer_list>

namespace dflow {

namespace detail {
AnyOutput any_space_to_depth(const AnyOutput& x, std::int64_t block_size, const At& at);
AnyOutput any_depth_to_space(const AnyOutput& x, std::int64_t block_size, const At& at);
AnyOutput any_space_to_batch(const AnyOutput& x, const IndexList& block, std::initializer_list<PadWidth> paddings,
                             const At& at);
AnyOutput any_batch_to_space(const AnyOutput& x, const IndexList& block, std::initializer_list<PadWidth> crops,
                             const At& at);
}  // namespace detail

/// x: [n, h, w, c] gives [n, h / b, w / b, b * b * c]: each block of b by b pixels, row by row, becomes one pixel.
/// TensorFlow's SpaceToDepth.
///
/// Errors: InvalidArgument if block_size is below 1, x has another rank, or block_size does not divide h and w; in the
/// step if they are known only there.
template <Element T>
Output<T> space_to_depth(const Output<T>& x, std::int64_t block_size, const At& at = {}) {
  return Output<T>::unchecked(detail::any_space_to_depth(x, block_size, at));
}

/// The reverse: x: [n, h, w, b * b * c] gives [n, h * b, w * b, c]. TensorFlow's DepthToSpace.
///
/// Errors: InvalidArgument if block_size is below 1, x has another rank, or the square of block_size does not divide
/// the depth; in the step if it is known only there.
template <Element T>
Output<T> depth_to_space(const Output<T>& x, std::int64_t block_size, const At& at = {}) {
  return Output<T>::unchecked(detail::any_depth_to_space(x, block_size, at));
}

/// x: [n, s1, ..., sm, ...rest], block: m numbers, gives [b1 * ... * bm * n, p1 / b1, ..., pm / bm, ...rest], where p
/// are the extents s after zeros are put around them. Element (k1, ..., km) of each block goes to batch number
/// (k1, ..., km, old number). TensorFlow's SpaceToBatchND, and its SpaceToBatch with block {b, b}. m is 1 to 3.
///
/// ```cpp
/// auto parts = df::space_to_batch(x, {2, 2}, {{0, 1}, {0, 0}});  // [n, 3, 4, c] becomes [4 * n, 2, 2, c]
/// ```
/// Errors: InvalidArgument if the rank of x is unknown or at most m, there are paddings but not m pairs, a number of
/// the block is below 1, a padding is negative, or the block does not divide the padded extents; in the step if they
/// are known only there.
template <Element T>
Output<T> space_to_batch(const Output<T>& x, const IndexList& block, std::initializer_list<PadWidth> paddings = {},
                         const At& at = {}) {
  return Output<T>::unchecked(detail::any_space_to_batch(x, block, paddings, at));
}

/// The reverse: x: [b1 * ... * bm * n, s1, ..., sm, ...rest] gives [n, s1 * b1, ..., sm * bm, ...rest] less the crops
/// at either end. TensorFlow's BatchToSpaceND, and its BatchToSpace with block {b, b}. m is 1 to 3.
///
/// Errors: InvalidArgument if the rank of x is unknown or at most m, there are crops but not m pairs, a number of the
/// block is below 1, a crop is negative, crops are more than an extent, or the block does not divide the batch; in the
/// step if that is known only there. There, crops of more than an extent leave nothing.
template <Element T>
Output<T> batch_to_space(const Output<T>& x, const IndexList& block, std::initializer_list<PadWidth> crops = {},
                         const At& at = {}) {
  return Output<T>::unchecked(detail::any_batch_to_space(x, block, crops, at));
}

}  // namespace dflow
