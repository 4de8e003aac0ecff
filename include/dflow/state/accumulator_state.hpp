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
  std::int64_t rank = -1;  ///< of the replica that it comes from; -1: it names none
  std::int64_t local_step = 0;
  AnyTensor indices;  ///< empty where all elements have one
  AnyTensor values;
};

/// What is taken out of an accumulator: gradients in the order of their ranks, and those without one behind them,
/// summed as far as they were.
struct TakenGradients {
  std::vector<AccumulatedGradient> gradients;
  std::int64_t count = 0;  ///< how many were given
};

/// What a ConditionalAccumulator or SparseConditionalAccumulator node keeps across steps: gradients, until there are as
/// many as somebody wants. What was computed for a step before the accumulator's own is dropped.
///
/// A gradient with a rank takes the place of the one with that rank that waits already: a replica that does a step
/// again counts once. Those without a rank are added up as they come.
///
/// Thread safety: all functions may be called from any thread.
class AccumulatorState final : public AwaitedResource {
 public:
  /// Adds up gradients without a rank, the sum of the earlier ones in front: all of them or, of rows, as soon as it
  /// pays. `new_rows` counts the rows behind the first one, and is 0 after they were added. Before it throws it changes
  /// nothing.
  using Combine = FunctionRef<void(std::vector<AccumulatedGradient>& gradients, std::int64_t& new_rows)>;
  using TakeDone = UniqueFunction<void(Status, TakenGradients)>;

  struct Kind {
    bool is_sparse = false;
    bool is_mean = true;  ///< of what is taken; else the sum
  };

  AccumulatorState(std::string name, DType dtype, const PartialShape& shape, const Kind& kind);
  ~AccumulatorState() override;

  DType dtype() const noexcept { return dtype_; }
  const PartialShape& shape() const noexcept { return shape_; }
  const Kind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;
  /// Its step and the gradients that wait: int64 [n], and the gradients' indices, int64, and values, flat.
  std::vector<AnyTensor> saved_state() const override;
  /// Puts these in the place of what waits.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// The tensors are nobody else's to write. `combine` runs under the accumulator's lock. If it throws, nothing was
  /// given.
  void apply(AccumulatedGradient gradient, Combine combine);
  /// Calls `done` once, from any thread: when at least `num_required` gradients wait, with all of them, whereupon the
  /// accumulator goes on to its next step, or with the status that `cancellation` was cancelled with: then, also where
  /// it was before the call, they stay. Who came first is served first.
  void take_async(std::int64_t num_required, const CancellationToken& cancellation, TakeDone done);
  /// The gradients that the replicas `ranks` gave for `step`; drops others of that step and of those before, and goes
  /// on to the next. Errors: Aborted, naming the rank, if one is not there: its task was started anew since.
  TakenGradients take(std::span<const std::int32_t> ranks, std::int64_t step);
  /// What was computed for steps before is dropped from now on; what waits is dropped too if `drops_waiting`.
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
