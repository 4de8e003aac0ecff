#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/state/random_stream.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dflow {

/// Some elements of a queue. Each component's tensor holds rows `begin` to `end` of it, one row an element. For a
/// single element that was put in alone, the tensor is the element.
struct QueuedElements {
  std::vector<AnyTensor> components;
  bool is_single = false;
  std::int64_t begin = 0;
  std::int64_t end = 1;
  std::uint64_t place = 0;  ///< set by a queue: among elements of one priority the lowest comes first

  std::int64_t size() const noexcept { return end - begin; }
  /// The shape of one element.
  Shape element_shape(std::size_t component) const;
};

namespace detail {

/// The elements of a queue; the kind decides which element is next.
///
/// Thread safety: guarded by the mutex of its owner.
/// Errors: out of memory each function does nothing.
class HeldElements {
 public:
  HeldElements() = default;
  HeldElements(const HeldElements&) = delete;
  HeldElements& operator=(const HeldElements&) = delete;
  virtual ~HeldElements() = default;

  std::int64_t size() const noexcept { return size_; }
  /// Moves the first `count` of `from` in.
  virtual void put(QueuedElements& from, std::int64_t count) = 0;
  /// Moves the next element out, with as many behind it as go with it, at most `count` in all, to the end of `to`.
  /// Precondition: there is one.
  virtual void take(std::int64_t count, std::vector<QueuedElements>& to) = 0;
  /// Puts the elements that were taken last back in their place.
  virtual void put_back(const QueuedElements& last) = 0;
  /// All elements, as if `taken` had been put back first.
  virtual std::vector<QueuedElements> with(std::span<const QueuedElements> taken) const = 0;

 protected:
  std::int64_t size_ = 0;
};

/// The oldest is next. Elements that were put in together stay in one tensor.
std::unique_ptr<HeldElements> held_in_order();
/// The next element is random: its number is 64 bits of the stream's next group, modulo the number of elements.
std::unique_ptr<HeldElements> held_at_random(std::shared_ptr<RandomStream> stream);
/// The next element has the least int64 scalar as first component; among equals the oldest is next.
std::unique_ptr<HeldElements> held_by_priority();

}  // namespace detail

}  // namespace dflow
