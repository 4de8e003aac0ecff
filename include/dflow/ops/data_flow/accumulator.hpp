#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// Gradients of several replicas, gathered on the variable's device (Chen et al. 2016, arXiv:1604.00981). The shape of
// a handle is the shape of the variable.

struct AccumulatorAttrs {
  PartialShape shape = {};
  std::string container = {};           ///< accumulators of different containers never meet
  std::string shared_name = {};         ///< the resource's name; if empty, the node's name
  std::string reduction_type = "MEAN";  ///< of the taken gradients; or "SUM"
};

/// Gathers gradients until the wanted number is there; gives a handle. An accumulator has a step: gradients that were
/// computed for an earlier step are dropped.
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
  /// The rank of the replica, from 0; -1: none. The replica's next gradient for the accumulator's step replaces this
  /// one, so a step that is done again counts once. Sums are in the order of ranks, not in the order of arrival.
  std::int64_t rank = -1;
};

/// Gives a gradient that was computed for `local_step`; it is dropped if the accumulator's step is a later one.
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

/// Waits until at least `num_required` gradients have been given, takes all, and goes on to the next step. The output
/// is their mean, or sum. handle, num_required []
struct AccumulatorTakeGradient : StatefulOp<"AccumulatorTakeGradient", FloatTypes> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The same for rows: indices [n] and values [n, row...], the rows of each gradient behind the rows of the one before.
/// The mean is over all gradients, including gradients without the row.
struct SparseAccumulatorTakeGradient : StatefulOp<"SparseAccumulatorTakeGradient", FloatTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<U, T>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "Tindices"};
  static void infer(InferContext& context);
};

/// Takes the gradients that the replicas of the given ranks gave for `step`, waits for none, and goes on to step + 1.
/// handle, ranks [m], step [] -> gradient. Errors: Aborted if a gradient is not there.
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

/// Sets the step of an accumulator of either kind: handle, step [].
struct AccumulatorSetGlobalStep : StatefulOp<"AccumulatorSetGlobalStep"> {
  struct Attrs {
    bool drops_waiting = false;  ///< the gradients that wait are dropped
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The number of gradients that wait in an accumulator of either kind.
struct AccumulatorNumAccumulated : StatefulOp<"AccumulatorNumAccumulated"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

}  // namespace dflow
