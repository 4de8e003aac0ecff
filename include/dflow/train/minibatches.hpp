#pragma once

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace dflow::train {

/// Draws minibatches of row numbers: each epoch goes once through all rows in another random order.
///
/// ```cpp
/// df::train::Minibatches batches(images.dim(0), 128, seed);
/// for (int step = 0; step < epochs * batches.per_epoch(); ++step) {
///   auto rows = batches.next();
///   session.run({{x, df::train::rows_of(images, rows)}, {y, df::train::rows_of(labels, rows)}}, train);
/// }
/// ```
/// Thread safety: one thread at a time. The same seed gives the same order on any machine.
class Minibatches {
 public:
  /// Errors: InvalidArgument unless 1 <= batch <= rows; ResourceExhausted if no memory can hold a number for each row.
  Minibatches(std::int64_t rows, std::int64_t batch, std::uint64_t seed = 1);

  /// Whole batches in an epoch. An epoch leaves out the rest of the rows; other epochs have them.
  std::int64_t per_epoch() const noexcept { return static_cast<std::int64_t>(order_.size()) / batch_; }
  /// The next batch's rows; valid until the next call.
  std::span<const std::int64_t> next();

 private:
  void shuffle();

  std::vector<std::int64_t> order_;
  std::int64_t batch_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

/// Copies the rows of the leading dimension with the given numbers, of elements of any type but handles.
///
/// Errors: InvalidArgument if a number is outside [0, rows), or the tensor has rank 0.
AnyTensor any_rows_of(const AnyTensor& tensor, std::span<const std::int64_t> rows);
template <Element T>
Tensor<T> rows_of(const Tensor<T>& tensor, std::span<const std::int64_t> rows) {
  return Tensor<T>(any_rows_of(tensor, rows));
}

}  // namespace dflow::train
