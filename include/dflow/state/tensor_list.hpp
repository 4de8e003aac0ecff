#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/memory/allocator.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace dflow {

/// A list of tensors, of which some may not be set. A value: what is made from one shares its tensors.
///
/// Thread safety: const member functions from any thread.
class TensorList {
 public:
  /// Bounds what a number in a graph may ask for.
  static constexpr std::int64_t max_size = (std::int64_t{1} << 31) - 1;
  /// Of lists in lists.
  static constexpr int max_depth = 256;

  TensorList() = default;
  /// Errors: ResourceExhausted for lists that are nested deeper than `max_depth`.
  explicit TensorList(std::vector<AnyTensor> all);

  std::int64_t size() const noexcept { return size_; }
  /// At most so many elements are set.
  std::int64_t num_set() const noexcept { return static_cast<std::int64_t>(elements_.size()); }
  /// Null for one that is not set, and outside of the list.
  const AnyTensor* find(std::int64_t i) const noexcept;
  /// Makes the list long enough. Memory is taken for what lies between the first and the last that are set.
  /// Errors: ResourceExhausted beyond `max_size`, far from all others, and beyond `max_depth`.
  void set(std::int64_t i, AnyTensor element);
  void unset(std::int64_t i) noexcept;
  /// What lies behind is dropped; what is new is not set. Errors: as `set`; InvalidArgument for less than nothing.
  void resize(std::int64_t size);
  /// Adds to each element that of the other list, by `add_elements(sum, more)`; one that is not set is zero.
  /// Errors: InvalidArgument for elements of other types or shapes; those of `add_elements`.
  void add(const TensorList& more, FunctionRef<void(AnyTensor& sum, const AnyTensor& more)> add_elements);

 private:
  void require_near(std::int64_t i) const;
  void note_depth(const AnyTensor& element);

  std::int64_t size_ = 0;
  int depth_ = 1;                    ///< 1 for a list of tensors
  std::int64_t first_ = 0;           ///< the number of `elements_[0]`
  std::vector<AnyTensor> elements_;  ///< not initialised: not set
};

/// A tensor that carries a list along an edge.
AnyTensor make_list(TensorList list);
/// Errors: InvalidArgument for what is no list.
const TensorList& list_of(const AnyTensor& tensor);

namespace detail {
/// sum += more, of equal types and shapes, where `sum` is if nobody else has it. Integers wrap, 16-bit floats are
/// rounded once. Errors: InvalidArgument for what are no numbers.
void add_list_elements(AnyTensor& sum, const AnyTensor& more, Allocator& allocator);
}  // namespace detail

}  // namespace dflow
