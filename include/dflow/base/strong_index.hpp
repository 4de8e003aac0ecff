#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// The number of an element in a list, as a type of its own for each kind of list. The number of a slot cannot be used
/// as the number of a node, and a plain integer needs an explicit conversion. 32 bits; the default value numbers
/// nothing.
///
/// ```cpp
/// using SlotId = StrongIndex<struct SlotTag>;
/// IndexedVector<SlotId, AnyTensor> slots(8);
/// slots[SlotId(3)].reset();
/// ```
///
/// Thread safety: a value type.
template <class Tag>
class StrongIndex {
 public:
  static constexpr std::size_t max_position = 0x7fffffff;

  constexpr StrongIndex() noexcept = default;
  template <std::integral I>
  constexpr explicit StrongIndex(I value) noexcept : value_(static_cast<std::int32_t>(value)) {}

  constexpr bool is_valid() const noexcept { return value_ >= 0; }
  constexpr std::int32_t value() const noexcept { return value_; }
  /// For plain arrays. Precondition: is_valid().
  constexpr std::size_t position() const noexcept { return static_cast<std::size_t>(value_); }

  friend constexpr bool operator==(StrongIndex, StrongIndex) noexcept = default;
  friend constexpr auto operator<=>(StrongIndex, StrongIndex) noexcept = default;

  constexpr StrongIndex& operator++() noexcept {
    ++value_;
    return *this;
  }
  constexpr StrongIndex operator++(int) noexcept { return StrongIndex(value_++); }
  constexpr StrongIndex& operator--() noexcept {
    --value_;
    return *this;
  }
  template <std::integral I>
  constexpr StrongIndex& operator+=(I by) noexcept {
    value_ += static_cast<std::int32_t>(by);
    return *this;
  }
  template <std::integral I>
  friend constexpr StrongIndex operator+(StrongIndex from, I by) noexcept {
    return from += by;
  }
  friend constexpr std::int32_t operator-(StrongIndex a, StrongIndex b) noexcept { return a.value_ - b.value_; }

 private:
  std::int32_t value_ = -1;
};

/// The indices from `first` up to `end`, to loop over.
template <class Index>
class IndexRange {
 public:
  class Iterator {
   public:
    constexpr explicit Iterator(Index at) noexcept : at_(at) {}
    constexpr Index operator*() const noexcept { return at_; }
    constexpr Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    friend constexpr bool operator==(Iterator, Iterator) noexcept = default;

   private:
    Index at_;
  };

  constexpr IndexRange(Index first, Index end) noexcept : first_(first), end_(end) {}
  /// The first `count`.
  constexpr explicit IndexRange(std::size_t count) noexcept : IndexRange(Index(0), Index(count)) {}

  constexpr Iterator begin() const noexcept { return Iterator(first_); }
  constexpr Iterator end() const noexcept { return Iterator(end_); }

 private:
  Index first_, end_;
};

/// A std::vector with elements that are found by a strong index alone.
///
/// Thread safety: a value type.
template <class Index, class T>
class IndexedVector : private std::vector<T> {
  using Elements = std::vector<T>;

 public:
  using Elements::Elements;
  using typename Elements::value_type;

  decltype(auto) operator[](Index i) noexcept { return Elements::operator[](i.position()); }
  decltype(auto) operator[](Index i) const noexcept { return Elements::operator[](i.position()); }
  /// The elements as an array. An IndexedVector of bool has none.
  T* data() noexcept
    requires(!std::same_as<T, bool>)
  {
    return Elements::data();
  }
  const T* data() const noexcept
    requires(!std::same_as<T, bool>)
  {
    return Elements::data();
  }
  /// The indices of the elements, in order.
  IndexRange<Index> indices() const noexcept { return IndexRange<Index>(Elements::size()); }
  /// The index of the next element to be put at the end.
  Index end_index() const noexcept { return Index(Elements::size()); }

  using Elements::assign;
  using Elements::back;
  using Elements::begin;
  using Elements::clear;
  using Elements::emplace_back;
  using Elements::empty;
  using Elements::end;
  using Elements::erase;
  using Elements::front;
  using Elements::insert;
  using Elements::pop_back;
  using Elements::push_back;
  using Elements::reserve;
  using Elements::resize;
  using Elements::size;

  friend bool operator==(const IndexedVector&, const IndexedVector&) = default;
};

}  // namespace dflow

template <class Tag>
struct std::hash<dflow::StrongIndex<Tag>> {
  std::size_t operator()(dflow::StrongIndex<Tag> index) const noexcept {
    return std::hash<std::int32_t>{}(index.value());
  }
};
