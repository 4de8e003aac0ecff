#pragma once

#include <dflow/data/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::data {

/// Elements that are read again, unless it is said otherwise, to restore an iterator.
inline constexpr std::uint64_t default_restore_limit = std::uint64_t{1} << 30;

/// What an iterator is beside the type of its elements.
class AnyIterator {
 public:
  AnyIterator(SharedRecipe recipe, std::uint64_t epoch);
  AnyIterator(AnyIterator&&) noexcept = default;
  /// What it read before, and the threads of that, end first.
  AnyIterator& operator=(AnyIterator&& other) noexcept;

  /// The next element; false at the end of the epoch.
  bool next(Item& item);
  void next_epoch();
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t position() const noexcept { return position_; }
  std::optional<std::int64_t> size() const;
  std::string state() const;
  void restore(std::string_view state);
  void limit_restoring(std::uint64_t elements) noexcept { restore_limit_ = elements; }
  /// An iterator of the same dataset that stands where `state` says; this one stays as it is.
  AnyIterator restored(std::string_view state) const;

 private:
  /// Errors: FailedPrecondition for an iterator that was moved from.
  const Recipe& recipe() const;

  SharedRecipe recipe_;
  std::uint64_t epoch_;
  std::uint64_t position_ = 0;
  std::uint64_t restore_limit_ = default_restore_limit;
  std::unique_ptr<ReplayLimit> limit_ = std::make_unique<ReplayLimit>();
  std::unique_ptr<Stream> stream_;
  std::exception_ptr failed_;
};

/// A way through a dataset, epoch by epoch, that can be saved at any element and restored.
///
/// ```cpp
/// df::data::Iterator batches = data.iterate();
/// while (auto batch = batches.next()) { auto& [x, y] = *batch; ... }
/// batches.next_epoch();                    // shuffled anew
/// std::string state = batches.state();     // later, or in another process: data.iterate().restore(state)
/// ```
/// What it gives is decided by the dataset, the seeds in it, and the epoch. Threads that it needs are its own and end
/// with it.
///
/// Thread safety: one thread at a time. `next` blocks until there is an element.
/// Errors: whatever sources and functions throw; after that each call of `next` throws the same, until another epoch
/// is begun or a state restored. FailedPrecondition for one that was moved from.
template <class E>
class Iterator {
 public:
  using element_type = E;

  explicit Iterator(SharedRecipe recipe, std::uint64_t epoch = 0) : any_(std::move(recipe), epoch) {}

  /// The next element, or none at the end of the epoch.
  std::optional<E> next() {
    Item item;
    if (!any_.next(item)) return std::nullopt;
    return std::move(item.get<E>());
  }
  /// Goes to the beginning of the next epoch, from wherever it stands.
  void next_epoch() { any_.next_epoch(); }

  /// The epoch, counted from 0, and how many of its elements have been given.
  std::uint64_t epoch() const noexcept { return any_.epoch(); }
  std::uint64_t position() const noexcept { return any_.position(); }
  /// Elements in an epoch, where that is known without reading them.
  std::optional<std::int64_t> size() const { return any_.size(); }

  /// Where it stands, in bytes with a checksum: an iterator of the same dataset that is given them goes on with the
  /// same elements as this one. What was read ahead and not given counts as not read. What they hold is positions and
  /// numbers, never elements: those are read again, and so have to be there. Numbers of threads and of prefetched
  /// elements may be others.
  ///
  /// Errors: FailedPrecondition after an error of `next`.
  std::string state() const { return any_.state(); }
  /// The bytes say how much is read again, so they are not believed without a bound: `limit_restoring`.
  ///
  /// Errors: DataLoss for bytes that are damaged, or say of elements that are not there; InvalidArgument for the state
  /// of another dataset, and for one that needs more elements of the sources than the limit; what sources throw. The
  /// iterator stays as it was, then.
  void restore(std::string_view state) { any_.restore(state); }
  /// Elements that sources read again, at most, when a state is restored: passing over some by their number counts as
  /// one, one that a cache keeps as 64. An endless generator of which more had been read needs more.
  void limit_restoring(std::uint64_t elements) noexcept { any_.limit_restoring(elements); }

  AnyIterator& any() noexcept { return any_; }
  const AnyIterator& any() const noexcept { return any_; }

 private:
  AnyIterator any_;
};

/// What a range-based for goes by: an epoch of a dataset.
template <class E>
class ElementIterator {
 public:
  using value_type = E;
  using difference_type = std::ptrdiff_t;

  explicit ElementIterator(Iterator<E> iterator) : iterator_(std::move(iterator)) { ++*this; }

  E& operator*() const noexcept { return element_.template get<E>(); }
  ElementIterator& operator++() {
    if (!iterator_.any().next(element_)) element_ = Item();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const ElementIterator& at, std::default_sentinel_t) noexcept { return at.element_.is_empty(); }

 private:
  Iterator<E> iterator_;
  mutable Item element_;  ///< empty at the end
};

}  // namespace dflow::data
