#pragma once

/// Shapes of the reshapes of which builders are made, with dimensions that only a step knows.

#include <dflow/base/checked.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/binary.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::detail {

/// A dimension of a shape under construction: a number, or a scalar edge.
struct BlockDim {
  std::int64_t number = dynamic;
  AnyOutput edge;
  bool is_batch = false;
};

/// Makes the shapes of one builder's reshapes from the dimensions of its input.
class BlockShapes {
 public:
  BlockShapes(std::string_view op, const AnyOutput& x, const At& at)
      : op_(op), x_(x), graph_(graph_of({&x, 1}, op, at)), at_{.name = {}, .where = at.where} {}

  [[noreturn]] void fail(std::string_view message) const {
    throw_error(Status::invalid_argument(str_cat(message, "; the input has shape ", x_.shape().to_string()))
                    .with_node(op_, "")
                    .with_location(at_.where));
  }
  BlockDim dim(int i) {
    if (x_.shape()[i] != dynamic) return {.number = x_.shape()[i], .edge = {}};
    if (edges_.empty()) edges_ = any_unpack(build<ShapeOf>({x_}, {}, at_), x_.shape().rank(), 0, at_);
    return {.number = dynamic, .edge = edges_[static_cast<std::size_t>(i)], .is_batch = i == 0};
  }
  BlockDim times(const BlockDim& a, std::int64_t factor) {
    if (factor == 1) return a;
    if (a.number == dynamic) return {dynamic, build<Mul>({a.edge, scalar(factor)}, {}, at_), a.is_batch};
    return {.number = product(a.number, factor), .edge = {}};
  }
  /// Errors: InvalidArgument if a known dimension cannot be divided.
  BlockDim over(const BlockDim& a, std::int64_t divisor, std::string_view what) {
    if (divisor == 1) return a;
    if (a.number == dynamic) return {dynamic, build<Div>({a.edge, scalar(divisor)}, {}, at_), a.is_batch};
    if (a.number % divisor != 0) fail(str_cat(what, " of ", a.number, " cannot be divided by ", divisor));
    return {.number = a.number / divisor, .edge = {}};
  }
  BlockDim times(const BlockDim& a, const BlockDim& b) {
    if (b.number != dynamic) return times(a, b.number);
    if (a.number != dynamic) return times(b, a.number);
    return {dynamic, build<Mul>({a.edge, b.edge}, {}, at_)};
  }
  /// The dimensions in [first, end) as one.
  BlockDim all_of(int first, int end) {
    BlockDim all{.number = 1, .edge = {}};
    for (int i = first; i < end; ++i) all = times(all, dim(i));
    return all;
  }
  /// A scalar of int32.
  AnyOutput edge(const BlockDim& a) const { return a.number == dynamic ? a.edge : scalar(a.number); }
  AnyOutput reshape(const AnyOutput& y, const std::vector<BlockDim>& dims, const At& at) {
    const auto is_unknown = [](const BlockDim& dim) { return dim.number == dynamic; };
    const bool has_zero = std::ranges::any_of(dims, [](const BlockDim& dim) { return dim.number == 0; });
    const auto num_unknown = std::ranges::count_if(dims, is_unknown);
    if (num_unknown == 0 || (num_unknown == 1 && !has_zero && std::ranges::find_if(dims, is_unknown)->is_batch)) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(dims.size());
      for (const BlockDim& dim : dims) numbers.push_back(dim.number);
      return any_reshape(y, numbers, at);
    }
    std::vector<AnyOutput> scalars;
    scalars.reserve(dims.size());
    for (const BlockDim& dim : dims) scalars.push_back(edge(dim));
    return build<Reshape>({y, build<Pack>(std::span<const AnyOutput>(scalars), {}, at_)}, {}, at);
  }

 private:
  std::int64_t product(std::int64_t a, std::int64_t b) const {
    const std::array<std::int64_t, 2> factors{a, b};
    const std::optional<std::int64_t> result = try_product(factors);
    if (!result) fail(str_cat(a, " * ", b, " is too large to be counted"));
    return *result;
  }
  AnyOutput scalar(std::int64_t value) const {
    if (!std::in_range<std::int32_t>(value)) fail(str_cat(value, " does not fit in int32, which shapes of a step are"));
    return int32_constant(graph_, static_cast<std::int32_t>(value), at_);
  }

  std::string_view op_;
  AnyOutput x_;
  GraphStore& graph_;
  At at_;
  std::vector<AnyOutput> edges_;
};

}  // namespace dflow::detail
