#pragma once

#include <dflow/core/partial_shape.hpp>
#include <dflow/train/input/edges.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace dflow::train {

struct BatchOptions {
  /// Threads that make examples; at least 1. With several threads the order of examples is random. A join of several
  /// sets of edges has one thread for each set instead.
  int num_threads = 1;
  /// Examples that are made ahead.
  std::int64_t capacity = 32;
  /// Each row of the tensors is an example.
  bool enqueue_many = false;
  /// Shapes of an example, if the edges do not know them: one for each tensor, or none.
  std::vector<PartialShape> shapes = {};
  /// Examples of one batch may differ in dimensions that their shapes leave open: padding fills their ends with zeros
  /// or empty strings.
  bool dynamic_pad = false;
  /// The last batch may be smaller. Otherwise the rest of an input that has ended is dropped.
  bool allow_smaller_final_batch = false;
  /// Keeps only examples with a true value: [], or [n] for many examples. None: keeps all.
  Output<bool> keep = {};
  /// Queues of one shared name on one device are one, across sessions.
  std::string_view shared_name = {};
};

struct ShuffleBatchOptions {
  /// Examples that are made ahead, more than `min_after_dequeue`.
  std::int64_t capacity = 0;
  /// Number of examples that stay to choose from, until the input ends.
  std::int64_t min_after_dequeue = 0;
  /// Seed of the choice; 0: from the graph's seed, or another seed on each device.
  std::uint64_t seed = 0;
  // The other options are as in BatchOptions.
  int num_threads = 1;
  bool enqueue_many = false;
  std::vector<PartialShape> shapes = {};
  bool allow_smaller_final_batch = false;
  Output<bool> keep = {};
  std::string_view shared_name = {};
};

namespace detail {

/// Sets of edges of the same element types.
using EdgeLists = std::vector<std::vector<AnyOutput>>;

/// The known shapes of an example from any of the sets. Errors: InvalidArgument.
std::vector<PartialShape> example_shapes(const EdgeLists& lists, const BatchOptions& options, std::string_view function,
                                         const At& at);
std::vector<AnyOutput> any_batch(const EdgeLists& lists, std::int32_t batch_size, const BatchOptions& options,
                                 std::string_view function, const At& at);
std::vector<AnyOutput> any_shuffle_batch(const EdgeLists& lists, std::int32_t batch_size,
                                         const ShuffleBatchOptions& options, std::string_view function, const At& at);

template <EdgeTuple Edges>
EdgeLists erased_lists(std::span<const Edges> lists) {
  EdgeLists all;
  for (const Edges& edges : lists) all.push_back(erased(edges));
  return all;
}

}  // namespace detail

/// Batches of the examples that the tensors give, another batch in each step: x [shape...] -> [batch_size, shape...].
/// A runner of the graph makes the batches ahead (`start_queue_runners`).
///
/// ```cpp
/// auto [x, y] = df::train::batch(std::tuple{image, label}, 32, {.num_threads = 4, .capacity = 128});
/// ```
/// tensors: an edge, or a tuple of edges. Errors: InvalidArgument for no size, threads or examples ahead, for shapes
/// that do not fit the tensors or, with `dynamic_pad`, have no rank, and for a `keep` of another shape. A step fails
/// with OutOfRange when the input has ended. An error of the input stops the coordinator, and steps then fail with
/// OutOfRange as well.
template <detail::EdgeTuple Edges>
auto batch(const Edges& tensors, std::int32_t batch_size, const BatchOptions& options = {}, const At& at = {}) {
  return detail::like(tensors, detail::any_batch({detail::erased(tensors)}, batch_size, options, "batch", at));
}

/// As `batch`, with examples from several sets of edges, each in a thread of its own: readers of different files, for
/// example. `num_threads` does not count.
///
/// ```cpp
/// std::vector<std::tuple<df::Output<float>, df::Output<std::int32_t>>> readers = ...;
/// auto [x, y] = df::train::batch_join(readers, 32);
/// ```
template <detail::EdgeTuple Edges>
auto batch_join(const std::vector<Edges>& tensors, std::int32_t batch_size, const BatchOptions& options = {},
                const At& at = {}) {
  const detail::EdgeLists lists = detail::erased_lists(std::span<const Edges>(tensors));
  const std::vector<AnyOutput> edges = detail::any_batch(lists, batch_size, options, "batch_join", at);
  return detail::like(tensors.front(), edges);
}

/// As `batch`, with examples that are chosen at random from at least `min_after_dequeue` examples.
///
/// ```cpp
/// auto [x, y] = df::train::shuffle_batch(std::tuple{image, label}, 32, {.capacity = 2000, .min_after_dequeue = 1000});
/// ```
/// Errors: InvalidArgument also unless 0 <= min_after_dequeue < capacity.
template <detail::EdgeTuple Edges>
auto shuffle_batch(const Edges& tensors, std::int32_t batch_size, const ShuffleBatchOptions& options,
                   const At& at = {}) {
  return detail::like(tensors,
                      detail::any_shuffle_batch({detail::erased(tensors)}, batch_size, options, "shuffle_batch", at));
}

/// As `batch_join`, with examples chosen as in `shuffle_batch`.
template <detail::EdgeTuple Edges>
auto shuffle_batch_join(const std::vector<Edges>& tensors, std::int32_t batch_size, const ShuffleBatchOptions& options,
                        const At& at = {}) {
  const detail::EdgeLists lists = detail::erased_lists(std::span<const Edges>(tensors));
  const std::vector<AnyOutput> edges = detail::any_shuffle_batch(lists, batch_size, options, "shuffle_batch_join", at);
  return detail::like(tensors.front(), edges);
}

}  // namespace dflow::train
