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

/// The state that a Barrier node keeps across steps: elements by key, complete or with only some of their components,
/// and the calls that wait for complete elements. Calls are served in the order in which they came.
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
    std::vector<AnyTensor> components;  ///< missing ones are uninitialised
    std::size_t num_missing = 0;
  };
  /// How many elements to take, and how a closed barrier is treated.
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
  /// The barrier's elements, and whether it is closed: int64 [n], all keys, and the elements' values of each
  /// component, flat.
  std::vector<AnyTensor> saved_state() const override;
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// Gives elements one of their components, a row of `values` for each key: all of them, or none if that fails.
  /// Errors: InvalidArgument for other element types or shapes, or for a component that an element has already;
  /// Cancelled if the barrier is closed and the key is new.
  void insert_many(std::int64_t component, std::span<const std::string> keys, const AnyTensor& values);
  /// Takes complete elements out. The least index comes first; among equal indices, the element that was completed
  /// first. Errors: OutOfRange if the barrier is closed and too few elements can be complete, at once if that is true
  /// at the call.
  void take_async(const Wanted& wanted, const CancellationToken& cancellation, TakeDone done);
  /// Puts the elements of a `take_async` back in their place, because the caller cannot use them. Elements for which
  /// there is no memory are lost.
  void give_back(std::vector<Element> taken) noexcept;
  /// No new key can be inserted. If `cancels_pending`, incomplete elements are dropped.
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
