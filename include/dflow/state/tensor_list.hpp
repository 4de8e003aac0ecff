#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/memory/allocator.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dflow {

/// A list of tensors, some of which may not be set. It is a value: a copy shares the tensors. Lists may be nested in
/// lists to any depth, for the calls of a function that calls itself keep such lists: no stack grows with the depth.
///
/// Thread safety: const member functions from any thread.
class TensorList {
 public:
  /// Bounds the size that a number in a graph may ask for.
  static constexpr std::int64_t max_size = (std::int64_t{1} << 31) - 1;

  TensorList() = default;
  explicit TensorList(std::vector<AnyTensor> all);
  TensorList(const TensorList&) = default;
  TensorList(TensorList&&) = default;
  TensorList& operator=(const TensorList&) = default;
  TensorList& operator=(TensorList&&) = default;
  ~TensorList();

  std::int64_t size() const noexcept { return size_; }
  /// At most so many elements are set.
  std::int64_t num_set() const noexcept { return static_cast<std::int64_t>(elements_.size()); }
  /// Null for an element that is not set, and outside of the list.
  const AnyTensor* find(std::int64_t i) const noexcept;
  /// Makes the list long enough. Takes memory for the elements between the first and the last set one.
  /// Errors: ResourceExhausted beyond `max_size`, and far from all others.
  void set(std::int64_t i, AnyTensor element);
  void unset(std::int64_t i) noexcept;
  /// Drops the elements behind; new elements are not set. Errors: as `set`; InvalidArgument for a negative size.
  void resize(std::int64_t size);
  /// Adds the other list's elements to the elements, by `add_elements(sum, more)`; an unset element is zero. Errors:
  /// InvalidArgument for elements of other types or shapes; the errors of `add_elements`.
  void add(const TensorList& more, FunctionRef<void(AnyTensor& sum, const AnyTensor& more)> add_elements);

 private:
  void require_near(std::int64_t i) const;
  void move_lists_to(std::vector<AnyTensor>& to) noexcept;

  std::int64_t size_ = 0;
  std::int64_t first_ = 0;           ///< the number of `elements_[0]`
  std::vector<AnyTensor> elements_;  ///< not initialised: not set
};

/// A tensor that carries a list along an edge.
AnyTensor make_list(TensorList list);
/// Errors: InvalidArgument if the tensor is no list.
const TensorList& list_of(const AnyTensor& tensor);

namespace detail {
/// sum += more, of equal types and shapes, in place if nobody else has `sum`. Integers wrap, 16-bit floats are rounded
/// once. Errors: InvalidArgument if the tensors are no numbers.
void add_list_elements(AnyTensor& sum, const AnyTensor& more, Allocator& allocator);
/// The sum of one or more elements, of equal types and shapes, in their order. Integers wrap, 16-bit floats are rounded
/// once, after the last one. Errors: InvalidArgument if the tensors are no numbers.
AnyTensor sum_of_list_elements(std::span<const AnyTensor> terms, Allocator& allocator);
}  // namespace detail

}  // namespace dflow
