#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace dflow::detail {

/// `axis` from [-rank, rank) made non-negative.
constexpr int non_negative_axis(std::int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

/// A tensor's dimensions as runs that are reduced or kept as one; dimensions of 1 belong to none.
class DimRuns {
 public:
  struct Run {
    std::int64_t extent = 1;
    bool is_reduced = false;
  };

  /// Bit i of `reduced`: dimension i is.
  DimRuns(const Shape& x, std::uint32_t reduced) : rank_(x.rank()), mask_(reduced) {
    for (int i = 0; i < rank_; ++i) {
      if (x[i] != 1) append(x[i], (mask_ >> i & 1u) != 0);
    }
  }
  /// axes: int32, already checked by the op's shape function.
  DimRuns(const Shape& x, const AnyTensor& axes) : DimRuns(x, mask_of(axes, x.rank())) {}

  std::span<const Run> runs() const noexcept { return {runs_.data(), static_cast<std::size_t>(size_)}; }
  int num_reduced() const {
    return static_cast<int>(std::ranges::count_if(runs(), [](const Run& run) { return run.is_reduced; }));
  }
  /// The number of the last run that is reduced; at least one run must be reduced.
  std::size_t last_reduced() const {
    std::size_t i = runs().size() - 1;
    while (!runs_[i].is_reduced) --i;
    return i;
  }
  /// Removes the last reduced run.
  void drop_last() {
    const std::array<Run, max_rank> old = runs_;
    const std::size_t dropped = last_reduced(), count = runs().size();
    size_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (i != dropped) append(old[i].extent, old[i].is_reduced);
    }
  }

  /// The permutation of the tensor's dimensions that puts the kept ones first.
  std::array<std::int32_t, max_rank> kept_first() const {
    std::array<std::int32_t, max_rank> perm{};
    std::size_t to = 0;
    for (const std::uint32_t wanted : {0u, 1u}) {
      for (int i = 0; i < rank_; ++i) {
        if ((mask_ >> i & 1u) == wanted) perm[to++] = i;
      }
    }
    return perm;
  }

 private:
  static std::uint32_t mask_of(const AnyTensor& axes, int rank) {
    std::uint32_t mask = 0;
    for (const std::int64_t axis : SmallIntegers(axes)) mask |= 1u << (axis < 0 ? axis + rank : axis);
    return mask;
  }
  void append(std::int64_t extent, bool is_reduced) {
    if (size_ > 0 && runs_[static_cast<std::size_t>(size_ - 1)].is_reduced == is_reduced) {
      runs_[static_cast<std::size_t>(size_ - 1)].extent *= extent;
    } else {
      runs_[static_cast<std::size_t>(size_++)] = {extent, is_reduced};
    }
  }

  std::array<Run, max_rank> runs_{};
  int size_ = 0;
  int rank_;
  std::uint32_t mask_;
};

}  // namespace dflow::detail
