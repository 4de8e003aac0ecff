#pragma once

#include <dflow/base/files/file_system.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// A file that is written piece by piece. When `finish` has returned, the file is whole and safe from a loss of power.
/// Until then the pieces are in a temporary file beside it (`FileSystem::begin_replacing`), and the old file stays. Use
/// it for content that is too large to hold twice, and `FileSystem::write_file_atomically` for the rest. If several
/// threads or processes write one path, the last one that finishes has it.
///
/// Thread safety: one thread at a time.
/// Errors: all functions throw the errors of the file system.
class AtomicFile {
 public:
  /// Blocks. Makes the directory if it is missing. `files` outlives the file.
  AtomicFile(FileSystem& files, const std::string& path);
  /// Removes an unfinished file, as far as that is possible.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Blocks.
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Bytes appended so far.
  std::uint64_t size() const noexcept { return size_; }
  /// Blocks. Call it once, and no other function after it.
  void finish();

 private:
  FileSystem& files_;
  FileReplacement replacement_;
  std::uint64_t size_ = 0;
  bool is_finished_ = false;
};

}  // namespace dflow
