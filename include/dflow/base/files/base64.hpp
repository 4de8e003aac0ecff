#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// The base64 code of bytes (RFC 4648, section 4), padded.
std::string to_base64(std::span<const std::byte> bytes);

/// The bytes of a base64 code; nothing if the text is not the one code of some bytes.
std::optional<std::string> from_base64(std::string_view text);

/// The code that is safe in URLs and names of files (RFC 4648, section 5), padded or not.
std::string to_base64_url(std::span<const std::byte> bytes, bool is_padded);

/// The bytes of a URL-safe code, padded or not; bits that are left over count for nothing, as in TensorFlow. Nothing
/// for a text that is no code.
std::optional<std::string> from_base64_url(std::string_view text);

}  // namespace dflow
