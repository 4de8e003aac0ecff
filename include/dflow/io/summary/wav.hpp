#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace dflow {

/// Sound as a WAV file of 16 bits a sample. samples: [frames, channels] in -1 to 1; what is beyond is clipped, NaN is
/// 0.
///
/// Errors: InvalidArgument for a rate or channels that are not positive or over 2^32 - 1 and 2^16 - 1, samples that are
/// no whole number of frames, and more than a file of 4 GiB holds.
std::string encode_wav(std::span<const float> samples, std::int64_t channels, std::int64_t sample_rate);

}  // namespace dflow
