#pragma once

#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/io/compression/zlib_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace dflow {

/// A file in a ZIP archive, as the archive's directory describes it.
struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;         ///< bytes of its content
  std::uint64_t packed_size = 0;  ///< bytes in the archive
  std::uint32_t crc = 0;          ///< CRC-32 of its content
  std::uint16_t method = 0;       ///< how it is packed, by the format's number
  bool is_encrypted = false;
  std::uint64_t offset = 0;  ///< of its own header in the archive
  std::uint64_t end = 0;     ///< the start of the next entry or of the directory
};

/// The content of an entry, read once from first to last. The archive outlives it.
///
/// Thread safety: one thread at a time.
/// Errors: DataLoss if more bytes are read than there are, or the checksum is wrong; ResourceExhausted if zlib has no
/// memory; errors of the file system.
class ZipContent {
 public:
  std::uint64_t remaining() const noexcept { return entry_.size - read_; }
  void read(std::span<std::byte> into);
  /// Requires that all has been read, and compares the checksum.
  void finish();

 private:
  friend class ZipReader;
  ZipContent(const RandomAccessFile& file, const ZipEntry& entry, std::uint64_t begin);
  void refill();
  std::size_t unpack(std::span<std::byte> into);
  [[noreturn]] void fail(std::string_view what, std::uint64_t offset) const;

  const RandomAccessFile& file_;
  const ZipEntry& entry_;
  std::uint64_t at_, left_;  // in the archive: the packed bytes not read yet
  std::uint64_t read_ = 0;
  std::uint32_t crc_ = 0;
  std::optional<Inflater> inflater_;
  bool is_unpacked_ = false;  ///< the deflated stream has ended
  std::vector<std::byte> chunk_;
  std::span<const std::byte> packed_;  ///< the part of the chunk that has not been unpacked yet
};

/// Reads a ZIP archive (PKWARE's APPNOTE.TXT 6.3.10): entries that are stored or deflated, with 64-bit sizes where
/// they need them. All its numbers are checked against the file's size before use. Entries overlap neither each other
/// nor the directory, and none claims more bytes than deflate could hold in its packed bytes.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: DataLoss if the archive is damaged, cut short, or has a name twice, or if the file is of another kind.
/// Unimplemented for archives of several parts. Errors of the file system. Messages name entry and offset.
class ZipReader {
 public:
  /// Blocks. Reads the directory.
  explicit ZipReader(std::unique_ptr<RandomAccessFile> file);

  /// In the order of the directory.
  const std::vector<ZipEntry>& entries() const noexcept { return entries_; }
  /// The entry with this name, or null.
  const ZipEntry* find(std::string_view name) const noexcept;
  /// Blocks. Reads the entry's own header. `entry` is one of `entries()`. Errors also: Unimplemented if the entry is
  /// encrypted or neither stored nor deflated; FailedPrecondition if the reader was moved from.
  ZipContent open(const ZipEntry& entry) const;

 private:
  struct Directory;
  Directory find_directory() const;
  [[noreturn]] void fail_without_end(std::string_view what) const;
  std::string read_at(std::uint64_t offset, std::uint64_t size) const;

  std::unique_ptr<RandomAccessFile> file_;
  std::vector<ZipEntry> entries_;
};

struct ZipOptions {
  bool is_deflated = false;
  /// Writes sizes of 64 bits even where 32 would do: for tests and for readers that want them.
  bool always_64_bit = false;
};

/// Writes a ZIP archive, entry by entry. The same entries give the same bytes: all are dated 1980-01-01.
///
/// Thread safety: one thread at a time.
/// Errors: InvalidArgument for a name that is empty, longer than 65535 bytes, or there already; errors of Deflater and
/// the file system.
class ZipWriter {
 public:
  explicit ZipWriter(AtomicFile& file, const ZipOptions& options = {}) : file_(file), options_(options) {}

  /// Blocks. The content is given in pieces, in order.
  void add(std::string_view name, std::span<const std::span<const std::byte>> pieces);
  /// Blocks. Writes the directory, which finishes the file. Call it once, and nothing after it.
  void finish();

 private:
  AtomicFile& file_;
  ZipOptions options_;
  std::vector<ZipEntry> entries_;
  std::unordered_set<std::string> names_;
};

}  // namespace dflow
