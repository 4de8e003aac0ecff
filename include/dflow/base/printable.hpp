#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace dflow {

/// A text that others have said, as part of a line for people: what would begin another line or command a terminal
/// (control characters, also U+0080 to U+009F) is written as `\x1b`, and what is longer than `max_bytes` is cut, which
/// shows.
///
/// Thread safety: may be called from any thread.
std::string printable(std::string_view text, std::size_t max_bytes = 4096);

/// The text as UTF-8: what is none (bytes that begin no character, characters that are cut off, surrogates, what is too
/// long or too large) is U+FFFD, one for each byte.
///
/// Thread safety: may be called from any thread.
std::string valid_utf8(std::string_view text);

/// The text is UTF-8 already.
///
/// Thread safety: may be called from any thread.
bool is_utf8(std::string_view text) noexcept;

}  // namespace dflow
