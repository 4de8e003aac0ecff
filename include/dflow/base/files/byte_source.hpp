#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace dflow {

/// Bytes that are read in order, from a position that can be set.
///
/// Thread safety: one thread at a time.
/// Errors: the errors of the file or source that the bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource();
  /// Blocks. Fills `into` with the next bytes; returns how many bytes there were, fewer only at the end. The end is
  /// not final if bytes can still be added: a later call sees them.
  virtual std::size_t read(std::span<std::byte> into) = 0;
  /// The next bytes, as far as they are in memory: reading them does not block. Valid until the next call that changes
  /// anything.
  virtual std::span<const std::byte> at_hand() const { return {}; }
  /// The same, with `size` bytes if the source can hold so many and has them. May block.
  virtual std::span<const std::byte> bring_to_hand(std::size_t) { return at_hand(); }
  /// Bytes before the next one.
  virtual std::uint64_t position() const = 0;
  /// May block. Past the end nothing is read.
  virtual void seek(std::uint64_t position) = 0;
};

/// Memory that a part of a file is read into. The offset of the part decides where it begins in the memory. Processors
/// copy slowly from a page to an address that is a few bytes further in its own page (AMD's by `rep movsb`: at a half
/// to a fifth of the speed). malloc gives exactly addresses of that kind.
class FileBuffer {
 public:
  /// Errors: ResourceExhausted for more than 2^40 bytes.
  explicit FileBuffer(std::size_t size)
      : size_(checked(size)), bytes_(std::make_unique_for_overwrite<std::byte[]>(size_ + 2 * alignment)) {}
  std::size_t size() const noexcept { return size_; }
  /// Room for `size()` bytes of the file from `offset`.
  std::byte* at(std::uint64_t offset) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.get());
    return bytes_.get() + (alignment - address % alignment) + offset % alignment;
  }
  /// Bytes of a file from `offset` are copied to that address fast.
  static bool suits(const std::byte* address, std::uint64_t offset) noexcept {
    return (reinterpret_cast<std::uintptr_t>(address) - offset - 1) % 4096 >= alignment - 1;
  }

 private:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t max_size = std::size_t{1} << 40;

  static std::size_t checked(std::size_t size) {
    if (size <= max_size) return size;
    throw_error(Status::resource_exhausted(str_cat("a buffer of ", size, " bytes for a file")));
  }

  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

/// A file read in order through a buffer; nothing more of it is held in memory.
class FileSource final : public ByteSource {
 public:
  static constexpr std::size_t default_buffer_bytes = std::size_t{1} << 18;

  /// `buffer_bytes` of 0 is taken as 1.
  explicit FileSource(std::unique_ptr<RandomAccessFile> file, std::size_t buffer_bytes = default_buffer_bytes);

  std::size_t read(std::span<std::byte> into) override;
  std::span<const std::byte> at_hand() const override {
    return {buffer_.at(window_start_) + window_used_, window_size_ - window_used_};
  }
  std::span<const std::byte> bring_to_hand(std::size_t size) override;
  std::uint64_t position() const override { return window_start_ + window_used_; }
  void seek(std::uint64_t position) override;

 private:
  std::unique_ptr<RandomAccessFile> file_;
  FileBuffer buffer_;
  std::uint64_t window_start_ = 0;  ///< where the buffer's first byte is in the file
  std::size_t window_size_ = 0;
  std::size_t window_used_ = 0;
};

/// Appends the next bytes to `bytes`, until `bytes` has `size` bytes or the source ends. A size is believed as far as
/// there are bytes: memory is at most twice the bytes that are there, and a megabyte. Blocks. Errors: the errors of
/// the source; then `bytes` is unchanged.
void fill_to(ByteSource& source, std::uint64_t size, std::string& bytes);

}  // namespace dflow
