#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace dflow {

/// A text from another source, made safe to be part of a line for people. Characters that would begin another line or
/// command a terminal (control characters, also U+0080 to U+009F) are written as `\x1b`. A text longer than
/// `max_bytes` is cut, and the result shows the cut.
///
/// Thread safety: may be called from any thread.
std::string printable(std::string_view text, std::size_t max_bytes = 4096);

/// The text as UTF-8: each byte that is not UTF-8 becomes U+FFFD. A byte is not UTF-8 if it begins no character, or
/// belongs to a character that is cut off, a surrogate, too long or too large.
///
/// Thread safety: may be called from any thread.
std::string valid_utf8(std::string_view text);

/// The text is UTF-8 already.
///
/// Thread safety: may be called from any thread.
bool is_utf8(std::string_view text) noexcept;

}  // namespace dflow
