#pragma once

#include <dflow/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace dflow {

/// One argument of str_cat: a view of text, or a number with room for its digits.
/// It lives no longer than the call; a view of text is not copied before the result is built.
class StrPiece {
 public:
  StrPiece(std::string_view text) noexcept : text_(text.data()), size_(text.size()) {}
  StrPiece(const std::string& text) noexcept : text_(text.data()), size_(text.size()) {}
  StrPiece(const char* text) noexcept : StrPiece(std::string_view(text)) {}
  StrPiece(char c) noexcept : text_(digits_), size_(1) { digits_[0] = c; }
  template <std::same_as<bool> B>
  StrPiece(B b) noexcept : StrPiece(b ? std::string_view("true") : std::string_view("false")) {}
  template <std::integral I>
    requires(!std::same_as<I, bool> && !std::same_as<I, char>)
  StrPiece(I value) noexcept : text_(digits_) {
    if constexpr (std::is_signed_v<I>) {
      format_signed(static_cast<std::int64_t>(value));
    } else {
      format_unsigned(static_cast<std::uint64_t>(value));
    }
  }
  template <class E>
    requires std::is_enum_v<E>
  StrPiece(E value) noexcept : StrPiece(static_cast<std::underlying_type_t<E>>(value)) {}
  StrPiece(float value) noexcept;
  StrPiece(double value) noexcept;

  StrPiece(const StrPiece&) = delete;
  StrPiece& operator=(const StrPiece&) = delete;

  std::string_view view() const noexcept { return {text_, size_}; }

 private:
  void format_signed(std::int64_t value) noexcept;
  void format_unsigned(std::uint64_t value) noexcept;

  const char* text_;
  std::size_t size_ = 0;
  char digits_[32];
};

namespace detail {
std::string cat_pieces(std::initializer_list<const StrPiece*> pieces);

template <class... Pieces>
std::string cat(const Pieces&... pieces) {
  return cat_pieces({&pieces...});
}
}  // namespace detail

/// Concatenates text and numbers with one allocation: `str_cat("axis ", axis, " of rank ", rank)`.
/// A float or double is printed in the shortest form that reads back as the same value, and any NaN as "nan".
template <class... Args>
std::string str_cat(const Args&... args) {
  return detail::cat(static_cast<const StrPiece&>(StrPiece(args))...);
}

}  // namespace dflow
