#pragma once

#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reverse.hpp>
#include <dflow/ops/array/strided_slice.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

void ReverseSequence::infer(InferContext& context) {
  const PartialShape lengths = context.with_rank(1, 1), &x = context.input(0);
  if (!x.has_rank()) return;
  const auto& attrs = context.attrs<ReverseSequence>();
  const int seq = context.normalize_axis(attrs.seq_dim, x.rank());
  const int batch = context.normalize_axis(attrs.batch_dim, x.rank());
  if (seq == batch) context.fail(str_cat("seq_dim and batch_dim are both dimension ", seq));
  context.set_output(0, x.with_dim(batch, context.merge_dim(x[batch], lengths[0])));
}

void ReverseSequence::gradient(GradientContext& context) {
  context.set_dx(0, build<ReverseSequence>({context.dy(), context.input(1)}, context.attrs<ReverseSequence>()));
}

namespace detail {

[[noreturn]] void throw_no_reversal(std::string_view op, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message)).with_node(op, at.name).with_location(at.where));
}

/// x with the axes reversed whose strides are -1; they are the first axes, or the last ones.
AnyOutput reversed_by(const AnyOutput& x, std::vector<std::int64_t> strides, bool are_last, const At& at) {
  StridedSliceAttrs masks;
  if (are_last) {
    strides.insert(strides.begin(), 1);
    masks.ellipsis_mask = 1;
  }
  masks.begin_mask = masks.end_mask = (std::int64_t{1} << strides.size()) - 1;
  const std::vector<std::int64_t> open(strides.size(), 0);
  return any_strided_slice(x, open, open, strides, masks, at);
}

AnyOutput any_reverse(const AnyOutput& x, const IndexList& axes, const At& at) {
  static_cast<void>(graph_of({&x, 1}, "Reverse", at));
  const PartialShape& shape = x.shape();
  const std::int64_t rank = shape.has_rank() ? shape.rank() : max_rank;
  std::vector<std::int64_t> first, last;  // the strides of the first and of the last axes
  for (std::int64_t axis : axes.numbers("Reverse", at)) {
    if (axis < -rank || axis >= rank) {
      throw_no_reversal("Reverse", str_cat("axis ", axis, " is outside of a tensor of shape ", shape.to_string()), at);
    }
    if (axis < 0 && shape.has_rank()) axis += rank;
    std::vector<std::int64_t>& strides = axis < 0 ? last : first;
    const auto from_end = static_cast<std::size_t>(axis < 0 ? -1 - axis : axis);
    if (strides.size() <= from_end) strides.resize(from_end + 1, 1);
    if (strides[from_end] == -1) throw_no_reversal("Reverse", str_cat("axis ", axis, " is named twice"), at);
    strides[from_end] = -1;
  }
  const At last_at = first.empty() ? at : At{.where = at.where};
  const AnyOutput half = last.empty() ? x : reversed_by(x, {last.rbegin(), last.rend()}, true, last_at);
  return first.empty() && !last.empty() ? half : reversed_by(half, first, false, at);
}

AnyOutput any_mirror_pad(const AnyOutput& x, std::initializer_list<PadWidth> paddings, Mirror mirror, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, "MirrorPad", at);
  const PartialShape& shape = x.shape();
  if (shape.has_rank() && static_cast<std::size_t>(shape.rank()) != paddings.size()) {
    throw_no_reversal("MirrorPad", str_cat(paddings.size(), " pairs of paddings for shape ", shape.to_string()), at);
  }
  const At here{.where = at.where};
  const std::int64_t left_out = mirror == Mirror::reflect ? 1 : 0;
  std::vector<std::int64_t> begin(paddings.size(), 0), size(paddings.size(), -1);
  AnyOutput y = x;
  std::size_t i = 0;
  for (const PadWidth& width : paddings) {
    const std::size_t axis = i++;
    const std::int64_t extent = shape.has_rank() ? shape[static_cast<int>(axis)] : dynamic;
    const std::int64_t most = std::max(width.before, width.after);
    const bool is_too_large = extent != dynamic && most != 0 && most > extent - left_out;
    if (width.before < 0 || width.after < 0 || is_too_large) {
      throw_no_reversal("MirrorPad",
                        str_cat("paddings[", axis, "] = [", width.before, ", ", width.after, "] ",
                                is_too_large ? "exceeds the elements that can be mirrored" : "is negative",
                                " in dimension ", axis, " of shape ", shape.to_string()),
                        at);
    }
    const auto part_of = [&](const AnyOutput& whole, std::int64_t from, std::int64_t count) {
      begin[axis] = from;
      size[axis] = count;
      const AnyOutput part = any_slice(whole, begin, size, here);
      begin[axis] = 0;
      size[axis] = -1;
      return part;
    };
    const auto reversed = [&](const AnyOutput& part) {
      return any_reverse(part, static_cast<std::int64_t>(axis), here);
    };
    std::vector<AnyOutput> parts;
    if (width.before != 0) parts.push_back(reversed(part_of(y, left_out, width.before)));
    parts.push_back(y);
    if (width.after != 0 && extent != dynamic) {
      parts.push_back(reversed(part_of(y, extent - left_out - width.after, width.after)));
    } else if (width.after != 0) {
      parts.push_back(part_of(reversed(y), left_out, width.after));
    }
    if (parts.size() > 1) y = any_concat(static_cast<std::int32_t>(axis), parts, here);
  }
  return build<Identity>(graph, std::initializer_list<AnyOutput>{y}, {}, at);
}

}  // namespace detail

}  // namespace dflow
