#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/item.hpp>

#include <exception>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>

namespace dflow::data {

void detail::unshare(AnyTensor& tensor) {
  if (tensor.buffer() && !tensor.buffer_is_unique()) tensor = tensor.deep_copy();
}

namespace detail {

/// Stands in the place of an element that could not be made.
struct Failure {
  std::exception_ptr error;
  Status status;
};

/// An exception of the same type with `place` before its text. Null if E is another type: a derived one would lose
/// what it has beside the text.
template <class E>
std::exception_ptr placed(const std::exception& error, const std::string& place) {
  return typeid(error) == typeid(E) ? std::make_exception_ptr(E(place + error.what())) : nullptr;
}
template <>
std::exception_ptr placed<Error>(const std::exception& error, const std::string& place) {
  if (typeid(error) != typeid(Error)) return nullptr;
  return std::make_exception_ptr(Error(static_cast<const Error&>(error).status().with_prefix(place)));
}

template <class... Es>
std::exception_ptr placed_as_one_of(const std::exception& error, const std::string& place) {
  std::exception_ptr made;
  static_cast<void>(((made = detail::placed<Es>(error, place)) || ...));
  return made;
}

/// The exception that is being handled, with the place if its type has room for it.
std::exception_ptr current_exception_at(const std::string& place) {
  try {
    throw;
  } catch (const std::exception& error) {
    const std::exception_ptr made =
        placed_as_one_of<Error, std::runtime_error, std::invalid_argument, std::out_of_range, std::logic_error,
                         std::domain_error, std::length_error, std::range_error, std::overflow_error,
                         std::underflow_error>(error, place);
    return made ? made : std::current_exception();
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace detail

Item Item::failure_in(std::string_view step, std::uint64_t number) {
  const std::string place = str_cat("in step ", step, ", element ", number, ": ");
  Status status = status_of_current_exception().with_prefix(place);
  return of(detail::Failure{detail::current_exception_at(place), std::move(status)});
}

Item Item::failure() { return of(detail::Failure{std::current_exception(), status_of_current_exception()}); }

bool Item::is_failure() const noexcept { return type_ == &element_type<detail::Failure> && element_ != nullptr; }

void Item::throw_failure() const {
  if (is_failure()) std::rethrow_exception(get<detail::Failure>().error);
}

Status Item::failure_status() const { return is_failure() ? get<detail::Failure>().status : Status(); }

}  // namespace dflow::data
