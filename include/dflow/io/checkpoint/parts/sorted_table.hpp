#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/function_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Reads a table of sorted keys and their values, the format of TensorFlow's checkpoints (LevelDB's
/// doc/table_format.md). A table has blocks of entries with keys that share their beginnings, and an index of the
/// blocks. A block is stored as it is or packed with snappy, with a masked CRC-32C. Blocks are read when they are
/// asked for.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: DataLoss, naming file and offset, for a damaged table: checksums, keys out of order, blocks outside of the
/// file; the errors of the file system. A block takes no more memory than the file is long, or 22 times that if it is
/// packed.
class SortedTableReader {
 public:
  static constexpr std::uint64_t magic = 0xdb4775248b80fb57;
  static constexpr std::size_t footer_bytes = 48;

  /// Blocks. Reads the index. `files` outlives the reader.
  SortedTableReader(FileSystem& files, std::string path);

  /// Blocks. Calls `take(key, value)` for each entry, in the order of the keys; the views live until it returns.
  void for_each(FunctionRef<void(std::string_view key, std::string_view value)> take) const;
  /// Blocks. The value of a key, or nothing.
  std::optional<std::string> find(std::string_view key) const;

  /// The offset of the block that holds a key, or would hold it; the file's size behind the last key.
  std::uint64_t offset_of(std::string_view key) const noexcept;
  const std::string& path() const noexcept { return path_; }

  /// Whether a file ends as a table does. Blocks. Errors: the errors of the file system.
  static bool is_table(FileSystem& files, const std::string& path);

 private:
  struct Block {
    std::string last_key;  ///< or one behind it, but before the next block's
    std::uint64_t offset = 0, size = 0;
  };
  void read_index();
  std::vector<Block>::const_iterator block_of(std::string_view key) const noexcept;
  std::string read_block(std::uint64_t offset, std::uint64_t size) const;
  [[noreturn]] void fail(std::string_view what, std::uint64_t offset) const;
  [[noreturn]] void fail_without_end(std::string_view what, std::uint64_t offset) const;
  void each_entry(const Block& block, FunctionRef<void(std::string_view, std::string_view)> take) const;

  std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<Block> blocks_;
};

/// Makes a table of the same format, with blocks that are not packed, in a string that must outlive it.
///
/// Thread safety: one thread at a time.
class SortedTableWriter {
 public:
  /// The size of blocks that TensorFlow uses.
  static constexpr std::size_t default_block_bytes = std::size_t{1} << 18;

  explicit SortedTableWriter(std::string& out, std::size_t block_bytes = default_block_bytes)
      : out_(out), block_bytes_(block_bytes) {}

  /// Errors: InvalidArgument for a key that is not behind the one before; OutOfRange for an entry of 2^31 bytes.
  void add(std::string_view key, std::string_view value);
  /// Call it once, and nothing after it.
  void finish();

 private:
  /// Entries of one block, with the places at which a key stands in full.
  struct Entries {
    std::string bytes;
    std::string last_key;
    std::vector<std::uint32_t> restarts;
    int since_restart = 0;
    void add(std::string_view key, std::string_view value, int restart_interval);
  };
  struct Handle {
    std::uint64_t offset, size;
  };
  Handle write_block(Entries& entries);
  void finish_block();

  std::string& out_;
  std::size_t block_bytes_;
  Entries entries_, index_;
  bool is_first_ = true;
  std::string last_key_;
};

}  // namespace dflow
