#pragma once

#include <dflow/base/files/byte_source.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace dflow {

ByteSource::~ByteSource() = default;

FileSource::FileSource(std::unique_ptr<RandomAccessFile> file, std::size_t buffer_bytes)
    : file_(std::move(file)), buffer_(std::max<std::size_t>(buffer_bytes, 1)) {}

void FileSource::seek(std::uint64_t position) {
  if (position >= window_start_ && position - window_start_ <= window_size_) {
    window_used_ = static_cast<std::size_t>(position - window_start_);
    return;
  }
  window_start_ = position;
  window_size_ = window_used_ = 0;
}

std::span<const std::byte> FileSource::bring_to_hand(std::size_t size) {
  const std::span<const std::byte> held = at_hand();
  if (held.size() >= size || size > buffer_.size()) return held;
  window_start_ += std::exchange(window_used_, 0);
  std::byte* const window = buffer_.at(window_start_);
  std::memmove(window, held.data(), held.size());
  window_size_ = held.size();
  window_size_ += file_->read_at(window_start_ + window_size_, {window + window_size_, buffer_.size() - window_size_});
  return at_hand();
}

std::size_t FileSource::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    if (window_used_ == window_size_) {
      window_start_ += std::exchange(window_size_, 0);
      window_used_ = 0;
      const std::span<std::byte> rest = into.subspan(done);
      const bool is_large = rest.size() >= std::min(buffer_.size(), default_buffer_bytes);
      if (is_large && FileBuffer::suits(rest.data(), window_start_)) {  // past the buffer
        const std::size_t got = file_->read_at(window_start_, rest);
        window_start_ += got;
        return done + got;
      }
      window_size_ = file_->read_at(window_start_, {buffer_.at(window_start_), buffer_.size()});
      if (window_size_ == 0) return done;
    }
    const std::size_t size = std::min(into.size() - done, window_size_ - window_used_);
    std::memcpy(into.data() + done, buffer_.at(window_start_) + window_used_, size);
    window_used_ += size;
    done += size;
  }
  return done;
}

void fill_to(ByteSource& source, std::uint64_t size, std::string& bytes) {
  constexpr std::uint64_t first_step = std::uint64_t{1} << 20;
  const std::size_t held = bytes.size();
  try {
    while (bytes.size() < size) {
      const std::uint64_t step = std::max<std::uint64_t>(first_step, bytes.size());
      const std::size_t before = bytes.size();
      bytes.resize(before + static_cast<std::size_t>(std::min<std::uint64_t>(size - before, step)));
      const auto room = std::as_writable_bytes(std::span(bytes)).subspan(before);
      const std::size_t got = source.read(room);
      if (got == room.size()) continue;
      bytes.resize(before + got);
      return;
    }
  } catch (...) {
    bytes.resize(held);
    throw;
  }
}

}  // namespace dflow
