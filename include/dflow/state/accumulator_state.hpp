#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/awaited_resource.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// A gradient that waits in an accumulator: of all elements, or of the rows `indices` [n].
struct AccumulatedGradient {
  std::int64_t rank = -1;  ///< of the replica that it comes from; -1: no replica is named
  std::int64_t local_step = 0;
  AnyTensor indices;  ///< empty if the gradient is of all elements
  AnyTensor values;   ///< of a sum: of the type of sums (`sum_type`)
};

/// The gradients that a call takes out of an accumulator, in the order of their ranks. Gradients without a rank come
/// last, summed as far as they were.
struct TakenGradients {
  std::vector<AccumulatedGradient> gradients;
  std::int64_t count = 0;  ///< how many were given
};

/// The state that a ConditionalAccumulator or SparseConditionalAccumulator node keeps across steps: gradients, until
/// there are as many as a taker wants. A gradient that was computed for a step before the accumulator's own is
/// dropped.
///
/// A gradient with a rank replaces the waiting gradient of that rank: a replica that does a step again counts once.
/// Gradients without a rank are added up as they come.
///
/// Thread safety: all functions may be called from any thread.
class AccumulatorState final : public AwaitedResource {
 public:
  /// Adds up gradients without a rank, with the sum of the earlier ones in front. It adds all of them or, if they are
  /// of rows, adds as soon as it pays. `new_rows` counts the rows behind the first gradient, and is 0 after they were
  /// added. Before it throws it changes nothing.
  using Combine = FunctionRef<void(std::vector<AccumulatedGradient>& gradients, std::int64_t& new_rows)>;
  using TakeDone = UniqueFunction<void(Status, TakenGradients)>;

  struct Kind {
    bool is_sparse = false;
    bool is_mean = true;  ///< the mean of the gradients taken; else the sum
  };

  AccumulatorState(std::string name, DType dtype, const PartialShape& shape, const Kind& kind);
  ~AccumulatorState() override;

  DType dtype() const noexcept { return dtype_; }
  const PartialShape& shape() const noexcept { return shape_; }
  const Kind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;
  /// Its step and the waiting gradients: int64 [n], and the gradients' indices, int64, and values in the type of sums,
  /// flat.
  std::vector<AnyTensor> saved_state() const override;
  /// Replaces the waiting gradients with the saved ones.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// Nobody else may write the tensors. `combine` runs under the accumulator's lock. If it throws, nothing was given.
  void apply(AccumulatedGradient gradient, Combine combine);
  /// Calls `done` once, from any thread. When at least `num_required` gradients wait, `done` gets all of them, and the
  /// accumulator goes on to its next step. If `cancellation` is cancelled, also before the call, `done` gets its
  /// status, and the gradients stay. Takers are served in the order in which they came.
  void take_async(std::int64_t num_required, const CancellationToken& cancellation, TakeDone done);
  /// The gradients that the replicas `ranks` gave for `step`. Drops other gradients of that step and of earlier steps,
  /// and goes on to the next step. Errors: Aborted, naming the rank, if one is not there: its task was started anew
  /// since.
  TakenGradients take(std::span<const std::int32_t> ranks, std::int64_t step);
  /// From now on gradients computed for earlier steps are dropped. Waiting gradients are dropped too if
  /// `drops_waiting`.
  void set_global_step(std::int64_t step, bool drops_waiting);

  std::int64_t num_accumulated() const;
  std::int64_t global_step() const;

 private:
  struct State;

  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;
  const Kind kind_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
