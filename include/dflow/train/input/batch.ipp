#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/cond.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/train/input/batch.hpp>
#include <dflow/train/input/queue_runner.hpp>

#include <cstddef>
#include <utility>

namespace dflow::train {

namespace detail {

/// A queue of examples, with its enqueue and its dequeue of batches.
class Batching {
 public:
  Batching(const EdgeLists& lists, std::int32_t batch_size, const BatchOptions& options, std::string_view function,
           const At& at)
      : lists_(lists), batch_size_(batch_size), options_(options), function_(function), at_(at) {
    if (lists.empty() || lists.front().empty()) reject("there is nothing to batch");
    if (batch_size < 1) reject(str_cat("the size of a batch must be at least 1, not ", batch_size));
    if (options.num_threads < 1) reject(str_cat("num_threads must be at least 1, not ", options.num_threads));
    if (options.capacity < 1) reject(str_cat("capacity must be at least 1, not ", options.capacity));
    shapes_ = example_shapes(lists, options, function, at);
    check_keep();
    for (const AnyOutput& tensor : lists.front()) dtypes_.push_back(tensor.dtype());
  }

  GraphStore& graph() const { return *lists_.front().front().graph(); }
  const std::vector<DType>& dtypes() const { return dtypes_; }
  const std::vector<PartialShape>& shapes() const { return shapes_; }

  std::vector<AnyOutput> fill_and_take(const dflow::detail::AnyQueue& queue) const {
    std::vector<Operation> puts;
    for (const std::vector<AnyOutput>& list : lists_) puts.push_back(put(queue, list));
    if (lists_.size() == 1) puts.resize(static_cast<std::size_t>(options_.num_threads), puts.front());
    list_queue_runner(graph(), QueueRunner(queue.handle(), puts), queue_runner_collection);
    const BuiltNode taken =
        queue.dequeue(int_constant(graph(), batch_size_), options_.allow_smaller_final_batch, {.name = "batch"});
    std::vector<AnyOutput> edges;
    for (std::size_t i = 0; i < dtypes_.size(); ++i) edges.push_back(taken.output(static_cast<int>(i)));
    return edges;
  }

 private:
  [[noreturn]] void reject(std::string message) const { reject_input(function_, std::move(message), at_); }

  void check_keep() const {
    if (!options_.keep.is_valid()) return;
    const int rank = options_.keep.shape().rank();
    if (rank < 0) reject("the rank of keep must be known");
    if (rank > (options_.enqueue_many ? 1 : 0)) {
      reject(str_cat("keep must be ", options_.enqueue_many ? "a scalar or a vector" : "a scalar", ", not of shape ",
                     options_.keep.shape().to_string()));
    }
  }

  Operation put(const dflow::detail::AnyQueue& queue, const std::vector<AnyOutput>& list) const {
    if (!options_.keep.is_valid()) return queue.enqueue(list, options_.enqueue_many, {});
    if (options_.keep.shape().rank() == 0) {
      return cond(
          options_.keep, [&] { return queue.enqueue(list, options_.enqueue_many, {}); }, [] {});
    }
    const Output<std::int32_t> side = cast<std::int32_t>(options_.keep);
    std::vector<AnyOutput> kept;
    kept.reserve(list.size());
    for (const AnyOutput& tensor : list) {
      kept.push_back(dflow::detail::any_dynamic_partition(tensor, side, 2)[1]);
    }
    return queue.enqueue(kept, true, {});
  }

  const EdgeLists& lists_;
  std::int32_t batch_size_;
  const BatchOptions& options_;
  std::string_view function_;
  const At& at_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;
};

}  // namespace detail

std::vector<PartialShape> detail::example_shapes(const EdgeLists& lists, const BatchOptions& options,
                                                 std::string_view function, const At& at) {
  const std::size_t count = lists.front().size();
  if (!options.shapes.empty() && options.shapes.size() != count) {
    reject_input(function, str_cat(options.shapes.size(), " shapes for ", count, " tensors"), at);
  }
  std::vector<PartialShape> shapes;
  for (const std::vector<AnyOutput>& list : lists) {
    for (std::size_t i = 0; i < count; ++i) {
      GraphStore& graph = graph_of_input(list[i], function, at);
      if (&graph != lists.front().front().graph()) reject_input(function, "edges of different graphs", at);
      PartialShape shape = list[i].shape();
      if (options.enqueue_many && shape.has_rank()) {
        if (shape.rank() == 0) reject_input(function, str_cat("tensor ", i, " is a scalar, which has no rows"), at);
        shape = shape.subshape(1, shape.rank());
      }
      const PartialShape known = shapes.size() > i ? shapes[i] : options.shapes.empty() ? shape : options.shapes[i];
      if (!options.dynamic_pad && !known.is_compatible_with(shape)) {
        reject_input(function,
                     str_cat("tensor ", i, " has examples of shapes ", known.to_string(), " and ", shape.to_string()),
                     at);
      }
      const PartialShape common = !options.shapes.empty()           ? known
                                  : options.dynamic_pad             ? known.generalized_with(shape)
                                  : known.is_compatible_with(shape) ? known.merged_with(shape)
                                                                    : known;
      if (shapes.size() > i) {
        shapes[i] = common;
      } else {
        shapes.push_back(common);
      }
    }
  }
  for (std::size_t i = 0; options.dynamic_pad && i < count; ++i) {
    if (!shapes[i].has_rank()) {
      reject_input(function, str_cat("to pad tensor ", i, " the rank of an example must be known"), at);
    }
  }
  return shapes;
}

std::vector<AnyOutput> detail::any_batch(const EdgeLists& lists, std::int32_t batch_size, const BatchOptions& options,
                                         std::string_view function, const At& at) {
  const Batching batching(lists, batch_size, options, function, at);
  GraphStore& graph = batching.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? function : at.name);
  const QueueOptions queue_options{
      .capacity = options.capacity, .shapes = batching.shapes(), .name = "queue", .shared_name = options.shared_name};
  const dflow::detail::AnyQueue queue =
      options.dynamic_pad ? dflow::detail::padding_fifo_queue(graph, batching.dtypes(), queue_options, {})
                          : dflow::detail::AnyQueue(graph, batching.dtypes(), queue_options, {});
  return batching.fill_and_take(queue);
}

std::vector<AnyOutput> detail::any_shuffle_batch(const EdgeLists& lists, std::int32_t batch_size,
                                                 const ShuffleBatchOptions& options, std::string_view function,
                                                 const At& at) {
  if (options.min_after_dequeue < 0 || options.capacity <= options.min_after_dequeue) {
    reject_input(function,
                 str_cat("capacity ", options.capacity, " must exceed min_after_dequeue ", options.min_after_dequeue,
                         ", which is not negative"),
                 at);
  }
  const BatchOptions plain{.num_threads = options.num_threads,
                           .capacity = options.capacity,
                           .enqueue_many = options.enqueue_many,
                           .shapes = options.shapes,
                           .allow_smaller_final_batch = options.allow_smaller_final_batch,
                           .keep = options.keep};
  const Batching batching(lists, batch_size, plain, function, at);
  GraphStore& graph = batching.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? function : at.name);
  const dflow::detail::AnyQueue queue =
      dflow::detail::random_shuffle_queue(graph, batching.dtypes(),
                                          {.capacity = options.capacity,
                                           .min_after_dequeue = options.min_after_dequeue,
                                           .shapes = batching.shapes(),
                                           .seed = options.seed,
                                           .name = "queue",
                                           .shared_name = options.shared_name},
                                          {});
  return batching.fill_and_take(queue);
}

}  // namespace dflow::train
