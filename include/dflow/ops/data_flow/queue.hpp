#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

// The ops that all queues share, and the queue that gives the oldest element first; `queue_kinds.hpp` has the others.
// All calls that put in or take out are served in their order of arrival. They hold no thread while they wait.

/// Keeps elements, each a tensor per component, in the order of enqueueing; gives a handle.
struct FIFOQueue : StatefulOp<"FIFOQueue"> {
  struct Attrs {
    std::vector<DType> component_types = {};
    std::vector<PartialShape> shapes = {};  ///< of the components of an element; empty: any
    std::int64_t capacity = -1;             ///< in elements; negative: no limit
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// Waits for room, and puts one element in. Errors: Cancelled if the queue is closed.
struct QueueEnqueue : StatefulOp<"QueueEnqueue"> {
  struct Attrs {
    std::vector<DType> Tcomponents = {};
  };
  using Inputs = In<ResourceHandle, TypedList<"Tcomponents">>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The same for several elements, in the rows of each component: [n, shape...].
struct QueueEnqueueMany : StatefulOp<"QueueEnqueueMany"> {
  struct Attrs {
    std::vector<DType> Tcomponents = {};
  };
  using Inputs = In<ResourceHandle, TypedList<"Tcomponents">>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct QueueDequeueAttrs {
  std::vector<DType> component_types = {};
  std::vector<PartialShape> shapes = {};  ///< as of the queue; empty: any
};

/// Waits for an element, and takes it out. Errors: OutOfRange if the queue is closed and empty.
struct QueueDequeue : StatefulOp<"QueueDequeue"> {
  using Attrs = QueueDequeueAttrs;
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<TypedList<"component_types">>;
  static void infer(InferContext& context);
};

/// The same for n elements of equal shapes: handle, n [] -> [n, shape...]. Errors: OutOfRange if the queue is closed
/// and has fewer elements, which it keeps.
struct QueueDequeueMany : StatefulOp<"QueueDequeueMany"> {
  using Attrs = QueueDequeueAttrs;
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<TypedList<"component_types">>;
  static void infer(InferContext& context);
};

/// The same for n elements; a closed queue gives the elements that are left, but at least one.
struct QueueDequeueUpTo : StatefulOp<"QueueDequeueUpTo"> {
  using Attrs = QueueDequeueAttrs;
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<TypedList<"component_types">>;
  static void infer(InferContext& context);
};

/// Lets no more elements in. Calls that wait to put elements in still do so, unless `cancel_pending_enqueues`.
struct QueueClose : StatefulOp<"QueueClose"> {
  struct Attrs {
    bool cancel_pending_enqueues = false;
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct QueueIsClosed : StatefulOp<"QueueIsClosed"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<bool>;
  static void infer(InferContext& context);
};

/// The number of elements in the queue.
struct QueueSize : StatefulOp<"QueueSize"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

struct QueueOptions {
  /// In elements; 0 for no limit.
  std::int64_t capacity = 0;
  /// The shape of each component of an element; empty: any.
  std::vector<PartialShape> shapes = {};
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Queues with the same shared name on one device are one queue, across sessions.
  std::string_view shared_name = {};
};

using FifoQueueOptions = QueueOptions;

namespace detail {

/// Checks the rules for the components of every queue.
void infer_queue(InferContext& context, std::span<const DType> dtypes, std::span<const PartialShape> shapes,
                 std::int64_t capacity);

/// Components that are put into a queue must fit its shapes, if it has any. Errors: InvalidArgument with op and line.
void check_components(std::span<const AnyOutput> components, std::span<const PartialShape> shapes, bool many,
                      std::string_view op, const At& at);

/// A tuple of the node's outputs; the `Output` alone if there is only one.
template <Element... Ts>
auto typed_outputs(const BuiltNode& node) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (sizeof...(Ts) == 1) {
      return (Output<Ts>::unchecked(node.output(static_cast<int>(I))), ...);
    } else {
      return std::tuple{Output<Ts>::unchecked(node.output(static_cast<int>(I)))...};
    }
  }(std::index_sequence_for<Ts...>{});
}

/// A queue with component types that are known at run time only.
class AnyQueue {
 public:
  AnyQueue() = default;
  /// A FIFOQueue.
  AnyQueue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at);
  /// The queue of `handle`, with the given components.
  AnyQueue(AnyOutput handle, std::vector<DType> dtypes, std::vector<PartialShape> shapes);

  const AnyOutput& handle() const noexcept { return handle_; }
  Operation enqueue(std::span<const AnyOutput> components, bool many, const At& at) const;
  /// Takes one element if there is no `count`.
  BuiltNode dequeue(const AnyOutput& count, bool up_to, const At& at) const;
  Operation close(bool cancel_pending_enqueues, const At& at) const;
  AnyOutput size(const At& at) const;
  AnyOutput is_closed(const At& at) const;

 private:
  AnyOutput handle_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;
};

/// The part that queues of all kinds share.
template <Element... Ts>
class TypedQueue {
 public:
  TypedQueue() = default;

  const AnyOutput& handle() const noexcept { return queue_.handle(); }

  Operation enqueue(const Operand<Ts>&... components, const At& at = {}) const {
    return queue_.enqueue(std::initializer_list<AnyOutput>{components.beside(handle())...}, false, at);
  }
  /// components [n, shape...]
  Operation enqueue_many(const Operand<Ts>&... components, const At& at = {}) const {
    return queue_.enqueue(std::initializer_list<AnyOutput>{components.beside(handle())...}, true, at);
  }
  /// A tuple of `Output<Ts>`; the `Output` alone if there is only one component.
  auto dequeue(const At& at = {}) const { return outputs(queue_.dequeue({}, false, at)); }
  auto dequeue_many(const Operand<std::int32_t>& n, const At& at = {}) const {
    return outputs(queue_.dequeue(n.beside(handle()), false, at));
  }
  auto dequeue_up_to(const Operand<std::int32_t>& n, const At& at = {}) const {
    return outputs(queue_.dequeue(n.beside(handle()), true, at));
  }
  Operation close(bool cancel_pending_enqueues = false, const At& at = {}) const {
    return queue_.close(cancel_pending_enqueues, at);
  }
  Output<std::int32_t> size(const At& at = {}) const { return Output<std::int32_t>::unchecked(queue_.size(at)); }
  Output<bool> is_closed(const At& at = {}) const { return Output<bool>::unchecked(queue_.is_closed(at)); }

 protected:
  explicit TypedQueue(AnyQueue queue) : queue_(std::move(queue)) {}

 private:
  static auto outputs(const BuiltNode& node) { return typed_outputs<Ts...>(node); }

  AnyQueue queue_;
};

}  // namespace detail

/// A queue of elements, each a tensor of type T for each of Ts. It lives across steps on the device it is placed on.
///
/// ```cpp
/// df::FifoQueue<float, std::int32_t> queue(graph, {.capacity = 64, .shapes = {{784}, {}}});
/// auto fill = queue.enqueue(image, label);
/// auto [x, y] = queue.dequeue_many(32);  // [32, 784], [32]
/// ```
/// A waiting call ends with its step: by deadline, stop or error. The elements that a `dequeue_many` had taken are
/// then back in front.
///
/// Thread safety: a value type; builds, see Graph. In steps any number of calls may use a queue at once; they are
/// served in their order of arrival.
/// Errors: InvalidArgument for other shapes; in steps Cancelled for putting into a closed queue, OutOfRange for taking
/// out of a closed queue that has not enough elements left.
template <Element... Ts>
  requires(sizeof...(Ts) > 0)
class FifoQueue : public detail::TypedQueue<Ts...> {
 public:
  FifoQueue() = default;
  explicit FifoQueue(Graph& graph, const QueueOptions& options = {}, const At& at = {})
      : detail::TypedQueue<Ts...>(detail::AnyQueue(*graph.store(), {dtype_of<Ts>...}, options, at)) {}
  /// For builders that have made a queue of the same components.
  explicit FifoQueue(detail::AnyQueue queue) : detail::TypedQueue<Ts...>(std::move(queue)) {}
};

}  // namespace dflow
