#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/io/checkpoint/own/checkpoint_index.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// Writes one shard of a checkpoint: the tensors that one task holds. When `finish` has returned, the shard is there
/// and would survive a loss of power. The checkpoint is there when `merge_checkpoint` has returned. Until then all is
/// in files with temporary names, which another save to the same prefix replaces.
///
///     CheckpointShardWriter shard(files, "/models/digits-100", 0, 1);
///     shard.add("layer1/weights", weights);
///     shard.finish();
///     merge_checkpoint(files, prefixes, "/models/digits-100");
///
/// Thread safety: one thread at a time; no two may write the same shard of a prefix.
/// Errors: all functions throw the errors of the file system. The constructor also throws AlreadyExists if there is a
/// whole checkpoint of that prefix, which is never overwritten, and InvalidArgument if there is no such shard of
/// `num_shards`.
class CheckpointShardWriter {
 public:
  /// Blocks. Makes the directory if it is missing. `files` outlives the writer.
  CheckpointShardWriter(FileSystem& files, std::string prefix, std::uint32_t shard = 0, std::uint32_t num_shards = 1);
  /// Removes unfinished files, as far as that is possible.
  ~CheckpointShardWriter();
  CheckpointShardWriter(const CheckpointShardWriter&) = delete;
  CheckpointShardWriter& operator=(const CheckpointShardWriter&) = delete;

  /// Blocks. Errors: InvalidArgument for an empty name, or a tensor without elements that can be saved.
  void add(std::string_view name, const AnyTensor& tensor);
  /// A part of a tensor of shape `whole`, from `begin` on. The parts of a tensor, in any shards, lie side by side
  /// along one dimension. Errors also: InvalidArgument for a part that reaches past the whole.
  void add_slice(std::string_view name, const AnyTensor& part, const Shape& whole, std::span<const std::int64_t> begin);
  /// Blocks. Data, sync, index, sync, both renamed, sync of the directory. Call it once, and nothing after it.
  /// Errors: InvalidArgument if a tensor was added twice.
  void finish();

 private:
  void append(std::span<const std::byte> bytes);

  FileSystem& files_;
  const std::string prefix_;
  std::string data_path_, index_path_;
  CheckpointIndex index_;
  FileReplacement data_;
  bool is_finished_ = false;
};

struct MergeOptions {
  /// A checkpoint of the same name is replaced: readers find the old or the new one, also after a loss of power. Its
  /// shards must have other names, so they were written under another prefix.
  bool replace = false;
};

/// Blocks. Makes a checkpoint of its shards, which have been finished under `shard_prefixes` (the same one several
/// times counts once). Writes its index and syncs it before it gets its name, then removes the shards' own.
/// Errors: the errors of the file system; AlreadyExists if the checkpoint is there; NotFound for a shard that is
/// missing. InvalidArgument for shards that do not belong together, lie in another directory, or hold a tensor twice
/// or in part. DataLoss for a damaged shard.
void merge_checkpoint(FileSystem& files, std::span<const std::string> shard_prefixes, const std::string& prefix,
                      const MergeOptions& options = {});

/// Blocks. Removes a checkpoint, its index first, so that at no moment there is a checkpoint that does not load; no
/// error if there is none. Errors: the errors of the file system; DataLoss for a damaged index, which stays.
void remove_checkpoint(FileSystem& files, const std::string& prefix);

}  // namespace dflow
