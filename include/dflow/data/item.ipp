#pragma once

#include <dflow/data/item.hpp>

#include <exception>
#include <utility>

namespace dflow::data {

void detail::unshare(AnyTensor& tensor) {
  if (tensor.buffer() && !tensor.buffer_is_unique()) tensor = tensor.deep_copy();
}

namespace detail {

/// Stands in the place of an element that could not be made.
struct Failure {
  std::exception_ptr error;
};

}  // namespace detail

Item Item::failure(std::exception_ptr error) { return of(detail::Failure{std::move(error)}); }

bool Item::is_failure() const noexcept { return type_ == &element_type<detail::Failure> && element_ != nullptr; }

void Item::throw_failure() const {
  if (is_failure()) std::rethrow_exception(get<detail::Failure>().error);
}

}  // namespace dflow::data
