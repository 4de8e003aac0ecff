#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/io/checkpoint/own/checkpoint_index.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Reads a checkpoint. The content of a file is believed only as far as checksums and the file's size confirm it, and
/// nothing is allocated before that.
///
///     const CheckpointReader reader(files, "/models/digits-100");
///     weights = reader.read("layer1/weights");
///
/// Thread safety: const functions may be called from any thread.
/// Errors: NotFound for a checkpoint, shard or tensor that is missing, naming it; DataLoss for a damaged one, naming
/// the file; the errors of the file system.
class CheckpointReader {
 public:
  /// Blocks. Reads the index and looks at the shards' sizes. `files` outlives the reader.
  CheckpointReader(FileSystem& files, const std::string& prefix);

  const CheckpointIndex& index() const noexcept { return index_; }
  bool contains(std::string_view name) const noexcept { return !index_.find(name).empty(); }

  /// Blocks. A tensor of its own, put together of its slices if it has any. Errors also: ResourceExhausted.
  AnyTensor read(std::string_view name) const;
  /// The same for a caller that knows the type and shape. Errors also: InvalidArgument that names both types or
  /// shapes.
  AnyTensor read(std::string_view name, DType dtype, const Shape& shape) const;
  /// Blocks. Parts of a tensor, each with memory of its own. If the tensor is stored in slices, only the slices with
  /// elements of the parts are read, each once and one after the other. A task that holds a part of a table needs no
  /// room for the table.
  /// Errors also: InvalidArgument, naming the tensor, for slices of another shape; ResourceExhausted.
  std::vector<AnyTensor> read_slices(std::string_view name, std::span<const CheckpointSlice> slices) const;
  /// Blocks. Reads all shards and compares their checksums, also the checksums between the tensors.
  void verify() const;

 private:
  /// The entries of a tensor, which make it up. Errors: NotFound, DataLoss.
  std::span<const CheckpointEntry> entries_of(std::string_view name) const;
  AnyTensor read_entry(const CheckpointEntry& entry) const;
  const CheckpointShard& shard_of(const CheckpointEntry& entry) const;

  std::string prefix_;
  CheckpointIndex index_;
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
};

/// The index in a file. Blocks. Errors: as CheckpointReader.
CheckpointIndex read_checkpoint_index(FileSystem& files, const std::string& path);

}  // namespace dflow
