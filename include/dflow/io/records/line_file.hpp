#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// Reads a file of text line by line. A line ends with a line feed or with the file. One carriage return before the
/// line feed is left out. Memory is a few times the longest line, and a buffer.
///
///     LineReader lines(files, "words.txt");
///     for (std::string_view line; lines.next(line);) add(line);
///
/// A position can be kept and returned to: `lines.tell()`, later `lines.seek(position)`.
///
/// Thread safety: one thread at a time.
/// Errors: FileSystem's errors; ResourceExhausted, naming path and offset, for a line longer than `max_line_bytes`.
/// After any error the position is unchanged.
class LineReader {
 public:
  static constexpr std::uint64_t default_max_line_bytes = std::uint64_t{1} << 30;

  /// `files` outlives the reader.
  LineReader(FileSystem& files, std::string path, std::uint64_t max_line_bytes = default_max_line_bytes);
  /// The lines of other bytes, which `path` names in errors. Errors also: those of the source.
  LineReader(std::unique_ptr<ByteSource> source, std::string path,
             std::uint64_t max_line_bytes = default_max_line_bytes);
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader();

  /// Blocks. The next line, a view until the next call; false at the end of the file.
  bool next(std::string_view& line);
  /// The next line is in memory: reading it does not block.
  bool has_next_at_hand() const;

  /// The position where the next line begins.
  std::uint64_t tell() const noexcept { return start_ + begin_; }
  /// Goes to the beginning of a line, as `tell` gives it.
  void seek(std::uint64_t offset) noexcept;
  const std::string& path() const noexcept { return path_; }

 private:
  bool read_more();
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into);

  std::string path_;
  std::uint64_t max_line_bytes_;
  std::unique_ptr<RandomAccessFile> file_;  ///< or else:
  std::unique_ptr<ByteSource> source_;
  std::string text_;
  std::uint64_t start_ = 0;  ///< the position of `text_` in the file
  std::size_t begin_ = 0;    ///< of the next line in `text_`
};

}  // namespace dflow
