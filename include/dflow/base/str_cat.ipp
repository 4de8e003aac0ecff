#pragma once

#include <dflow/base/plain_nan.hpp>
#include <dflow/base/str_cat.hpp>

#include <charconv>
#include <system_error>

namespace dflow {

void StrPiece::format_signed(std::int64_t value) noexcept {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), value).ptr - digits_);
}

void StrPiece::format_unsigned(std::uint64_t value) noexcept {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), value).ptr - digits_);
}

StrPiece::StrPiece(float value) noexcept : text_(digits_) {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), plain_nan(value)).ptr - digits_);
}

StrPiece::StrPiece(double value) noexcept : text_(digits_) {
  size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), plain_nan(value)).ptr - digits_);
}

namespace detail {

std::string cat_pieces(std::initializer_list<const StrPiece*> pieces) {
  std::size_t size = 0;
  for (const StrPiece* piece : pieces) size += piece->view().size();
  std::string result;
  result.reserve(size);
  for (const StrPiece* piece : pieces) result.append(piece->view());
  return result;
}

}  // namespace detail
}  // namespace dflow
