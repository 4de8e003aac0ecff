#pragma once

#include <dflow/base/lifetime.hpp>
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

/// The default limit of elements that are read again to restore an iterator.
inline constexpr std::uint64_t default_restore_limit = std::uint64_t{1} << 30;

/// The part of an iterator that does not depend on the type of its elements.
class AnyIterator {
 public:
  AnyIterator(SharedRecipe recipe, std::uint64_t epoch);
  AnyIterator(AnyIterator&&) noexcept = default;
  /// The stream that it read before, and the threads of that stream, end first.
  AnyIterator& operator=(AnyIterator&& other) noexcept;

  /// The next element; false at the end of the epoch. Its tensors may share memory with the dataset: read them only.
  bool next(Item& item);
  /// The same, and the element owns its tensors.
  bool next_own(Item& item);
  void next_epoch();
  std::uint64_t epoch() const noexcept { return epoch_; }
  std::uint64_t position() const noexcept { return position_; }
  std::optional<std::int64_t> size() const;
  std::string state() const;
  void restore(std::string_view state);
  void limit_restoring(std::uint64_t elements) noexcept { restore_limit_ = elements; }
  /// An iterator of the same dataset at the position of `state`; this iterator stays as it is.
  AnyIterator restored(std::string_view state) const;
  Reference<AnyIterator> reference() { return {*this, lifetime_}; }

 private:
  /// Errors: FailedPrecondition if the iterator was moved from.
  const Recipe& recipe() const;

  SharedRecipe recipe_;
  std::uint64_t epoch_;
  std::uint64_t position_ = 0;
  std::uint64_t restore_limit_ = default_restore_limit;
  std::unique_ptr<ReplayLimit> limit_ = std::make_unique<ReplayLimit>();
  std::unique_ptr<Stream> stream_;
  std::exception_ptr failed_;
  Lifetime lifetime_;
};

/// Goes through a dataset, epoch by epoch. It can be saved at any element and restored.
///
/// ```cpp
/// df::data::Iterator batches = data.iterate();
/// while (auto batch = batches.next()) { auto& [x, y] = *batch; ... }
/// batches.next_epoch();                    // shuffled anew
/// std::string state = batches.state();     // later, or in another process: data.iterate().restore(state)
/// ```
/// The dataset, the seeds in it and the epoch decide which elements it gives. It owns the threads that it needs, and
/// they end with it.
///
/// Thread safety: one thread at a time. `next` blocks until there is an element.
/// Errors: all errors that sources and functions throw, with the type that they were thrown with. An `Error` and an
/// exception of the header stdexcept get "in step map, element 17: " before their text. After an error each call of
/// `next` throws the same error, until another epoch begins or a state is restored. FailedPrecondition if the iterator
/// was moved from.
template <class E>
class Iterator {
 public:
  using element_type = E;

  explicit Iterator(SharedRecipe recipe, std::uint64_t epoch = 0) : any_(std::move(recipe), epoch) {}

  /// The next element, or none at the end of the epoch. It is the caller's own: its tensors may be written. A tensor
  /// whose memory something else holds is copied for that, for example a batch of rows that lie side by side in a
  /// source.
  std::optional<E> next() {
    Item item;
    if (!any_.next_own(item)) return std::nullopt;
    return std::move(item.get<E>());
  }
  /// Goes to the beginning of the next epoch, from any position.
  void next_epoch() { any_.next_epoch(); }

  /// The epoch, counted from 0, and the number of its elements that have been given.
  std::uint64_t epoch() const noexcept { return any_.epoch(); }
  std::uint64_t position() const noexcept { return any_.position(); }
  /// The number of elements in an epoch, if it is known without reading them.
  std::optional<std::int64_t> size() const { return any_.size(); }

  /// The position, in bytes with a checksum. If an iterator of the same dataset restores them, it goes on with the
  /// same elements as this one. Elements that were read ahead and not given count as not read. The bytes hold
  /// positions and numbers, never elements: elements are read again, so the sources must still have them. The numbers
  /// of threads and of prefetched elements may differ.
  ///
  /// Errors: FailedPrecondition after an error of `next`.
  std::string state() const { return any_.state(); }
  /// The bytes say how many elements are read again. They are not trusted without a bound: `limit_restoring`.
  ///
  /// Errors: DataLoss for bytes that are damaged or refer to elements that are not there. InvalidArgument for the
  /// state of another dataset, and for a state that needs more elements of the sources than the limit. All errors that
  /// sources throw. After an error the iterator stays as it was.
  void restore(std::string_view state) { any_.restore(state); }
  /// The most elements that sources read again when a state is restored. Passing over elements by their number counts
  /// as one element, and an element that a cache keeps counts as 64. An endless generator needs a higher limit if more
  /// elements had been read from it.
  void limit_restoring(std::uint64_t elements) noexcept { any_.limit_restoring(elements); }

  AnyIterator& any() noexcept { return any_; }
  const AnyIterator& any() const noexcept { return any_; }

 private:
  AnyIterator any_;
};

/// The iterator of a range-based for over one epoch of a dataset. Elements are the caller's own, as those of
/// `Iterator::next`.
template <class E>
class ElementIterator {
 public:
  using value_type = E;
  using difference_type = std::ptrdiff_t;

  explicit ElementIterator(Iterator<E> iterator) : iterator_(std::move(iterator)) { ++*this; }

  E& operator*() const noexcept { return element_.template get<E>(); }
  ElementIterator& operator++() {
    if (!iterator_.any().next_own(element_)) element_ = Item();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const ElementIterator& at, std::default_sentinel_t) noexcept { return at.element_.is_empty(); }

 private:
  Iterator<E> iterator_;
  mutable Item element_;  ///< empty at the end
};

}  // namespace dflow::data
