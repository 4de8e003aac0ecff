#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/memory/allocator.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/awaited_resource.hpp>
#include <dflow/state/held_elements.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Which element of a queue is next, and which elements are taken together.
enum class QueueKind : std::uint8_t {
  fifo,            ///< the oldest; elements of equal shapes together
  padding_fifo,    ///< the oldest; elements taken together are padded with zeros, or empty strings, to the largest
  random_shuffle,  ///< any; as fifo together
  priority,        ///< the oldest of the least first component, an int64 scalar; as fifo together
  staging,         ///< the oldest; a StagingArea's
};

/// The op of a queue of this kind.
std::string_view queue_kind_name(QueueKind kind) noexcept;

/// The state that a node with a queue keeps across steps: elements, each a tensor per component, and the calls that
/// wait to put in or take out. All calls are served in the order in which they came.
///
/// Thread safety: all functions may be called from any thread. A `done` is called once, from any thread, also with the
/// status that its token was cancelled with. After a cancellation, elements that the call had taken are back in their
/// place, and elements that it had put in stay.
class QueueState final : public AwaitedResource {
 public:
  using EnqueueDone = UniqueFunction<void(Status)>;
  using DequeueDone = UniqueFunction<void(Status, std::vector<QueuedElements>)>;

  /// `shapes` is empty, or has the shape of each component.
  struct Kind {
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;
    std::int64_t capacity = -1;  ///< in elements; negative: none
    QueueKind kind = QueueKind::fifo;
    std::int64_t min_after_dequeue = 0;  ///< number of elements that are left to choose from until the queue is closed
    std::int64_t memory_limit = -1;      ///< in bytes, of elements that are put in alone; negative: none
    std::int64_t seed = 0;               ///< of the random choice, as the node has it
    std::int64_t seed2 = 0;

    friend bool operator==(const Kind&, const Kind&) = default;
  };

  /// `random`: the stream of its random choices.
  QueueState(std::string name, Kind kind, const RandomStreamState& random = {});
  ~QueueState() override;

  const Kind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;
  /// The queue's elements, whether it is closed, and how far its random stream has come: int64 [n], and the elements'
  /// values of each component, flat. Elements that a waiting call has taken so far are included. Elements that a
  /// waiting call has not put in are not.
  std::vector<AnyTensor> saved_state() const override;
  /// Replaces the queue's elements, and the elements that waiting calls have taken. A closed queue may be open then.
  void restore_state(std::span<const AnyTensor> state) override;
  void abandon(const Status& why) override;

  /// Puts elements in as there is room. Elements of one call stay together in order; if there is no room for all,
  /// others may come between. Nobody else may write the tensors. Errors: InvalidArgument for other element types or
  /// shapes; ResourceExhausted for more than the memory limit; Cancelled if the queue is closed.
  void enqueue_async(QueuedElements elements, const CancellationToken& cancellation, EnqueueDone done);
  /// Takes `count` elements out, or, if `up_to` and the queue is closed, the elements that are left, but at least one.
  /// Errors: OutOfRange if the queue is closed and has too few, which it keeps.
  void dequeue_async(std::int64_t count, bool up_to, const CancellationToken& cancellation, DequeueDone done);
  /// Puts the elements of a `dequeue_async` back in their place, because the caller cannot use them. Elements for
  /// which there is no memory are lost.
  void give_back(std::vector<QueuedElements> taken) noexcept;
  /// Drops the queue's elements.
  void clear();
  /// No new call can put elements in. Calls that wait to put in go on, or get Cancelled if `cancels_pending`.
  void close(bool cancels_pending);

  std::int64_t size() const;
  bool is_closed() const;

 private:
  struct State;
  void check(const QueuedElements& elements) const;

  const std::string name_;
  const Kind kind_;
  const std::shared_ptr<State> state_;
};

namespace detail {

/// One tensor [count, element shape...] of elements taken out of a queue, or of one element alone, [element shape...].
/// Elements of different shapes are padded if the queue pads. Errors: InvalidArgument if it does not.
AnyTensor join_elements(const std::vector<QueuedElements>& parts, std::size_t component, const QueueState::Kind& kind,
                        bool is_single, Allocator& allocator);

}  // namespace detail

}  // namespace dflow
