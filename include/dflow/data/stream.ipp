#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/stream.hpp>

namespace dflow::data {

std::uint64_t Stream::skip(std::uint64_t n) {
  Item item;
  std::uint64_t passed = 0;
  while (passed < n && next(item)) ++passed;
  return passed;
}

Item* first_failure(std::span<Item> items) noexcept {
  for (Item& item : items) {
    if (item.is_failure()) return &item;
  }
  return nullptr;
}

void require_count(std::string_view what, std::uint64_t count) {
  const auto given = static_cast<std::int64_t>(count);
  if (given < 1) throw_error(Status::invalid_argument(str_cat("data: ", what, " must be at least 1, not ", given)));
}

void require_passed_over(std::uint64_t passed, std::uint64_t n) {
  if (passed == n) return;
  throw_error(Status::data_loss(
      str_cat("an iterator's state is past the end of its data: ", n, " elements were read, and there are ", passed)));
}

std::uint64_t read_replayed(ByteReader& in, std::uint64_t most) {
  const std::uint64_t n = in.varint();
  if (n > most) {
    throw_error(Status::data_loss(str_cat("an iterator's state says that ", n,
                                          " elements had been read ahead, at most ", most, " can have been")));
  }
  return n;
}

}  // namespace dflow::data
