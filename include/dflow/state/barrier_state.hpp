#pragma once

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

/// What a Barrier node keeps across steps: elements by key, of which all components have come or only some, and who
/// waits for complete ones. They are served in the order in which they came.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with; it has taken nothing then.
class BarrierState final : public AwaitedResource {
 public:
  /// `shapes` is empty, or has the shape of each component.
  struct Kind {
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;

    friend bool operator==(const Kind&, const Kind&) = default;
  };
  struct Element {
    std::int64_t index = 0;  ///< of the call that brought its first component, from the least int64 on
    std::string key;
    std::vector<AnyTensor> components;  ///< those that have not come are uninitialised
    std::size_t num_missing = 0;
  };
  /// How many are taken, and what of a closed barrier.
  struct Wanted {
    std::int64_t count = 0;
    bool allow_small_batch = false;
    bool wait_for_incomplete = false;
  };
  using TakeDone = UniqueFunction<void(Status, std::vector<Element>)>;

  BarrierState(std::string name, Kind kind);
  ~BarrierState() override;

  const Kind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;
  /// What it holds, and whether it is closed: int64 [n], all keys, and of each component the elements' values, flat.
  std::vector<AnyTensor> saved_state() const override;
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// Gives elements one of their components, a row of `values` for each key: all of them, or none if that fails.
  /// Errors: InvalidArgument for other element types or shapes, or for a component that an element has; Cancelled if
  /// the barrier is closed, and the key new.
  void insert_many(std::int64_t component, std::span<const std::string> keys, const AnyTensor& values);
  /// Takes complete elements out, those of the least index first, and of these those that were completed first.
  /// Errors: OutOfRange if the barrier is closed and too few can be complete, at once if that is so when it is called.
  void take_async(const Wanted& wanted, const CancellationToken& cancellation, TakeDone done);
  /// What a `take_async` has taken is back in its place: who took it cannot use it. What there is no memory for is
  /// lost.
  void give_back(std::vector<Element> taken) noexcept;
  /// No new key can be inserted. If `cancels_pending`, those that are not complete are dropped.
  void close(bool cancels_pending);

  std::int64_t ready_size() const;
  std::int64_t incomplete_size() const;

 private:
  struct State;
  void check(std::int64_t component, std::int64_t num_keys, const AnyTensor& values) const;

  const std::string name_;
  const Kind kind_;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
