#pragma once

#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/train/input/edges.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dflow::train {

struct ProducerOptions {
  /// How often each row comes; none: without end.
  std::optional<std::int64_t> num_epochs = {};
  /// The rows come in random order, another order in each epoch.
  bool shuffle = true;
  /// Seed of the order; 0: from the graph's seed, or another seed on each device.
  std::uint64_t seed = 0;
  /// Capacity of the queue in rows: at least 1.
  std::int64_t capacity = 32;
  /// Shape of a row, if the edge does not know it.
  std::optional<PartialShape> element_shape = {};
  /// Queues of one shared name on one device are one, across sessions.
  std::string_view shared_name = {};
  /// Runs when the coordinator stops; by default it closes and cancels the queue (`QueueRunnerOptions`).
  Operation cancel = {};
};

namespace detail {
AnyOutput any_limit_epochs(const AnyOutput& x, std::optional<std::int64_t> num_epochs, const At& at);
dflow::detail::AnyQueue any_input_producer(const AnyOutput& rows, const ProducerOptions& options,
                                           std::string_view function, const At& at);
AnyOutput any_strings(Graph& graph, std::vector<std::string> strings, const At& at);
/// 0 to `limit` - 1.
dflow::detail::AnyQueue any_range_input_producer(const AnyOutput& limit, const ProducerOptions& options, const At& at);
std::vector<AnyOutput> any_slice_input_producer(std::span<const AnyOutput> tensors, const ProducerOptions& options,
                                                const At& at);
}  // namespace detail

/// x in `num_epochs` steps on a device, then OutOfRange. Without a number, x itself.
///
/// A local variable (`VariableOptions::local`) on the device of x counts the steps. It begins at 0 by itself. Errors:
/// InvalidArgument for fewer epochs than one.
template <Element T>
Output<T> limit_epochs(const Output<T>& x, std::optional<std::int64_t> num_epochs, const At& at = {}) {
  return Output<T>::unchecked(detail::any_limit_epochs(x, num_epochs, at));
}

/// A queue of the rows of x [rows, row...], epoch after epoch. A runner of the graph fills the queue
/// (`start_queue_runners`).
///
/// ```cpp
/// auto queue = df::train::input_producer(table, {.num_epochs = 3, .shuffle = true, .seed = 1});
/// auto row = queue.dequeue();
/// ```
/// Errors: InvalidArgument for a scalar, for no rows, for fewer epochs or rows ahead than one, and for an
/// `element_shape` that does not fit. If only a step can see that there are no rows, InvalidArgument stops the
/// coordinator.
template <Element T>
FifoQueue<T> input_producer(const Output<T>& x, const ProducerOptions& options = {}, const At& at = {}) {
  return FifoQueue<T>(detail::any_input_producer(x, options, "input_producer", at));
}

/// The same for strings, for example names of files: [strings].
FifoQueue<std::string> string_input_producer(const Output<std::string>& strings, const ProducerOptions& options = {},
                                             const At& at = {});
FifoQueue<std::string> string_input_producer(Graph& graph, std::vector<std::string> strings,
                                             const ProducerOptions& options = {}, const At& at = {});

/// The same for the numbers from 0 to `limit` - 1. limit: [].
FifoQueue<std::int32_t> range_input_producer(const Output<std::int32_t>& limit, const ProducerOptions& options = {},
                                             const At& at = {});
FifoQueue<std::int32_t> range_input_producer(Graph& graph, std::int32_t limit, const ProducerOptions& options = {},
                                             const At& at = {});

/// One row of each of the tensors [rows, row...] in each step, all rows with the same number.
///
/// ```cpp
/// auto [image, label] = df::train::slice_input_producer(std::tuple{images, labels}, {.num_epochs = 10});
/// ```
/// Errors: as `input_producer`; also for tensors with different numbers of rows.
template <detail::EdgeTuple Edges>
auto slice_input_producer(const Edges& tensors, const ProducerOptions& options = {}, const At& at = {}) {
  return detail::like(tensors, detail::any_slice_input_producer(detail::erased(tensors), options, at));
}

}  // namespace dflow::train
