#pragma once

/// Public: TensorFlow's checkpoints of version 2, read and written.

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/named_tensor.hpp>
#include <dflow/io/checkpoint/parts/tensor_slices.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A tensor in TensorFlow's checkpoint of version 2, or one slice of it.
struct TensorBundleEntry {
  DType dtype = DType::invalid;  ///< stays invalid for a tensor that cannot be read
  std::uint32_t dtype_number = 0;
  Status problem;                   ///< the error of `read` if dflow lacks the type or so many dimensions, else ok
  Shape shape;                      ///< of the tensor, or of the slice
  std::vector<TensorSlice> slices;  ///< of a tensor that is stored in slices, each an entry of its own
  std::uint32_t shard = 0;
  std::uint64_t offset = 0, size = 0;  ///< where its bytes lie in the file of the shard
  std::uint32_t crc = 0;               ///< CRC-32C of its content
  std::uint64_t listed_at = 0;         ///< offset of the index block that lists the entry
};

/// Reads a checkpoint of version 2 of TensorFlow's format, a "tensor bundle", which TensorFlow has written since 0.12.
/// PREFIX.index is a table of the places of tensors, and PREFIX.data-00000-of-0000N hold their bytes
/// (tensorflow/core/protobuf/tensor_bundle.proto). Partitioned variables are put together from their slices.
///
/// ```cpp
/// df::TensorBundleReader bundle(files, "saved_model/variables/variables");
/// df::Tensor<float> weights = bundle.read("dense/kernel").as<float>();
/// ```
/// Thread safety: const functions may be called from any thread.
/// Errors: NotFound for a missing file or tensor, naming it. DataLoss for damage, naming the file, the offset in it
/// and the tensor; it says so if a file is a pointer of Git LFS, a web page and the like. Unimplemented for a
/// checkpoint that was written on a big-endian machine or needs a newer reader. Errors of the file system. A tensor of
/// a type that dflow lacks or of more than `max_rank` dimensions is listed; reading it is Unimplemented. All checksums
/// are compared. Nothing is allocated before the files are known to be long enough for it; strings take up to
/// `sizeof(std::string)` times that.
class TensorBundleReader {
 public:
  /// Blocks. Reads the index and looks at the other files' sizes. `files` outlives the reader.
  TensorBundleReader(FileSystem& files, const std::string& prefix);

  /// The tensors by name, without the entries of slices.
  const std::map<std::string, TensorBundleEntry, std::less<>>& entries() const noexcept { return entries_; }
  /// Null if there is no such tensor.
  const TensorBundleEntry* find(std::string_view name) const noexcept;
  /// Blocks. Returns a tensor with its own elements.
  AnyTensor read(std::string_view name) const;

 private:
  void check_sizes() const;
  std::string data_path(const TensorBundleEntry& entry) const;
  [[noreturn]] void fail(const TensorBundleEntry& entry, std::string_view what, std::uint64_t at) const;
  [[noreturn]] void fail_index(std::string_view what, std::uint64_t offset) const;
  AnyTensor read_entry(const TensorBundleEntry& entry) const;
  AnyTensor read_strings(const TensorBundleEntry& entry) const;

  std::string prefix_;
  std::uint32_t num_shards_ = 0;
  std::map<std::string, TensorBundleEntry, std::less<>> entries_, slices_;
  std::vector<std::unique_ptr<RandomAccessFile>> shards_;
};

/// Writes tensors as a checkpoint of TensorFlow's version 2 of one shard, which TensorFlow and `Saver::restore` read.
/// Blocks. An existing checkpoint is replaced: its data first, its index last. In between a tensor whose data have
/// changed is DataLoss by its checksum.
///
/// Errors: InvalidArgument for an empty name, a name that begins with a zero byte, two tensors of one name, and
/// uninitialised tensors; errors of the file system.
void write_tensor_bundle(FileSystem& files, const std::string& prefix, std::span<const NamedTensor> tensors);

}  // namespace dflow
