#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>

namespace dflow {
namespace detail {

void throw_overflow(const char* operation, std::int64_t a, std::int64_t b) {
  throw_error(Status::invalid_argument(str_cat("integer overflow in ", a, " ", operation, " ", b)));
}

void throw_overflow(const char* operation, std::uint64_t a, std::uint64_t b) {
  throw_error(Status::invalid_argument(str_cat("integer overflow in ", a, " ", operation, " ", b)));
}

void throw_narrowing(std::int64_t value, int to_bits, bool to_signed) {
  throw_error(Status::invalid_argument(str_cat(value, " does not fit in ", to_signed ? "int" : "uint", to_bits)));
}

void throw_narrowing(std::uint64_t value, int to_bits, bool to_signed) {
  throw_error(Status::invalid_argument(str_cat(value, " does not fit in ", to_signed ? "int" : "uint", to_bits)));
}

}  // namespace detail

std::optional<std::int64_t> try_product(std::span<const std::int64_t> extents) noexcept {
  bool has_zero = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    has_zero |= extent == 0;
  }
  if (has_zero) return 0;
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

std::int64_t checked_product(std::span<const std::int64_t> extents) {
  if (const auto product = try_product(extents)) return *product;
  std::string list;
  for (const std::int64_t extent : extents) list += str_cat(list.empty() ? "" : ",", extent);
  throw_error(Status::invalid_argument(str_cat("extents [", list, "] are negative or have too many elements")));
}

}  // namespace dflow
