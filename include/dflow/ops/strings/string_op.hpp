#pragma once

#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace dflow {

/// An op on texts, through which no gradient goes.
template <FixedString Name, class... AllowedTypes>
struct TextOp : StandardOp<Name, AllowedTypes...> {
  static constexpr bool gradient_stops = true;
};

/// What positions and lengths in a text count: bytes, or the characters of UTF-8, which begin at each byte that does
/// not continue one.
enum class TextUnit : std::uint8_t { byte, utf8_char };

constexpr std::array<std::string_view, 2> attr_enum_names(TextUnit) { return {"BYTE", "UTF8_CHAR"}; }

}  // namespace dflow
