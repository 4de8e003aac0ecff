#pragma once

#include <dflow/ops/data_flow/queue.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A queue that gives the oldest element first. The shapes of elements may differ if `shapes` leaves a dimension open.
/// Elements that are taken together are then padded at their ends with zeros, or empty strings, to the largest of
/// them.
struct PaddingFIFOQueueV2 : StatefulOp<"PaddingFIFOQueueV2"> {
  struct Attrs {
    std::vector<DType> component_types = {};
    std::vector<PartialShape> shapes = {};  ///< one for each component, of known rank
    std::int64_t capacity = -1;             ///< in elements; negative: no limit
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A queue that gives any of its elements, each with the same chance. It keeps `min_after_dequeue` elements to choose
/// from until it is closed. A caller that takes out alone gets the same elements in the same order for the same seeds:
/// Philox 4x32-10, one group for each element.
struct RandomShuffleQueueV2 : StatefulOp<"RandomShuffleQueueV2"> {
  struct Attrs {
    std::vector<DType> component_types = {};
    std::vector<PartialShape> shapes = {};  ///< of the components of an element; empty: any
    std::int64_t capacity = -1;             ///< in elements, more than `min_after_dequeue`; negative: no limit
    std::int64_t min_after_dequeue = 0;
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;  ///< both 0: the device draws them
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// A queue that gives the element of least priority first; of equal priorities, the oldest. The priority is an
/// element's first component, an int64 scalar; the attributes leave it out.
struct PriorityQueueV2 : StatefulOp<"PriorityQueueV2"> {
  struct Attrs {
    std::vector<DType> component_types = {};  ///< of the other components
    std::vector<PartialShape> shapes = {};    ///< of the other components; empty: any
    std::int64_t capacity = -1;               ///< in elements; negative: no limit
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

struct RandomShuffleQueueOptions {
  /// In elements, more than `min_after_dequeue`; 0 for no limit.
  std::int64_t capacity = 0;
  /// The number of elements that stay in an open queue, to choose from.
  std::int64_t min_after_dequeue = 0;
  /// The shape of each component of an element; empty: any.
  std::vector<PartialShape> shapes = {};
  /// 0: from the graph's seed, or a different seed on each device.
  std::uint64_t seed = 0;
  std::string_view name = {};
  /// The container of the device.
  std::string_view container = {};
  /// Queues with the same shared name on one device are one queue, across sessions.
  std::string_view shared_name = {};
};

namespace detail {
AnyQueue padding_fifo_queue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at);
AnyQueue random_shuffle_queue(GraphStore& graph, std::vector<DType> dtypes, const RandomShuffleQueueOptions& options,
                              const At& at);
AnyQueue priority_queue(GraphStore& graph, std::vector<DType> dtypes, const QueueOptions& options, const At& at);
}  // namespace detail

/// A FifoQueue of elements with different shapes: elements taken together are padded with zeros, or empty strings.
///
/// ```cpp
/// df::PaddingFifoQueue<std::int32_t> sentences(graph, {.shapes = {{df::dynamic}}});
/// auto words = sentences.dequeue_many(8);  // [8, words of the longest]
/// ```
/// Thread safety, errors: as of FifoQueue. InvalidArgument also for a component of unknown rank.
template <Element... Ts>
  requires(sizeof...(Ts) > 0)
class PaddingFifoQueue : public detail::TypedQueue<Ts...> {
 public:
  PaddingFifoQueue() = default;
  explicit PaddingFifoQueue(Graph& graph, const QueueOptions& options, const At& at = {})
      : detail::TypedQueue<Ts...>(detail::padding_fifo_queue(*graph.store(), {dtype_of<Ts>...}, options, at)) {}
};

/// A queue that gives its elements in random order; reproducibly if it has a seed and callers take out one at a time.
///
/// ```cpp
/// df::RandomShuffleQueue<float> examples(graph, {.capacity = 1000, .min_after_dequeue = 500, .shapes = {{784}}});
/// ```
/// The state of its random stream is saved with its elements.
///
/// Thread safety, errors: as of FifoQueue. InvalidArgument also unless 0 <= min_after_dequeue < capacity.
template <Element... Ts>
  requires(sizeof...(Ts) > 0)
class RandomShuffleQueue : public detail::TypedQueue<Ts...> {
 public:
  RandomShuffleQueue() = default;
  explicit RandomShuffleQueue(Graph& graph, const RandomShuffleQueueOptions& options = {}, const At& at = {})
      : detail::TypedQueue<Ts...>(detail::random_shuffle_queue(*graph.store(), {dtype_of<Ts>...}, options, at)) {}
};

/// A queue that gives the element of least priority first; of equal priorities, the oldest. The priority, an int64
/// scalar, is put in and taken out before the components; the options' shapes are the shapes of the other components.
///
/// ```cpp
/// df::PriorityQueue<std::string> jobs(graph);
/// auto put = jobs.enqueue(priority, name);
/// auto [least, next] = jobs.dequeue();
/// ```
/// Thread safety, errors: as of FifoQueue.
template <Element... Ts>
class PriorityQueue : public detail::TypedQueue<std::int64_t, Ts...> {
 public:
  PriorityQueue() = default;
  explicit PriorityQueue(Graph& graph, const QueueOptions& options = {}, const At& at = {})
      : detail::TypedQueue<std::int64_t, Ts...>(
            detail::priority_queue(*graph.store(), {dtype_of<Ts>...}, options, at)) {}
};

}  // namespace dflow
