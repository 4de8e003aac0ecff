#pragma once

#include <dflow/core/partial_shape.hpp>
#include <dflow/train/input/edges.hpp>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

struct BucketOptions {
  /// Threads that make examples. With several threads the order of examples is random.
  int num_threads = 1;
  /// Examples that are kept ahead in a bucket, and batches that are kept ahead.
  std::int64_t capacity = 32;
  /// The capacity of each bucket, instead of `capacity`.
  std::vector<std::int64_t> bucket_capacities = {};
  /// Shapes of an example, if the edges do not know them: one for each tensor, or none.
  std::vector<PartialShape> shapes = {};
  /// Examples of one batch may differ in dimensions that their shapes leave open: padding fills their ends with zeros
  /// or empty strings.
  bool dynamic_pad = false;
  /// The last batch of a bucket may be smaller. Otherwise the rest of an input that has ended is dropped.
  bool allow_smaller_final_batch = false;
  /// Keeps only examples with a true value: []. None: keeps all.
  Output<bool> keep = {};
  /// The shared names of the queues begin with it. Queues of one shared name on one device are one, across sessions.
  std::string_view shared_name = {};
};

/// The batch size of each bucket, or of all buckets.
class BatchSizes {
 public:
  BatchSizes(std::int32_t of_all) : sizes_{of_all}, is_of_all_(true) {}
  BatchSizes(std::initializer_list<std::int32_t> sizes) : sizes_(sizes) {}
  BatchSizes(std::vector<std::int32_t> sizes) : sizes_(std::move(sizes)) {}

  bool is_of_all() const noexcept { return is_of_all_; }
  const std::vector<std::int32_t>& sizes() const noexcept { return sizes_; }

 private:
  std::vector<std::int32_t> sizes_;
  bool is_of_all_ = false;
};

namespace detail {
/// The bucket of a batch, and the batch.
std::vector<AnyOutput> any_bucket(const std::vector<AnyOutput>& tensors, const AnyOutput& which,
                                  const BatchSizes& batch_sizes, int num_buckets, const BucketOptions& options,
                                  std::string_view function, const At& at);
/// The first of the tensors is the length.
std::vector<AnyOutput> any_bucket_by_length(const AnyOutput& length, const std::vector<AnyOutput>& tensors,
                                            const BatchSizes& batch_sizes, const std::vector<std::int32_t>& boundaries,
                                            const BucketOptions& options, const At& at);
}  // namespace detail

/// A batch of examples of one bucket, and the number of the bucket.
template <class Edges>
struct Bucketed {
  Output<std::int32_t> bucket;  ///< [] ; of `bucket_by_sequence_length` the lengths, [batch_size]
  Edges tensors;
};

/// Batches of examples that are alike. Each example goes to the bucket `which` [], from 0 to `num_buckets` - 1. When a
/// bucket holds a full batch, that batch comes next. Runners of the graph fill the buckets (`start_queue_runners`).
///
/// ```cpp
/// auto [parity, batch] = df::train::bucket(number, df::mod(number, 2), 32, 2);
/// ```
/// Errors: as `batch`; InvalidArgument also for no buckets, and unless there is one size and one capacity for each
/// bucket. A `which` that is no bucket stops the coordinator with InvalidArgument.
template <detail::EdgeTuple Edges>
auto bucket(const Edges& tensors, const Output<std::int32_t>& which, const BatchSizes& batch_sizes, int num_buckets,
            const BucketOptions& options = {}, const At& at = {}) {
  const std::vector<AnyOutput> edges =
      detail::any_bucket(detail::erased(tensors), which, batch_sizes, num_buckets, options, "bucket", at);
  using Tensors = decltype(detail::like(tensors, edges));
  return Bucketed<Tensors>{Output<std::int32_t>::unchecked(edges.front()), detail::like(tensors, edges, 1)};
}

/// Batches of sequences of about one length, so padding wastes little. The first bucket has the lengths below
/// boundaries[0], the second the lengths from there to below boundaries[1], and so on; the last bucket has the rest.
/// length: [].
///
/// ```cpp
/// auto [lengths, words] = df::train::bucket_by_sequence_length(length, sentence, 32, {10, 20, 40}, {.dynamic_pad =
/// true});
/// ```
/// Errors: as `bucket`; InvalidArgument also for no boundaries, and for boundaries that do not ascend.
template <detail::EdgeTuple Edges>
auto bucket_by_sequence_length(const Output<std::int32_t>& length, const Edges& tensors, const BatchSizes& batch_sizes,
                               const std::vector<std::int32_t>& boundaries, const BucketOptions& options = {},
                               const At& at = {}) {
  const std::vector<AnyOutput> edges =
      detail::any_bucket_by_length(length, detail::erased(tensors), batch_sizes, boundaries, options, at);
  using Tensors = decltype(detail::like(tensors, edges));
  return Bucketed<Tensors>{Output<std::int32_t>::unchecked(edges[1]), detail::like(tensors, edges, 2)};
}

}  // namespace dflow::train
