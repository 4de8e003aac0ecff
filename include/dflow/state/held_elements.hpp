#pragma once

#include <dflow/core/tensor.hpp>
#include <dflow/state/random_stream.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dflow {

/// Some elements of a queue: each component's tensor holds those of `begin` to `end` of its rows, or, of one element
/// that was put in alone, is it.
struct QueuedElements {
  std::vector<AnyTensor> components;
  bool is_single = false;
  std::int64_t begin = 0;
  std::int64_t end = 1;
  std::uint64_t place = 0;  ///< set by a queue: among elements of one priority the lowest comes first

  std::int64_t size() const noexcept { return end - begin; }
  /// Of one element.
  Shape element_shape(std::size_t component) const;
};

namespace detail {

/// The elements of a queue, of which it says which one is next.
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
  /// Moves the next one out, and of those behind it as many as go with it, at most `count` in all, to the end of `to`.
  /// Precondition: there is one.
  virtual void take(std::int64_t count, std::vector<QueuedElements>& to) = 0;
  /// What was taken last is back in its place.
  virtual void put_back(const QueuedElements& last) = 0;
  /// All there are, with some that are put back before.
  virtual std::vector<QueuedElements> with(std::span<const QueuedElements> taken) const = 0;

 protected:
  std::int64_t size_ = 0;
};

/// The oldest is next. Elements that were put in together stay in one tensor.
std::unique_ptr<HeldElements> held_in_order();
/// Any is next: the one whose number is 64 bits of the stream's next group, modulo how many there are.
std::unique_ptr<HeldElements> held_at_random(std::shared_ptr<RandomStream> stream);
/// The one with the least int64 scalar as first component is next, the oldest of those.
std::unique_ptr<HeldElements> held_by_priority();

}  // namespace detail

}  // namespace dflow
