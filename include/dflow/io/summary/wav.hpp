#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace dflow {

/// Sound as a WAV file of 16 bits a sample. samples: [frames, channels] in -1 to 1; values beyond are clipped, NaN is
/// 0.
///
/// Errors: InvalidArgument for a rate outside of 1 to 2^32 - 1, channels outside of 1 to 2^16 - 1, an incomplete last
/// frame, or a file over 4 GiB.
std::string encode_wav(std::span<const float> samples, std::int64_t channels, std::int64_t sample_rate);

}  // namespace dflow
