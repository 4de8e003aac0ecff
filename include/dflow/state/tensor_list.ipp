#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/state/tensor_list.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace dflow {

namespace detail {

/// to += more, integers wrap, 16-bit floats are rounded once.
template <class T>
void add_elements(const T* a, const T* b, T* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      to[i] = static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a[i]) + static_cast<Unsigned>(b[i])));
    } else if constexpr (sizeof(T) == 2) {
      to[i] = static_cast<T>(static_cast<float>(a[i]) + static_cast<float>(b[i]));
    } else {
      to[i] = a[i] + b[i];
    }
  }
}

void add_list_elements(AnyTensor& sum, const AnyTensor& more, Allocator& allocator) {
  AnyTensor to = sum.buffer_is_unique() ? sum : AnyTensor(more.dtype(), more.shape(), allocator);
  visit_dtype<NumberTypes>(more.dtype(), [&]<class T>() {
    add_elements(static_cast<const T*>(std::as_const(sum).raw_data()), static_cast<const T*>(more.raw_data()),
                 static_cast<T*>(to.raw_data()), static_cast<std::size_t>(more.num_elements()));
    return 0;
  });
  sum = std::move(to);
}

using AddElements = FunctionRef<void(AnyTensor&, const AnyTensor&)>;

/// Lists are added element by element.
void add_to_element(AnyTensor& sum, const AnyTensor& more, AddElements add_elements) {
  if (sum.dtype() != more.dtype() || sum.shape() != more.shape()) {
    throw_error(Status::invalid_argument(str_cat("elements of lists are added: ", dtype_name(sum.dtype()),
                                                 sum.shape().to_string(), " and ", dtype_name(more.dtype()),
                                                 more.shape().to_string())));
  }
  if (sum.dtype() != DType::variant) return add_elements(sum, more);
  TensorList all = list_of(sum);
  sum.reset();
  all.add(list_of(more), add_elements);
  sum = make_list(std::move(all));
}

}  // namespace detail

TensorList::TensorList(std::vector<AnyTensor> all)
    : size_(static_cast<std::int64_t>(all.size())), elements_(std::move(all)) {
  for (const AnyTensor& element : elements_) note_depth(element);
}

/// A thread's stack is too small to destroy deeper lists.
void TensorList::note_depth(const AnyTensor& element) {
  if (element.dtype() != DType::variant) return;
  depth_ = std::max(depth_, list_of(element).depth_ + 1);
  if (depth_ <= max_depth) return;
  throw_error(Status::resource_exhausted(str_cat("lists in lists are nested deeper than ", max_depth)));
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
  note_depth(element);
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

void TensorList::add(const TensorList& more, detail::AddElements add_elements) {
  for (std::size_t k = 0; k < more.elements_.size(); ++k) {
    const AnyTensor& element = more.elements_[k];
    if (!element.is_initialized()) continue;
    const std::int64_t i = more.first_ + static_cast<std::int64_t>(k);
    if (find(i) == nullptr) {
      set(i, element);
    } else {
      detail::add_to_element(elements_[static_cast<std::size_t>(i - first_)], element, add_elements);
    }
  }
  size_ = std::max(size_, more.size_);
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
