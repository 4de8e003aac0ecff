#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/checkpoint/parts/tensor_slices.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A tensor in TensorFlow's checkpoint of version 1.
struct SavedSlicesEntry {
  /// A part of the tensor, and the file that holds it.
  struct Part {
    TensorSlice slice;
    std::size_t file = 0;
  };

  DType dtype = DType::invalid;  ///< stays invalid for a tensor that cannot be read
  std::uint32_t dtype_number = 0;
  Status problem;  ///< the error of `read` if dflow lacks the type or so many dimensions, else ok
  Shape shape;
  std::vector<Part> parts;
};

/// Reads a checkpoint that TensorFlow wrote in version 1 of its format: one table PREFIX, or several
/// PREFIX-00000-of-0000N. The tables hold slices of tensors as messages
/// (tensorflow/core/util/saved_tensor_slice.proto). Partitioned variables are put together from their slices, in any
/// of the files.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: NotFound for a checkpoint, a file or a tensor that is missing, naming it; DataLoss for damage, naming the
/// file and the tensor. Unimplemented for a newer version; the errors of the file system. A tensor of a type that dflow
/// lacks or of more than `max_rank` dimensions is listed; reading it is Unimplemented. All checksums are compared; a
/// tensor takes no more memory than a small multiple of the bytes of its slices.
class SavedSlicesReader {
 public:
  /// Blocks. Reads the descriptions of the tensors, in all files. `files` outlives the reader.
  SavedSlicesReader(FileSystem& files, const std::string& prefix);

  const std::map<std::string, SavedSlicesEntry, std::less<>>& entries() const noexcept { return entries_; }
  /// Null if there is no tensor of that name.
  const SavedSlicesEntry* find(std::string_view name) const noexcept;
  /// Blocks. A tensor of its own.
  AnyTensor read(std::string_view name) const;

  /// The files of a checkpoint in this format: PREFIX, or the files of its shards; empty if there are no files.
  /// Blocks.
  /// Errors: NotFound if some shards are missing; the errors of the file system.
  static std::vector<std::string> paths(FileSystem& files, const std::string& prefix);

 private:
  void add_tensors(std::size_t file, std::string_view meta);

  std::string prefix_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<SortedTableReader>> tables_;
  std::map<std::string, SavedSlicesEntry, std::less<>> entries_;
};

}  // namespace dflow
