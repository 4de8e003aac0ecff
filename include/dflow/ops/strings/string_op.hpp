#pragma once

#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace dflow {

/// An op on texts. No gradient goes through it.
template <FixedString Name, class... AllowedTypes>
struct TextOp : StandardOp<Name, AllowedTypes...> {
  static constexpr bool gradient_stops = true;
};

/// The unit of positions and lengths in a text: bytes, or characters of UTF-8. A character begins at each byte that
/// does not continue another character.
enum class TextUnit : std::uint8_t { byte, utf8_char };

constexpr std::array<std::string_view, 2> attr_enum_names(TextUnit) { return {"BYTE", "UTF8_CHAR"}; }

}  // namespace dflow
