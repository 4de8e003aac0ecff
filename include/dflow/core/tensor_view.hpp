#pragma once

#include <dflow/base/config.hpp>

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace dflow {

/// A strided view of elements that live elsewhere, with the rank known to the compiler: `view(i, j)`. It has mdspan's
/// `rank`, `extent`, `stride` and `data_handle`. Owns nothing.
///
/// Thread safety: a value type; the elements are guarded by nothing.
/// Errors: none; indices are asserted to be in bounds.
template <class T, int Rank>
class TensorView {
  static_assert(Rank >= 0);

 public:
  using element_type = T;
  using Extents = std::array<std::int64_t, static_cast<std::size_t>(Rank)>;

  /// Strides are in elements and may be zero or negative.
  constexpr TensorView(T* first, const Extents& extents, const Extents& strides) noexcept
      : first_(first), extents_(extents), strides_(strides) {}
  /// Dense and row-major.
  constexpr TensorView(T* first, const Extents& extents) noexcept : first_(first), extents_(extents), strides_{} {
    std::int64_t step = 1;
    for (int i = Rank - 1; i >= 0; --i) {
      strides_[static_cast<std::size_t>(i)] = step;
      step *= extents_[static_cast<std::size_t>(i)];
    }
  }
  /// A view of writable elements converts to a view of read-only elements.
  template <class U>
    requires(std::same_as<const U, T> && !std::same_as<U, T>)
  constexpr TensorView(const TensorView<U, Rank>& other) noexcept
      : TensorView(other.data_handle(), other.extents(), other.strides()) {}

  static constexpr std::size_t rank() noexcept { return static_cast<std::size_t>(Rank); }
  constexpr std::int64_t extent(std::size_t i) const noexcept { return extents_[i]; }
  constexpr std::int64_t stride(std::size_t i) const noexcept { return strides_[i]; }
  constexpr const Extents& extents() const noexcept { return extents_; }
  constexpr const Extents& strides() const noexcept { return strides_; }
  constexpr T* data_handle() const noexcept { return first_; }
  constexpr std::int64_t size() const noexcept {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents_) count *= extent;
    return count;
  }

  template <std::integral... Index>
    requires(sizeof...(Index) == static_cast<std::size_t>(Rank))
  constexpr T& operator()(Index... index) const noexcept {
    std::int64_t offset = 0;
    [[maybe_unused]] std::size_t i = 0;
    ((assert(static_cast<std::int64_t>(index) >= 0 && static_cast<std::int64_t>(index) < extents_[i]),
      offset += static_cast<std::int64_t>(index) * strides_[i], ++i),
     ...);
    return first_[offset];
  }

  /// The view with the leading index fixed.
  constexpr TensorView<T, Rank - 1> operator[](std::int64_t index) const noexcept
    requires(Rank > 0)
  {
    assert(index >= 0 && index < extents_[0]);
    typename TensorView<T, Rank - 1>::Extents extents{};
    typename TensorView<T, Rank - 1>::Extents strides{};
    for (std::size_t i = 1; i < rank(); ++i) {
      extents[i - 1] = extents_[i];
      strides[i - 1] = strides_[i];
    }
    return {first_ + index * strides_[0], extents, strides};
  }

  /// Every `step`-th index of [begin, end) along one dimension.
  constexpr TensorView slice(std::size_t axis, std::int64_t begin, std::int64_t end,
                             std::int64_t step = 1) const noexcept {
    assert(axis < rank() && begin >= 0 && begin <= end && end <= extents_[axis] && step > 0);
    TensorView part = *this;
    part.first_ += begin * strides_[axis];
    part.extents_[axis] = (end - begin + step - 1) / step;
    part.strides_[axis] *= step;
    return part;
  }

  /// The view with two dimensions exchanged.
  constexpr TensorView transposed(std::size_t a, std::size_t b) const noexcept {
    TensorView view = *this;
    view.extents_[a] = extents_[b];
    view.extents_[b] = extents_[a];
    view.strides_[a] = strides_[b];
    view.strides_[b] = strides_[a];
    return view;
  }

 private:
  T* first_;
  Extents extents_;
  Extents strides_;
};

/// A strided view of elements: a TensorView, a std::mdspan.
template <class M>
concept MdspanLike = requires(const M& m, std::size_t i) {
  typename M::element_type;
  { M::rank() } -> std::convertible_to<std::size_t>;
  { m.extent(i) } -> std::convertible_to<std::int64_t>;
  { m.stride(i) } -> std::convertible_to<std::int64_t>;
  { m.data_handle() } -> std::convertible_to<const typename M::element_type*>;
};

}  // namespace dflow
