#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// An image as a PNG file (RFC 2083) of 8 bits a channel. pixels: [height, width, channels]. 1 channel is grey; 2 are
/// grey and opacity; 3 are red, green and blue; 4 are red, green, blue and opacity. A library built without zlib
/// stores the pixels uncompressed.
///
/// Errors: InvalidArgument for another number of channels, an extent outside of 1 to 2^31 - 1, or a wrong number of
/// pixels.
std::string encode_png(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                       std::int64_t channels);

namespace detail {
/// A zlib stream of stored blocks (RFC 1950, RFC 1951 section 3.2.4). Used without zlib; always there, to be tested.
std::string stored_in_zlib(std::string_view content);
}  // namespace detail

}  // namespace dflow
