#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/broadcast.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow {

/// The place of each input of a broadcasting op while the output is walked through. Dimensions of extent 1 are
/// dropped, and neighbours are joined if all inputs allow it, so most broadcasts have one or two dimensions left.
struct BroadcastWalk {
  static constexpr int max_inputs = 6;  ///< an elementwise op's, and the incoming gradients of two derivatives

  int rank = 0;
  std::int64_t extents[max_rank];
  std::int64_t strides[max_inputs][max_rank];  ///< in elements; 0 where the input is repeated
  std::int64_t inner = 1;                      ///< extent of the last dimension
  unsigned inner_repeated = 0;                 ///< bit i: input i is one element along it

  BroadcastWalk(std::span<const AnyTensor* const> inputs, const Shape& shape) {
    std::array<std::int64_t, max_rank> full[max_inputs];
    for (std::size_t i = 0; i < inputs.size(); ++i) full[i] = broadcast_strides(inputs[i]->shape(), shape);
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape.dim(d) == 1) continue;
      const auto at = static_cast<std::size_t>(d);
      bool joins = rank > 0;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        joins = joins && strides[i][rank - 1] == full[i][at] * shape.dim(d);
      if (!joins) extents[rank++] = 1;
      extents[rank - 1] *= shape.dim(d);
      for (std::size_t i = 0; i < inputs.size(); ++i) strides[i][rank - 1] = full[i][at];
    }
    if (rank == 0) return;
    inner = extents[rank - 1];
    for (std::size_t i = 0; i < inputs.size(); ++i) inner_repeated |= unsigned{strides[i][rank - 1] == 0} << i;
  }

  /// True if input `i` has all elements of the output, in its order.
  bool is_dense(std::size_t i) const {
    std::int64_t step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (strides[i][d] != step) return false;
      step *= extents[d];
    }
    return true;
  }

  /// The number of elements after which input `i` starts again, or 0 if it does not.
  std::int64_t period(std::size_t i) const {
    std::int64_t elements = 1;
    int d = rank - 1;
    for (; d >= 0 && strides[i][d] != 0; --d) elements *= extents[d];
    for (int outer = d; outer >= 0; --outer) {
      if (strides[i][outer] != 0) return 0;
    }
    return d < 0 ? 0 : elements;
  }
};

}  // namespace dflow
