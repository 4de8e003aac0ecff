#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// Bytes that are read in order, from a position that can be set.
///
/// Thread safety: one thread at a time.
/// Errors: those of where the bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource();
  /// Blocks. Fills `into` with what comes next; returns how many bytes there were, fewer only at the end. The end is
  /// not final where more can be added: a later call sees that.
  virtual std::size_t read(std::span<std::byte> into) = 0;
  /// What is read next, as far as it is in memory: reading it does not block. Until the next call that changes
  /// anything.
  virtual std::span<const std::byte> at_hand() const { return {}; }
  /// Bytes before the next one.
  virtual std::uint64_t position() const = 0;
  /// May block. Past the end nothing is read.
  virtual void seek(std::uint64_t position) = 0;
};

/// A file read in order through a buffer; nothing more of it is held in memory.
class FileSource final : public ByteSource {
 public:
  static constexpr std::size_t default_buffer_bytes = std::size_t{1} << 18;

  /// `buffer_bytes` of 0 is taken as 1.
  explicit FileSource(std::unique_ptr<RandomAccessFile> file, std::size_t buffer_bytes = default_buffer_bytes);

  std::size_t read(std::span<std::byte> into) override;
  std::span<const std::byte> at_hand() const override {
    return std::span(buffer_).subspan(window_used_, window_size_ - window_used_);
  }
  std::uint64_t position() const override { return window_start_ + window_used_; }
  void seek(std::uint64_t position) override;

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<std::byte> buffer_;
  std::uint64_t window_start_ = 0;  ///< where the buffer's first byte is in the file
  std::size_t window_size_ = 0;
  std::size_t window_used_ = 0;
};

/// Appends to `bytes` what comes next, until they are `size` or the source ends. A size is believed as far as there are
/// bytes: memory is at most twice what is there, and a megabyte. Blocks. Errors: those of the source; then `bytes` are
/// as they were.
void fill_to(ByteSource& source, std::uint64_t size, std::string& bytes);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/base/files/byte_source.ipp>
#endif
