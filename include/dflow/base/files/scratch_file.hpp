#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace dflow {

/// The directory for files that nobody needs after the program: `TMPDIR`, or "/tmp".
std::string scratch_directory();

/// A file for bytes that are to be out of memory for a while. It has no name, so it goes with the object, or with the
/// process.
///
/// Thread safety: one thread appends at a time; reads of bytes that were appended before may run at the same time.
class ScratchFile {
 public:
  /// Blocks. Makes the directory if it is missing. Errors: as FileSystem.
  ScratchFile(FileSystem& files, const std::string& directory);

  /// Blocks. Returns the offset of the bytes. Errors: as FileSystem, and then also at each later call; bytes that were
  /// appended before stay.
  std::uint64_t append(std::span<const std::byte> bytes);
  /// Blocks. Errors: DataLoss for bytes that were not appended; as FileSystem.
  void read_exactly_at(std::uint64_t offset, std::span<std::byte> into) const {
    reader_->read_exactly_at(offset, into);
  }
  std::uint64_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<WritableFile> writer_;
  std::unique_ptr<RandomAccessFile> reader_;
  std::uint64_t size_ = 0;
  Status status_;
};

}  // namespace dflow
