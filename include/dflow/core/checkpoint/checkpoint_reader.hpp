#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/checkpoint/checkpoint_index.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Reads a checkpoint: what is in a file is believed only as far as checksums and the file's size bear it out, and
/// nothing is allocated before that.
///
///     const CheckpointReader reader(files, "/models/digits-100");
///     weights = reader.read("layer1/weights");
///
/// Thread safety: const functions may be called from any thread.
/// Errors: NotFound for a checkpoint, shard or tensor that is missing, naming it; DataLoss for a damaged one, naming
/// the file; those of the file system.
class CheckpointReader {
 public:
  /// Blocks. Reads the index and looks at the shards' sizes.
  CheckpointReader(FileSystem& files, const std::string& prefix);

  const CheckpointIndex& index() const noexcept { return index_; }
  bool contains(std::string_view name) const noexcept { return !index_.find(name).empty(); }

  /// Blocks. A tensor of its own, put together of its slices if it has any. Errors also: ResourceExhausted.
  AnyTensor read(std::string_view name) const;
  /// The same for one who knows what it must be. Errors also: InvalidArgument that names both types or shapes.
  AnyTensor read(std::string_view name, DType dtype, const Shape& shape) const;
  /// Blocks. Reads all shards and compares their checksums, those between the tensors too.
  void verify() const;

 private:
  AnyTensor read_entry(const CheckpointEntry& entry) const;
  const CheckpointShard& shard_of(const CheckpointEntry& entry) const;

  std::string prefix_;
  CheckpointIndex index_;
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
};

/// The index in a file. Blocks. Errors: as CheckpointReader.
CheckpointIndex read_checkpoint_index(FileSystem& files, const std::string& path);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/core/checkpoint/checkpoint_reader.ipp>
#endif
