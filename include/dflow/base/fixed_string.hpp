#pragma once

#include <cstddef>
#include <string_view>

namespace dflow {

/// A string literal as a template argument: `Op<"MatMul">`. N counts the terminating zero.
template <std::size_t N>
struct FixedString {
  char text[N]{};

  consteval FixedString(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }

  constexpr std::string_view view() const noexcept { return {text, N - 1}; }
  constexpr std::size_t size() const noexcept { return N - 1; }

  template <std::size_t M>
  friend constexpr bool operator==(const FixedString& a, const FixedString<M>& b) noexcept {
    return a.view() == b.view();
  }
};

}  // namespace dflow
