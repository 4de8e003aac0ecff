#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/sum_type.hpp>
#include <dflow/state/tensor_list.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// to = the sum of the terms, which may be one of them. Integers wrap, 16-bit floats are rounded once.
template <class T>
void add_terms(std::span<const AnyTensor> terms, T* to, std::size_t n) {
  constexpr std::size_t tile = 256;
  SumType<T> sums[tile];
  for (std::size_t first = 0; first < n; first += tile) {
    const std::size_t count = std::min(tile, n - first);
    const auto elements_of = [first](const AnyTensor& term) { return static_cast<const T*>(term.raw_data()) + first; };
    std::copy_n(elements_of(terms.front()), count, sums);
    for (const AnyTensor& term : terms.subspan(1)) {
      const T* const next = elements_of(term);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_integral_v<T>) {
          using Unsigned = std::make_unsigned_t<T>;
          sums[i] =
              static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(sums[i]) + static_cast<Unsigned>(next[i])));
        } else {
          sums[i] += static_cast<SumType<T>>(next[i]);
        }
      }
    }
    for (std::size_t i = 0; i < count; ++i) to[first + i] = static_cast<T>(sums[i]);
  }
}

void sum_into(std::span<const AnyTensor> terms, AnyTensor& to) {
  visit_dtype<NumberTypes>(to.dtype(), [&]<class T>() {
    add_terms(terms, static_cast<T*>(to.raw_data()), static_cast<std::size_t>(to.num_elements()));
    return 0;
  });
}

void add_list_elements(AnyTensor& sum, const AnyTensor& more, Allocator& allocator) {
  AnyTensor to = sum.buffer_is_unique() ? sum : AnyTensor(more.dtype(), more.shape(), allocator);
  const AnyTensor terms[] = {std::move(sum), more};
  sum_into(terms, to);
  sum = std::move(to);
}

AnyTensor sum_of_list_elements(std::span<const AnyTensor> terms, Allocator& allocator) {
  AnyTensor to(terms.front().dtype(), terms.front().shape(), allocator);
  sum_into(terms, to);
  return to;
}

void require_alike(const AnyTensor& sum, const AnyTensor& more) {
  if (sum.dtype() == more.dtype() && sum.shape() == more.shape()) return;
  throw_error(Status::invalid_argument(str_cat("elements of lists are added: ", dtype_name(sum.dtype()),
                                               sum.shape().to_string(), " and ", dtype_name(more.dtype()),
                                               more.shape().to_string())));
}

/// The list that the tensor carries; the tensor gets a list of its own if others have it too.
TensorList& own_list_of(AnyTensor& tensor) {
  const TensorList& list = list_of(tensor);
  if (!tensor.buffer_is_unique()) tensor = make_list(list);
  return *static_cast<TensorList*>(tensor.raw_data());
}

}  // namespace detail

TensorList::TensorList(std::vector<AnyTensor> all)
    : size_(static_cast<std::int64_t>(all.size())), elements_(std::move(all)) {}

/// Destroys lists in lists one after the other, for a thread's stack is too small for deep ones.
TensorList::~TensorList() {
  std::vector<AnyTensor> lists;
  move_lists_to(lists);
  while (!lists.empty()) {
    AnyTensor list = std::move(lists.back());
    lists.pop_back();
    if (list.buffer_is_unique()) static_cast<TensorList*>(list.raw_data())->move_lists_to(lists);
  }
}

void TensorList::move_lists_to(std::vector<AnyTensor>& to) noexcept {
  for (AnyTensor& element : elements_) {
    if (element.dtype() != DType::variant || element.rank() != 0 || element.raw_data() == nullptr) continue;
    try {
      to.push_back(std::move(element));
    } catch (const std::bad_alloc&) {
      return;  // these are destroyed with this list
    }
  }
}

const AnyTensor* TensorList::find(std::int64_t i) const noexcept {
  if (i < first_ || i - first_ >= static_cast<std::int64_t>(elements_.size())) return nullptr;
  const AnyTensor& element = elements_[static_cast<std::size_t>(i - first_)];
  return element.is_initialized() ? &element : nullptr;
}

/// The gaps between elements take memory too.
void TensorList::require_near(std::int64_t i) const {
  constexpr std::int64_t max_gap = std::int64_t{1} << 22;
  const auto count = static_cast<std::int64_t>(elements_.size());
  if (i >= first_ - 4 * count - max_gap && i < first_ + 5 * count + max_gap) return;
  throw_error(
      Status::resource_exhausted(str_cat("element ", i, " of a list is more than ", max_gap, " from the others")));
}

void TensorList::set(std::int64_t i, AnyTensor element) {
  if (i < 0) throw_error(Status::invalid_argument(str_cat("element ", i, " of a list")));
  if (i >= max_size) throw_error(Status::resource_exhausted(str_cat("a list of more than ", max_size, " elements")));
  if (elements_.empty()) first_ = i;
  require_near(i);
  if (i < first_) {  // at least as many again, so that a list which grows downwards is not moved each time
    const std::int64_t count = std::min(first_, std::max(first_ - i, static_cast<std::int64_t>(elements_.size())));
    elements_.insert(elements_.begin(), static_cast<std::size_t>(count), AnyTensor());
    first_ -= count;
  }
  const auto at = static_cast<std::size_t>(i - first_);
  if (at >= elements_.size()) elements_.resize(at + 1);
  elements_[at] = std::move(element);
  size_ = std::max(size_, i + 1);
}

void TensorList::unset(std::int64_t i) noexcept {
  if (find(i) != nullptr) elements_[static_cast<std::size_t>(i - first_)].reset();
}

void TensorList::resize(std::int64_t size) {
  if (size < 0) throw_error(Status::invalid_argument(str_cat("a list of ", size, " elements")));
  if (size > max_size) throw_error(Status::resource_exhausted(str_cat("a list of more than ", max_size, " elements")));
  size_ = size;
  const std::int64_t room = std::max<std::int64_t>(0, size - first_);
  if (static_cast<std::int64_t>(elements_.size()) > room) elements_.resize(static_cast<std::size_t>(room));
}

void TensorList::add(const TensorList& more, FunctionRef<void(AnyTensor& sum, const AnyTensor& more)> add_elements) {
  std::vector<std::pair<TensorList*, const TensorList*>> left{{this, &more}};  // lists in lists are added later
  while (!left.empty()) {
    const auto [sum, terms] = left.back();
    left.pop_back();
    for (std::size_t k = 0; k < terms->elements_.size(); ++k) {
      const AnyTensor& term = terms->elements_[k];
      if (!term.is_initialized()) continue;
      const std::int64_t i = terms->first_ + static_cast<std::int64_t>(k);
      if (sum->find(i) == nullptr) {
        sum->set(i, term);
        continue;
      }
      AnyTensor& element = sum->elements_[static_cast<std::size_t>(i - sum->first_)];
      detail::require_alike(element, term);
      if (term.dtype() == DType::variant) {
        left.emplace_back(&detail::own_list_of(element), &list_of(term));
      } else {
        add_elements(element, term);
      }
    }
    sum->size_ = std::max(sum->size_, terms->size_);
  }
}

// A scalar of element type `variant` is a TensorList, owned by the buffer that borrows it.

AnyTensor make_list(TensorList list) {
  auto held = std::make_unique<TensorList>(std::move(list));
  AnyTensor tensor =
      AnyTensor::adopt(DType::variant, Shape{}, held.get(), sizeof *held, [owned = held.get()] { delete owned; });
  static_cast<void>(held.release());
  return tensor;
}

const TensorList& list_of(const AnyTensor& tensor) {
  if (tensor.dtype() != DType::variant || tensor.raw_data() == nullptr || tensor.rank() != 0) {
    throw_error(Status::invalid_argument("the input is no list of tensors"));
  }
  return *static_cast<const TensorList*>(tensor.raw_data());
}

}  // namespace dflow
