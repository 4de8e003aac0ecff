#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Sums rows: data [...batch, ...row], segment_ids [...batch], num_segments a scalar. Row i of data is added to row
/// segment_ids[i] of the result [num_segments, ...row], which is zero elsewhere. Ids need not be sorted. A row with a
/// negative id is left out.
struct UnsortedSegmentSum : StandardOp<"UnsortedSegmentSum", NumberTypes, IndexTypes> {
  using Inputs = In<T, U, std::int32_t>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// data: [...batch, ...row], segment_ids: int32 or int64 [...batch], num_segments: scalar; gives [num_segments,
/// ...row].
///
/// Errors: InvalidArgument when the shapes do not fit, and when the step runs if an id is num_segments or more.
template <class A, class B, class C>
  requires Accepts<UnsortedSegmentSum, A, B, C>
Output<ElementFor<UnsortedSegmentSum, A, B, C>> unsorted_segment_sum(const A& data, const B& segment_ids,
                                                                     const C& num_segments, const At& at = {}) {
  return apply<UnsortedSegmentSum>(data, segment_ids, num_segments, {}, at);
}

namespace detail {
/// Rows as a dense edge: zeros of shape `dense_shape` (an int32 vector) with `values` added at rows `indices`. `known`
/// is the part of the shape that the graph knows.
AnyOutput scatter_rows(const AnyOutput& values, const AnyOutput& indices, const AnyOutput& dense_shape,
                       const PartialShape& known);
}  // namespace detail

}  // namespace dflow
