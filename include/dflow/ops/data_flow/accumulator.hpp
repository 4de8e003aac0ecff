#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// Gradients of several replicas, gathered where the variable is (Chen et al. 2016, arXiv:1604.00981). The shape of a
// handle is that of the variable.

struct AccumulatorAttrs {
  PartialShape shape = {};
  std::string container = {};           ///< accumulators of different containers never meet
  std::string shared_name = {};         ///< what it is kept under; the node's name where empty
  std::string reduction_type = "MEAN";  ///< of what is taken; or "SUM"
};

/// Gathers gradients until as many as are wanted are there; gives a handle. It has a step: what was computed for one
/// before is dropped.
struct ConditionalAccumulator : StatefulOp<"ConditionalAccumulator", FloatTypes> {
  using Attrs = AccumulatorAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The same for gradients of some rows of a variable [limit, row...].
struct SparseConditionalAccumulator : StatefulOp<"SparseConditionalAccumulator", FloatTypes> {
  using Attrs = AccumulatorAttrs;
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

struct ApplyGradientAttrs {
  /// Of the replica, from 0. Its next gradient for the accumulator's step takes the place of this one, so that a step
  /// that is done again counts once, and sums are in the order of ranks, whichever comes first. -1: it has none.
  std::int64_t rank = -1;
};

/// Gives a gradient that was computed for `local_step`; dropped if the accumulator's step is a later one.
/// handle, local_step [], gradient [shape...]
struct AccumulatorApplyGradient : StatefulOp<"AccumulatorApplyGradient", FloatTypes> {
  using Attrs = ApplyGradientAttrs;
  using Inputs = In<ResourceHandle, std::int64_t, T>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The same of rows: handle, local_step [], indices [n] in [0, limit), values [n, row...]. Repeated rows add up.
struct SparseAccumulatorApplyGradient : StatefulOp<"SparseAccumulatorApplyGradient", FloatTypes, IndexTypes> {
  using Attrs = ApplyGradientAttrs;
  using Inputs = In<ResourceHandle, std::int64_t, U, T>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "Tindices"};
  static void infer(InferContext& context);
};

/// Waits until at least `num_required` gradients have been given, takes all, and goes on to the next step. Their mean,
/// or sum, is the output. handle, num_required []
struct AccumulatorTakeGradient : StatefulOp<"AccumulatorTakeGradient", FloatTypes> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The same of rows: indices [n] and values [n, row...], the rows of one gradient behind those of the one before. The
/// mean is over gradients, whether they have a row or not.
struct SparseAccumulatorTakeGradient : StatefulOp<"SparseAccumulatorTakeGradient", FloatTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<U, T>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "Tindices"};
  static void infer(InferContext& context);
};

/// Takes the gradients that the replicas of those ranks gave for `step`, waits for none, and goes on to step + 1.
/// handle, ranks [m], step [] -> gradient. Errors: Aborted if one is not there.
struct AccumulatorTakeRanks : StatefulOp<"AccumulatorTakeRanks", FloatTypes> {
  using Inputs = In<ResourceHandle, std::int32_t, std::int64_t>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

struct SparseAccumulatorTakeRanks : StatefulOp<"SparseAccumulatorTakeRanks", FloatTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, std::int32_t, std::int64_t>;
  using Outputs = Out<U, T>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "Tindices"};
  static void infer(InferContext& context);
};

/// Sets the accumulator's step, of either kind: handle, step [].
struct AccumulatorSetGlobalStep : StatefulOp<"AccumulatorSetGlobalStep"> {
  struct Attrs {
    bool drops_waiting = false;  ///< the gradients that wait are dropped
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// How many gradients wait in an accumulator of either kind.
struct AccumulatorNumAccumulated : StatefulOp<"AccumulatorNumAccumulated"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

}  // namespace dflow
