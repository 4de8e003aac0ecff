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
  /// Threads that make examples. With several their order is a matter of chance. Of a join, one for each set of edges.
  int num_threads = 1;
  /// Examples that are made ahead.
  std::int64_t capacity = 32;
  /// The tensors are many examples, in their rows.
  bool enqueue_many = false;
  /// Of an example, where the edges do not say it: one for each tensor, or none.
  std::vector<PartialShape> shapes = {};
  /// Examples of one batch may differ in dimensions that their shapes leave open: they are padded at their ends with
  /// zeros, or empty strings.
  bool dynamic_pad = false;
  /// The last batch may be smaller; else what is left of an input that has ended is dropped.
  bool allow_smaller_final_batch = false;
  /// Only examples for which it is true are put in: [], or of many examples [n]. None: all are.
  Output<bool> keep = {};
  /// Queues of one shared name on one device are one, across sessions.
  std::string_view shared_name = {};
};

struct ShuffleBatchOptions {
  /// Examples that are made ahead, more than `min_after_dequeue`.
  std::int64_t capacity = 0;
  /// So many stay to choose from, until the input ends.
  std::int64_t min_after_dequeue = 0;
  /// Of the choice; 0: from the graph's seed, or another one on each device.
  std::uint64_t seed = 0;
  // The others are those of BatchOptions.
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

/// What is known of an example that any of the sets may give. Errors: InvalidArgument.
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

/// Batches of the examples that the tensors give, each step another one: x [shape...] -> [batch_size, shape...]. A
/// runner of the graph makes them ahead (`start_queue_runners`).
///
/// ```cpp
/// auto [x, y] = df::train::batch(std::tuple{image, label}, 32, {.num_threads = 4, .capacity = 128});
/// ```
/// tensors: an edge, or a tuple of them. Errors: InvalidArgument for no size, threads or examples ahead, for shapes
/// that do not fit the tensors or, with `dynamic_pad`, have no rank, and for a `keep` of another shape. In steps
/// OutOfRange when the input has ended; an error of the input stops the coordinator, and then steps are OutOfRange as
/// well.
template <detail::EdgeTuple Edges>
auto batch(const Edges& tensors, std::int32_t batch_size, const BatchOptions& options = {}, const At& at = {}) {
  return detail::like(tensors, detail::any_batch({detail::erased(tensors)}, batch_size, options, "batch", at));
}

/// The same of examples that several sets of edges give, each in a thread of its own: readers of different files, for
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

/// As `batch`, of examples that are chosen at random from `min_after_dequeue` and more.
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

/// As `batch_join`, chosen as in `shuffle_batch`.
template <detail::EdgeTuple Edges>
auto shuffle_batch_join(const std::vector<Edges>& tensors, std::int32_t batch_size, const ShuffleBatchOptions& options,
                        const At& at = {}) {
  const detail::EdgeLists lists = detail::erased_lists(std::span<const Edges>(tensors));
  const std::vector<AnyOutput> edges = detail::any_shuffle_batch(lists, batch_size, options, "shuffle_batch_join", at);
  return detail::like(tensors.front(), edges);
}

}  // namespace dflow::train
