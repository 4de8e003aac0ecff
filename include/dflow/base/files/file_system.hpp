#pragma once

/// Public: the interface to files, and the file system of the process.

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A file open for reading at any offset.
///
/// Thread safety: reads may run at the same time.
class RandomAccessFile {
 public:
  virtual ~RandomAccessFile();
  /// Bytes in the file when it was opened.
  virtual std::uint64_t size() const = 0;
  /// Blocks. Fills `into` from `offset`; returns how many bytes there were, fewer only at the end of the file.
  virtual std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const = 0;
  /// Blocks. Fills all of `into`. Errors: DataLoss if the file ends before that.
  void read_exactly_at(std::uint64_t offset, std::span<std::byte> into) const;
};

/// A file open for appending. The destructor closes it. Call `sync` first if the bytes must be on disk.
///
/// Thread safety: one thread at a time.
class WritableFile {
 public:
  virtual ~WritableFile();
  /// Blocks.
  virtual void append(std::span<const std::byte> bytes) = 0;
  void append(std::string_view text) { append(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Blocks until all appended bytes would survive a loss of power.
  virtual void sync() = 0;
};

/// A file that replaces the one at `target` later. Write it, then move `temporary` to `target` by `FileSystem::rename`.
/// To give up, remove `temporary`.
struct FileReplacement {
  std::string target;     ///< the path behind symbolic links
  std::string temporary;  ///< in the same directory
  std::unique_ptr<WritableFile> file;
  /// Whether to close `file` before the rename. If not, the open file keeps other writers away until then.
  bool closes_first = false;
};

/// The interface to a file system. Pass it to each function that reads or writes files. Paths are the file system's
/// own, separated by '/'.
///
/// Lifetime: the file system outlives the files that it has opened, and each object that was given a reference to it: a
/// reader, a writer, a dataset. An object that takes a `std::shared_ptr` keeps it alive.
///
/// Thread safety: all functions may be called from any thread. All of them may block.
/// Errors: every function throws Error; the message names the path and the system's reason. The codes are NotFound for
/// a missing path, PermissionDenied and AlreadyExists. ResourceExhausted means a full disk, too many open files, or a
/// file larger than a limit. FailedPrecondition means a directory in place of a file, or a directory that is not empty.
/// InvalidArgument means a path with a zero byte, a path that is too long, or links in a circle. All other errors are
/// Unavailable.
class FileSystem {
 public:
  static constexpr std::uint64_t default_max_bytes = std::uint64_t{1} << 32;

  virtual ~FileSystem();

  /// The whole file. Errors: ResourceExhausted if it holds more than `max_bytes`, before that much is allocated.
  virtual std::string read_file(const std::string& path, std::uint64_t max_bytes = default_max_bytes) = 0;
  /// Errors also: FailedPrecondition if the path is not a regular file; the call does not wait for it.
  virtual std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) = 0;
  /// Opens a file for appending; makes the file if it is missing.
  virtual std::unique_ptr<WritableFile> open_for_appending(const std::string& path) = 0;
  /// Readers see the old content or the new, never a part, also after a loss of power. A symbolic link stays, and the
  /// file that it leads to is written. Errors also: FailedPrecondition if the path exists and is not a regular file.
  virtual void write_file_atomically(const std::string& path, std::span<const std::byte> content) = 0;
  void write_file_atomically(const std::string& path, std::string_view content) {
    write_file_atomically(path, std::as_bytes(std::span(content.data(), content.size())));
  }

  /// False only where the file is known to be missing. Errors: whatever keeps the file system from saying so.
  virtual bool exists(const std::string& path) = 0;
  virtual bool is_directory(const std::string& path) = 0;
  virtual std::uint64_t file_size(const std::string& path) = 0;
  /// The names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list_directory(const std::string& path) = 0;
  /// Makes the directory and its missing parents; no error if it exists.
  virtual void create_directories(const std::string& path) = 0;
  /// Removes a file or an empty directory.
  virtual void remove(const std::string& path) = 0;
  /// Replaces `to` if that is a file.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Blocks until the present names in a directory would survive a loss of power: files made, renamed and removed. The
  /// content of a file is synced separately.
  virtual void sync_directory(const std::string& path) = 0;
  /// The path for processes with other working directories; unchanged if the file system has none.
  virtual std::string absolute_path(const std::string& path) { return path; }
  /// Makes a file and opens it for appending; if several callers make it at the same time, one succeeds. Errors also:
  /// AlreadyExists if the path exists.
  virtual std::unique_ptr<WritableFile> create_file(const std::string& path) = 0;
  /// Begins to replace the file at `path`, which need not exist, by one that is written piece by piece. Each writer has
  /// a temporary file of its own, whose name ends in ".tmp". Errors also: as `write_file_atomically`.
  ///
  /// By default `create_file` makes the temporary file. `PosixFileSystem` follows symbolic links at `path`, gives the
  /// new file the permissions of the old one, and takes the name of a temporary file whose writer has died.
  virtual FileReplacement begin_replacing(const std::string& path);
};

/// The machine's files.
///
/// Thread safety: safe; it has no state.
class PosixFileSystem final : public FileSystem {
 public:
  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t max_bytes = default_max_bytes) override;
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override;
  std::unique_ptr<WritableFile> open_for_appending(const std::string& path) override;
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override;
  bool exists(const std::string& path) override;
  bool is_directory(const std::string& path) override;
  std::uint64_t file_size(const std::string& path) override;
  std::vector<std::string> list_directory(const std::string& path) override;
  void create_directories(const std::string& path) override;
  void remove(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;
  std::string absolute_path(const std::string& path) override;
  std::unique_ptr<WritableFile> create_file(const std::string& path) override;
  FileReplacement begin_replacing(const std::string& path) override;
};

/// The whole content of a regular file that others have made. Blocks, but does not wait for the writer of a pipe.
/// Errors: as FileSystem; FailedPrecondition for a pipe or a device; ResourceExhausted if it holds more than
/// `max_bytes`.
std::string read_regular_file(FileSystem& files, const std::string& path,
                              std::uint64_t max_bytes = FileSystem::default_max_bytes);

inline constexpr std::string_view scheme_end = "://";

/// "mem" of "mem://a/b"; empty for a path without a scheme. A scheme is a letter followed by letters, digits, '+', '-'
/// and '.'. `FileSystems` chooses a file system by it.
std::string_view path_scheme(std::string_view path) noexcept;

/// "a/b" and "c" to "a/b/c"; an absolute `name`, or one with a scheme, stays as it is.
std::string join_path(std::string_view directory, std::string_view name);

/// "a/b/c" to "a/b", "c" to "." and "/c" to "/"; "mem://a/b" to "mem://a", and "mem://a" to "mem://".
std::string parent_directory(const std::string& path);

}  // namespace dflow
