#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/compression/zlib_stream.hpp>

#include <algorithm>
#include <span>

namespace dflow {

bool is_gzip(std::string_view bytes) noexcept { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

std::string gunzip(std::string_view compressed, std::uint64_t max_bytes) {
  // A first guess of the size, doubled whenever it is full: a file of many small members grows no more than they need.
  constexpr std::uint64_t least = 1 << 12, most = 1 << 18, usual_ratio = 4;
  const std::uint64_t guess = std::clamp<std::uint64_t>(usual_ratio * compressed.size(), least, most);
  std::string content(static_cast<std::size_t>(std::min(guess, std::max<std::uint64_t>(max_bytes, 1))), '\0');
  std::size_t size = 0;
  std::span<const std::byte> packed = std::as_bytes(std::span(compressed.data(), compressed.size()));
  Inflater inflater(CompressionFormat::gzip);
  for (bool is_at_end = false; !is_at_end || !packed.empty();) {
    if (is_at_end) inflater.reset();  // another member follows
    const Inflater::Step step = inflater.step(packed, std::as_writable_bytes(std::span(content).subspan(size)));
    packed = packed.subspan(step.taken);
    size += step.made;
    is_at_end = step.is_end;
    if (!step.damage.empty()) throw_error(Status::data_loss(str_cat("the gzip file is damaged: ", step.damage)));
    if (step.is_stuck()) throw_error(Status::data_loss("the gzip file is cut short"));
    if (size > max_bytes) {
      throw_error(Status::resource_exhausted(str_cat("the unpacked content exceeds ", max_bytes, " bytes")));
    }
    if (size == content.size()) {
      content.resize(size + static_cast<std::size_t>(std::clamp<std::uint64_t>(max_bytes - size, 1, size)));
    }
  }
  content.resize(size);
  return content;
}

std::string read_maybe_gzip(FileSystem& files, const std::string& path, std::uint64_t max_bytes) {
  std::string bytes = files.read_file(path, max_bytes);
  if (!is_gzip(bytes)) return bytes;
  try {
    return gunzip(bytes, max_bytes);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(path, ": ")));
  }
}

}  // namespace dflow
