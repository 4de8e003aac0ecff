#pragma once

#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/summary/wav.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace dflow {

namespace detail {

std::int16_t wav_sample(float value) {
  if (std::isnan(value)) return 0;
  return static_cast<std::int16_t>(std::clamp(std::round(value * 32768.0f), -32768.0f, 32767.0f));
}

}  // namespace detail

std::string encode_wav(std::span<const float> samples, std::int64_t channels, std::int64_t sample_rate) {
  constexpr std::int64_t max_channels = 0xffff, sample_bytes = 2, header_bytes = 44;
  constexpr std::int64_t max_rate = 0xffffffff;
  constexpr std::uint64_t max_samples = (0xffffffff - header_bytes) / sample_bytes;
  if (channels < 1 || channels > max_channels || sample_rate < 1 || sample_rate > max_rate ||
      sample_rate > max_rate / (channels * sample_bytes)) {
    throw_error(Status::invalid_argument(
        str_cat("no WAV file has ", channels, " channels of ", sample_rate, " samples a second")));
  }
  if (samples.size() % static_cast<std::uint64_t>(channels) != 0 || samples.size() > max_samples) {
    throw_error(
        Status::invalid_argument(str_cat(samples.size(), " samples of ", channels, " channels are no WAV file")));
  }
  const auto content_bytes = static_cast<std::uint32_t>(samples.size() * sample_bytes);
  const auto frame_bytes = static_cast<std::uint16_t>(channels * sample_bytes);
  std::string wav;
  wav.reserve(header_bytes + content_bytes);
  ByteWriter out(wav);
  const auto text = [&](std::string_view id) { out.bytes(std::as_bytes(std::span(id.data(), id.size()))); };
  text("RIFF");
  out.u32(content_bytes + header_bytes - 8);
  text("WAVEfmt ");
  out.u32(16);
  out.u16(1);  // PCM
  out.u16(static_cast<std::uint16_t>(channels));
  out.u32(static_cast<std::uint32_t>(sample_rate));
  out.u32(static_cast<std::uint32_t>(sample_rate * frame_bytes));
  out.u16(frame_bytes);
  out.u16(8 * sample_bytes);
  text("data");
  out.u32(content_bytes);
  for (const float sample : samples) out.fixed<std::int16_t>(detail::wav_sample(sample));
  return wav;
}

}  // namespace dflow
