#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/io/compression/zlib_stream.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace dflow {

/// The content of compressed bytes, unpacked as it is read: it takes the memory of one buffer for any size. gzip may
/// have several members. Setting the position backwards unpacks from the beginning.
///
/// Errors: Unimplemented in a library built without zlib. A read throws DataLoss for bytes that are damaged or cut
/// short.
std::unique_ptr<ByteSource> inflating_source(std::unique_ptr<ByteSource> compressed, CompressionFormat format);

/// The content of a file, unpacked as it is read if the file is gzip-compressed. Blocks. `files` outlives the source.
///
/// Errors: as FileSystem; as `inflating_source` for a compressed file.
std::unique_ptr<ByteSource> open_maybe_gzip(FileSystem& files, const std::string& path);

/// Compresses appended bytes and appends the result to another file.
///
/// Thread safety: one thread at a time.
/// Errors: the constructor throws Unimplemented in a library built without zlib; the errors of the other file.
class DeflatingFile final : public WritableFile {
 public:
  using WritableFile::append;
  /// `level`: 0 (stored) to 9, or -1 for zlib's own choice.
  DeflatingFile(std::unique_ptr<WritableFile> compressed, CompressionFormat format, int level = -1);
  /// Without `finish`, the file cannot be unpacked to the end.
  ~DeflatingFile() override;

  void append(std::span<const std::byte> bytes) override;
  /// Blocks. All that was appended can be unpacked from the other file from now on.
  void flush();
  /// As `flush`, and syncs the other file.
  void sync() override;
  /// Blocks. Writes the end; nothing can be appended afterwards.
  void finish();

 private:
  void run(std::span<const std::byte> bytes, Deflater::Flush flush);

  std::unique_ptr<WritableFile> compressed_;
  Deflater deflater_;
};

}  // namespace dflow
