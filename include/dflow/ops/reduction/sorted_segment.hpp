#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>

namespace dflow {

namespace detail {
/// data [rows, ...row], then indices of its rows if the op has them, and segment_ids.
void infer_segments(InferContext& context);
/// grad [segments, ...row], indices, segment_ids, output_dim0.
void infer_segment_gradient(InferContext& context);
/// A vector [n] as [n, 1, ...], of the rank of x.
Expr as_column(const AnyOutput& vector, const Expr& x);
}  // namespace detail

/// The base of reductions of runs of rows: data [n, ...row], segment_ids [n], ascending. Row s of the result [last id +
/// 1, ...row] is made of the rows whose id is s.
template <FixedString Name, class AllowedTypes>
struct SegmentReduction : StandardOp<Name, AllowedTypes, IndexTypes> {
  using Inputs = In<TypeParam<0>, TypeParam<1>>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context) { detail::infer_segments(context); }
};

/// The same of rows `indices` of data, which may repeat: data [rows, ...row], indices [n], segment_ids [n].
template <FixedString Name, class AllowedTypes>
struct SparseSegmentReduction : StandardOp<Name, AllowedTypes, IndexTypes> {
  using Inputs = In<TypeParam<0>, TypeParam<1>, std::int32_t>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tidx"};
  static void infer(InferContext& context) { detail::infer_segments(context); }
};

/// The gradient of a SparseSegmentReduction as a dense tensor: grad [segments, ...row], indices [n], segment_ids [n],
/// output_dim0, a scalar, the number of rows of the result.
template <FixedString Name>
struct SparseSegmentGradient : StandardOp<Name, FloatTypes, IndexTypes> {
  using Inputs = In<TypeParam<0>, TypeParam<1>, std::int32_t, std::int32_t>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tidx"};
  static void infer(InferContext& context) { detail::infer_segment_gradient(context); }
};

/// The sum of each segment; 0 where no row has the id.
struct SegmentSum : SegmentReduction<"SegmentSum", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The mean of each segment; 0 where no row has the id. That of integers is rounded toward 0.
struct SegmentMean : SegmentReduction<"SegmentMean", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The product of each segment; 1 where no row has the id.
struct SegmentProd : SegmentReduction<"SegmentProd", NumberTypes> {
  static void gradient(GradientContext& context);
};
/// The smallest element of each segment; 0 where no row has the id.
struct SegmentMin : SegmentReduction<"SegmentMin", RealTypes> {
  static void gradient(GradientContext& context);
};
/// The largest element of each segment; 0 where no row has the id.
struct SegmentMax : SegmentReduction<"SegmentMax", RealTypes> {
  static void gradient(GradientContext& context);
};

struct SparseSegmentSum : SparseSegmentReduction<"SparseSegmentSum", RealTypes> {
  static void gradient(GradientContext& context);
};
struct SparseSegmentMean : SparseSegmentReduction<"SparseSegmentMean", FloatTypes> {
  static void gradient(GradientContext& context);
};
/// The sum of each segment, divided by the square root of the number of its rows.
struct SparseSegmentSqrtN : SparseSegmentReduction<"SparseSegmentSqrtN", FloatTypes> {
  static void gradient(GradientContext& context);
};
struct SparseSegmentSumGrad : SparseSegmentGradient<"SparseSegmentSumGrad"> {
  static void gradient(GradientContext& context);
};
struct SparseSegmentMeanGrad : SparseSegmentGradient<"SparseSegmentMeanGrad"> {
  static void gradient(GradientContext& context);
};
struct SparseSegmentSqrtNGrad : SparseSegmentGradient<"SparseSegmentSqrtNGrad"> {
  static void gradient(GradientContext& context);
};

// Reductions of segments: data [n, ...row], segment_ids [n], int32 or int64, not negative and never below the one
// before it; gives [last id + 1, ...row]. 16-bit floats are combined in float and rounded once.
//
// ```cpp
// df::segment_sum(data, df::Tensor<int>({4}, {0, 0, 1, 3}));   // rows: data[0] + data[1], data[2], zeros, data[3]
// ```
// Errors: InvalidArgument when the shapes do not fit; in the step, with the position, for an id that is negative or
// below the one before it.

/// Sums; 0 where no row has the id.
template <class A, class B>
  requires Accepts<SegmentSum, A, B>
Output<ElementFor<SegmentSum, A, B>> segment_sum(const A& data, const B& segment_ids, const At& at = {}) {
  return apply<SegmentSum>(data, segment_ids, {}, at);
}
/// Means; 0 where no row has the id. Integers are added in 64 bits, and their mean is rounded toward 0.
template <class A, class B>
  requires Accepts<SegmentMean, A, B>
Output<ElementFor<SegmentMean, A, B>> segment_mean(const A& data, const B& segment_ids, const At& at = {}) {
  return apply<SegmentMean>(data, segment_ids, {}, at);
}
/// Products; 1 where no row has the id. The gradient is exact also where elements are 0, as that of `cumprod`.
template <class A, class B>
  requires Accepts<SegmentProd, A, B>
Output<ElementFor<SegmentProd, A, B>> segment_prod(const A& data, const B& segment_ids, const At& at = {}) {
  return apply<SegmentProd>(data, segment_ids, {}, at);
}
/// Smallest elements; 0 where no row has the id. Equal ones share the gradient.
template <class A, class B>
  requires Accepts<SegmentMin, A, B>
Output<ElementFor<SegmentMin, A, B>> segment_min(const A& data, const B& segment_ids, const At& at = {}) {
  return apply<SegmentMin>(data, segment_ids, {}, at);
}
/// Largest elements; 0 where no row has the id. Equal ones share the gradient.
template <class A, class B>
  requires Accepts<SegmentMax, A, B>
Output<ElementFor<SegmentMax, A, B>> segment_max(const A& data, const B& segment_ids, const At& at = {}) {
  return apply<SegmentMax>(data, segment_ids, {}, at);
}

// The same of the rows `indices` of data, without a copy of them: data [rows, ...row], indices [n], int32 or int64,
// segment_ids [n], int32, ascending; gives [last id + 1, ...row]. The gradient by data is IndexedSlices: only the rows
// that were read have one.
//
// Errors: as above; in the step, with the position, for an index outside [0, rows).

template <class A, class B, class C>
  requires Accepts<SparseSegmentSum, A, B, C>
Output<ElementFor<SparseSegmentSum, A, B, C>> sparse_segment_sum(const A& data, const B& indices, const C& segment_ids,
                                                                 const At& at = {}) {
  return apply<SparseSegmentSum>(data, indices, segment_ids, {}, at);
}
template <class A, class B, class C>
  requires Accepts<SparseSegmentMean, A, B, C>
Output<ElementFor<SparseSegmentMean, A, B, C>> sparse_segment_mean(const A& data, const B& indices,
                                                                   const C& segment_ids, const At& at = {}) {
  return apply<SparseSegmentMean>(data, indices, segment_ids, {}, at);
}
/// Sums divided by the square root of the number of rows.
template <class A, class B, class C>
  requires Accepts<SparseSegmentSqrtN, A, B, C>
Output<ElementFor<SparseSegmentSqrtN, A, B, C>> sparse_segment_sqrt_n(const A& data, const B& indices,
                                                                      const C& segment_ids, const At& at = {}) {
  return apply<SparseSegmentSqrtN>(data, indices, segment_ids, {}, at);
}

}  // namespace dflow
