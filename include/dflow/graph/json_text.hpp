#pragma once

#include <dflow/core/partial_shape.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What a JSON library leaves open: checking text before it is parsed, and how bytes, reals and shapes are spelled in
/// it.
namespace dflow::json {

/// Throws InvalidArgument that names the line unless `text` is one JSON value (RFC 8259) in valid UTF-8 that nests at
/// most `max_depth` deep and has no zero character in a string. Uses no recursion.
void check(std::string_view text, int max_depth);

/// The checked text with each real number in the fewest digits that name its double, and integers below 2^64 as they
/// are: rapidjson 1.1 normalizes a significand of zero, which "0e-30" has and a longer one than 64 bits may round to.
/// Errors: InvalidArgument for a number beyond the range of double.
std::string with_short_reals(std::string_view text);

/// The text with its innermost lists and objects joined to one line each: what a pretty printer spreads over many.
std::string join_short_lines(std::string_view pretty);

/// The line on which the outermost object's member of that number begins. Precondition: the text is checked, and has
/// it.
std::size_t line_of_member(std::string_view text, std::size_t number) noexcept;

bool is_utf8(std::string_view text) noexcept;

std::string to_base64(std::span<const std::byte> bytes);
/// Nothing if the text is not base64 (RFC 4648, padded).
std::optional<std::string> from_base64(std::string_view text);

/// Any bytes as valid UTF-8 without a zero character: as they are, or "base64:" and their code.
std::string quote(std::string_view bytes);
/// Errors: InvalidArgument for malformed base64.
std::string unquote(std::string_view text);

/// "0.1", "inf", "-inf", "nan", "nan(0xfff8000000000001)": reads back as the same bits.
std::string real_to_text(double value);
/// Errors: InvalidArgument.
double real_from_text(std::string_view text);

/// "[?,784]" or "<unknown>". Errors: InvalidArgument.
PartialShape shape_from_text(std::string_view text);

}  // namespace dflow::json

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/graph/json_text.ipp>
#endif
