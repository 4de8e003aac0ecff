#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/cond.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/train/input/batch.hpp>
#include <dflow/train/input/bucket.hpp>
#include <dflow/train/input/queue_runner.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

namespace dflow::train {

namespace detail {

/// The queues of the buckets, and the one of batches that are full.
class Buckets {
 public:
  Buckets(const std::vector<AnyOutput>& tensors, const AnyOutput& which, const BatchSizes& sizes, int num_buckets,
          const BucketOptions& options, std::string_view function, const At& at)
      : tensors_(tensors), which_(which), options_(options), function_(function), at_(at) {
    if (num_buckets < 1) reject(str_cat("there must be at least one bucket, not ", num_buckets));
    const auto count = static_cast<std::size_t>(num_buckets);
    sizes_ = sizes.is_of_all() ? std::vector<std::int32_t>(count, sizes.sizes().front()) : sizes.sizes();
    capacities_ = options.bucket_capacities;
    if (capacities_.empty()) capacities_.assign(count, options.capacity);
    if (sizes_.size() != count) reject(str_cat(sizes_.size(), " batch sizes for ", count, " buckets"));
    if (capacities_.size() != count) reject(str_cat(capacities_.size(), " capacities for ", count, " buckets"));
    const std::int32_t least = *std::min_element(sizes_.begin(), sizes_.end());
    if (least < 1) reject(str_cat("the size of a batch must be at least 1, not ", least));
    const std::int64_t room = std::min(options.capacity, *std::min_element(capacities_.begin(), capacities_.end()));
    if (room < 1) reject(str_cat("capacity must be at least 1, not ", room));
    if (options.num_threads < 1) reject(str_cat("num_threads must be at least 1, not ", options.num_threads));
    check_scalar(which, "which");
    if (options.keep.is_valid()) check_scalar(options.keep, "keep");
    shapes_ = example_shapes({tensors}, {.shapes = options.shapes, .dynamic_pad = options.dynamic_pad}, function, at);
    for (const AnyOutput& tensor : tensors) dtypes_.push_back(tensor.dtype());
  }

  GraphStore& graph() const { return *tensors_.front().graph(); }

  std::vector<AnyOutput> build_all() {
    make_queues();
    fill_buckets();
    fill_batches();
    const BuiltNode taken = batches_.dequeue({}, false, {.name = "batch"});
    std::vector<AnyOutput> edges;
    for (std::size_t i = 0; i <= dtypes_.size(); ++i) edges.push_back(taken.output(static_cast<int>(i)));
    return edges;
  }

 private:
  [[noreturn]] void reject(std::string message) const { reject_input(function_, std::move(message), at_); }

  void check_scalar(const AnyOutput& edge, std::string_view name) const {
    static_cast<void>(graph_of_input(edge, function_, at_));
    const PartialShape& shape = edge.shape();
    if (!shape.is_compatible_with(PartialShape{})) {
      reject(str_cat(name, " must be a scalar, not of shape ", shape.to_string()));
    }
  }

  std::string shared(std::string_view suffix) const {
    return options_.shared_name.empty() ? std::string() : str_cat(options_.shared_name, "_", suffix);
  }

  void make_queues() {
    std::vector<PartialShape> batch_shapes{PartialShape{}};
    const bool has_one_size = std::equal(sizes_.begin() + 1, sizes_.end(), sizes_.begin());
    const std::int64_t rows = has_one_size && !options_.allow_smaller_final_batch ? sizes_.front() : dynamic;
    for (const PartialShape& shape : shapes_) batch_shapes.push_back(PartialShape{rows}.concatenated(shape));
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::string name = str_cat("bucket_", i), shared_name = shared(name);
      const QueueOptions of_bucket{
          .capacity = capacities_[i], .shapes = shapes_, .name = name, .shared_name = shared_name};
      buckets_.push_back(options_.dynamic_pad ? dflow::detail::padding_fifo_queue(graph(), dtypes_, of_bucket, {})
                                              : dflow::detail::AnyQueue(graph(), dtypes_, of_bucket, {}));
    }
    std::vector<DType> batch_types{DType::int32};
    batch_types.insert(batch_types.end(), dtypes_.begin(), dtypes_.end());
    const std::string shared_name = shared("batches");
    batches_ = dflow::detail::AnyQueue(
        graph(), batch_types,
        {.capacity = options_.capacity, .shapes = batch_shapes, .name = "batches", .shared_name = shared_name}, {});
  }

  /// An example into the queue of its bucket.
  Operation put() const {
    const Output<std::int32_t> which(which_);
    const Output<std::int32_t> end = int_constant(graph(), static_cast<std::int32_t>(sizes_.size()));
    const AnyOutput message = dflow::detail::any_constant(
        graph(), Tensor<std::string>(str_cat("the buckets are those from 0 to ", sizes_.size() - 1, ", not")), {});
    const Operation checks[] = {assert_that(less(which, end), {message, which_}),
                                assert_that(greater_equal(which, int_constant(graph(), 0)), {message, which_})};
    const AnyOutput checked = dflow::detail::any_with_dependencies(checks, which_, {});
    std::vector<std::string> names;
    for (std::size_t i = 0; i < buckets_.size(); ++i) names.push_back(str_cat("bucket_", i));
    const auto put_into = [this](std::size_t i) {
      return dflow::detail::BodyResults{{}, {buckets_[i].enqueue(tensors_, false, {})}};
    };
    return dflow::detail::any_branch(checked, names, put_into, "put", {});
  }

  void fill_buckets() const {
    const Operation put_one = options_.keep.is_valid() ? cond(
                                                             options_.keep, [this] { return put(); }, [] {})
                                                       : put();
    std::vector<Operation> closes, cancels;
    for (const dflow::detail::AnyQueue& queue : buckets_) {
      closes.push_back(queue.close(false, {}));
      cancels.push_back(queue.close(true, {}));
    }
    const QueueRunner runner(buckets_.front().handle(),
                             std::vector<Operation>(static_cast<std::size_t>(options_.num_threads), put_one),
                             {.close = group(closes), .cancel = group(cancels)});
    list_queue_runner(graph(), runner, queue_runner_collection);
  }

  void fill_batches() const {
    std::vector<Operation> puts;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const BuiltNode batch =
          buckets_[i].dequeue(int_constant(graph(), sizes_[i]), options_.allow_smaller_final_batch, {});
      std::vector<AnyOutput> components{int_constant(graph(), static_cast<std::int32_t>(i))};
      for (std::size_t k = 0; k < dtypes_.size(); ++k) components.push_back(batch.output(static_cast<int>(k)));
      puts.push_back(batches_.enqueue(components, false, {}));
    }
    list_queue_runner(graph(), QueueRunner(batches_.handle(), puts), queue_runner_collection);
  }

  const std::vector<AnyOutput>& tensors_;
  const AnyOutput& which_;
  const BucketOptions& options_;
  std::string_view function_;
  const At& at_;
  std::vector<std::int32_t> sizes_;
  std::vector<std::int64_t> capacities_;
  std::vector<DType> dtypes_;
  std::vector<PartialShape> shapes_;
  std::vector<dflow::detail::AnyQueue> buckets_;
  dflow::detail::AnyQueue batches_;
};

}  // namespace detail

std::vector<AnyOutput> detail::any_bucket(const std::vector<AnyOutput>& tensors, const AnyOutput& which,
                                          const BatchSizes& batch_sizes, int num_buckets, const BucketOptions& options,
                                          std::string_view function, const At& at) {
  Buckets buckets(tensors, which, batch_sizes, num_buckets, options, function, at);
  GraphStore& graph = buckets.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? function : at.name);
  return buckets.build_all();
}

namespace detail {

/// The number of the bounds that are not above x.
inline AnyOutput bucket_of(GraphStore& graph, const AnyOutput& x, const std::vector<std::int32_t>& boundaries,
                           std::string_view function, const At& at) {
  if (boundaries.empty()) reject_input(function, "there are no boundaries", at);
  const auto bad = std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>());
  if (bad != boundaries.end()) {
    reject_input(function, str_cat("boundaries do not ascend: ", bad[0], ", then ", bad[1]), at);
  }
  Tensor<std::int32_t> bounds(Shape({static_cast<std::int64_t>(boundaries.size())}));
  std::copy(boundaries.begin(), boundaries.end(), bounds.data());
  const auto starts = Output<std::int32_t>::unchecked(dflow::detail::any_constant(graph, bounds, {}));
  return reduce_sum(cast<std::int32_t>(less_equal(starts, Output<std::int32_t>(x))));
}

}  // namespace detail

std::vector<AnyOutput> detail::any_bucket_by_length(const AnyOutput& length, const std::vector<AnyOutput>& tensors,
                                                    const BatchSizes& batch_sizes,
                                                    const std::vector<std::int32_t>& boundaries,
                                                    const BucketOptions& options, const At& at) {
  constexpr std::string_view function = "bucket_by_sequence_length";
  GraphStore& graph = graph_of_input(length, function, at);
  const Composite place(graph, at.where);
  std::vector<AnyOutput> all{length};
  all.insert(all.end(), tensors.begin(), tensors.end());
  BucketOptions with_length = options;
  if (!with_length.shapes.empty()) with_length.shapes.insert(with_length.shapes.begin(), PartialShape{});
  return any_bucket(all, bucket_of(graph, length, boundaries, function, at), batch_sizes,
                    static_cast<int>(boundaries.size()) + 1, with_length, function, at);
}

}  // namespace dflow::train
