#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/random/shuffle.hpp>
#include <dflow/ops/state/count.hpp>
#include <dflow/train/input/producers.hpp>
#include <dflow/train/input/queue_runner.hpp>

#include <utility>

namespace dflow::train {

namespace detail {

/// Returns the rows; throws if there are none.
AnyOutput checked_rows(const AnyOutput& rows, std::string_view function, const At& at) {
  const PartialShape& shape = rows.shape();
  if (shape.has_rank() && shape.rank() == 0) reject_input(function, str_cat(function, ": a scalar has no rows"), at);
  if (shape.has_rank() && shape[0] != dynamic) {
    if (shape[0] == 0) reject_input(function, str_cat(function, " needs at least one row"), at);
    return rows;
  }
  const AnyOutput message =
      dflow::detail::any_constant(*rows.graph(), Tensor<std::string>(str_cat(function, " needs at least one row")), {});
  const Output<std::int32_t> none = int_constant(*rows.graph(), 0);
  const Operation check = assert_that(greater(num_rows(rows), none), {message});
  return dflow::detail::any_with_dependencies({&check, 1}, rows, {});
}

void check_epochs(std::optional<std::int64_t> num_epochs, std::string_view function, const At& at) {
  if (num_epochs && *num_epochs < 1) {
    reject_input(function, str_cat("num_epochs must be at least 1, not ", *num_epochs), at);
  }
}

/// The shape of the rows of a table, as far as both the table and the options give it.
PartialShape row_shape(const AnyOutput& rows, const ProducerOptions& options, std::string_view function, const At& at) {
  const PartialShape& shape = rows.shape();
  const PartialShape row =
      shape.has_rank() && shape.rank() > 0 ? shape.subshape(1, shape.rank()) : PartialShape::unknown();
  if (!options.element_shape) return row;
  if (!row.is_compatible_with(*options.element_shape)) {
    reject_input(function,
                 str_cat("element_shape ", options.element_shape->to_string(), " does not fit rows ", row.to_string()),
                 at);
  }
  return row.merged_with(*options.element_shape);
}

}  // namespace detail

AnyOutput detail::any_limit_epochs(const AnyOutput& x, std::optional<std::int64_t> num_epochs, const At& at) {
  GraphStore& graph = graph_of_input(x, "limit_epochs", at);
  check_epochs(num_epochs, "limit_epochs", at);
  if (!num_epochs) return x;
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? "limit_epochs" : at.name);
  const ScopeGuard beside = enter_colocation(graph, x.operation());
  const AnyOutput zero = dflow::detail::any_constant(graph, Tensor<std::int64_t>(0), {});
  const AnyVariable epochs = AnyVariable::make(graph, zero, {.name = "epochs", .local = true});
  const AnyOutput count =
      dflow::detail::any_count_up_to(epochs, {.limit = *num_epochs, .begins_at_zero = true}, {.name = "count"});
  const Operation counted = count.operation();
  return dflow::detail::any_with_dependencies({&counted, 1}, x, {});
}

dflow::detail::AnyQueue detail::any_input_producer(const AnyOutput& rows, const ProducerOptions& options,
                                                   std::string_view function, const At& at) {
  GraphStore& graph = graph_of_input(rows, function, at);
  check_epochs(options.num_epochs, function, at);
  if (options.capacity < 1) reject_input(function, str_cat("capacity must be at least 1, not ", options.capacity), at);
  const PartialShape row = row_shape(rows, options, function, at);
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? function : at.name);
  AnyOutput x = any_limit_epochs(checked_rows(rows, function, at), options.num_epochs, {.where = at.where});
  if (options.shuffle) x = dflow::detail::any_random_shuffle(x, {.seed = options.seed}, {});
  dflow::detail::AnyQueue queue(
      graph, {x.dtype()},
      {.capacity = options.capacity, .shapes = {row}, .name = "queue", .shared_name = options.shared_name}, {});
  const QueueRunner runner(queue.handle(), {queue.enqueue({&x, 1}, true, {})}, {.cancel = options.cancel});
  list_queue_runner(graph, runner, queue_runner_collection);
  return queue;
}

AnyOutput detail::any_strings(Graph& graph, std::vector<std::string> strings, const At& at) {
  if (strings.empty()) reject_input("string_input_producer", "string_input_producer needs at least one string", at);
  Tensor<std::string> values(Shape({static_cast<std::int64_t>(strings.size())}));
  std::move(strings.begin(), strings.end(), values.data());
  return dflow::detail::any_constant(*graph.store(), values, {.where = at.where});
}

FifoQueue<std::string> string_input_producer(const Output<std::string>& strings, const ProducerOptions& options,
                                             const At& at) {
  ProducerOptions scalars = options;
  if (!scalars.element_shape) scalars.element_shape = PartialShape{};
  return FifoQueue<std::string>(detail::any_input_producer(strings, scalars, "string_input_producer", at));
}
FifoQueue<std::string> string_input_producer(Graph& graph, std::vector<std::string> strings,
                                             const ProducerOptions& options, const At& at) {
  GraphStore::Draft draft(*graph.store());
  const Output<std::string> values(detail::any_strings(graph, std::move(strings), at));
  FifoQueue<std::string> queue = string_input_producer(values, options, at);
  draft.publish();
  return queue;
}

dflow::detail::AnyQueue detail::any_range_input_producer(const AnyOutput& limit, const ProducerOptions& options,
                                                         const At& at) {
  GraphStore& graph = graph_of_input(limit, "range_input_producer", at);
  const Composite place(graph, at.where);
  const AnyOutput numbers = build<Range>({int_constant(graph, 0), limit, int_constant(graph, 1)});
  return any_input_producer(numbers, options, "range_input_producer", at);
}

FifoQueue<std::int32_t> range_input_producer(const Output<std::int32_t>& limit, const ProducerOptions& options,
                                             const At& at) {
  return FifoQueue<std::int32_t>(detail::any_range_input_producer(limit, options, at));
}
FifoQueue<std::int32_t> range_input_producer(Graph& graph, std::int32_t limit, const ProducerOptions& options,
                                             const At& at) {
  if (limit < 1) {
    detail::reject_input("range_input_producer", str_cat("there is no number from 0 to below ", limit), at);
  }
  const Composite place(*graph.store(), at.where);
  return range_input_producer(detail::int_constant(*graph.store(), limit), options, at);
}

std::vector<AnyOutput> detail::any_slice_input_producer(std::span<const AnyOutput> tensors,
                                                        const ProducerOptions& options, const At& at) {
  constexpr std::string_view function = "slice_input_producer";
  std::int64_t rows = dynamic;
  for (const AnyOutput& tensor : tensors) {
    static_cast<void>(graph_of_input(tensor, function, at));
    const PartialShape& shape = tensor.shape();
    if (!shape.has_rank()) continue;
    if (shape.rank() == 0) reject_input(function, "slice_input_producer: a scalar has no rows", at);
    if (shape[0] == dynamic) continue;
    if (rows != dynamic && rows != shape[0]) {
      reject_input(function, str_cat("the tensors have different numbers of rows: ", rows, " and ", shape[0]), at);
    }
    rows = shape[0];
  }
  GraphStore& graph = *tensors.front().graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? function : at.name);
  ProducerOptions scalars = options;
  scalars.element_shape = PartialShape{};
  const AnyOutput number =
      any_range_input_producer(num_rows(tensors.front()), scalars, {.where = at.where}).dequeue({}, false, {});
  std::vector<AnyOutput> slices;
  for (const AnyOutput& tensor : tensors) slices.push_back(build<Gather>({tensor, number}));
  return slices;
}

}  // namespace dflow::train
