#pragma once

/// Public: TensorFlow's checkpoints of version 2, read and written.

#include <dflow/base/files/file_system.hpp>
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
  DType dtype = DType::invalid;  ///< stays so for a type that dflow has not
  std::uint32_t dtype_number = 0;
  Shape shape;                      ///< of the tensor, or of the slice
  std::vector<TensorSlice> slices;  ///< of a tensor that is stored in slices, each an entry of its own
  std::uint32_t shard = 0;
  std::uint64_t offset = 0, size = 0;  ///< where its bytes lie in the file of the shard
  std::uint32_t crc = 0;               ///< CRC-32C of its content
  std::uint64_t listed_at = 0;         ///< offset of the block of the index that says so
};

/// Reads a checkpoint that TensorFlow wrote in version 2 of its format, a "tensor bundle", as it has since 0.12:
/// PREFIX.index, a table of what lies where, and PREFIX.data-00000-of-0000N
/// (tensorflow/core/protobuf/tensor_bundle.proto). Partitioned variables are put together of their slices.
///
/// ```cpp
/// df::TensorBundleReader bundle(files, "saved_model/variables/variables");
/// df::Tensor<float> weights = bundle.read("dense/kernel").as<float>();
/// ```
/// Thread safety: const functions may be called from any thread.
/// Errors: NotFound for a file or a tensor that is missing, naming it; DataLoss for what is damaged, naming the file,
/// the offset in it and the tensor; Unimplemented for one that was written on a big-endian machine or needs a newer
/// reader, and for types that dflow has not and more than `max_rank` dimensions; those of the file system. All
/// checksums are compared, and nothing is allocated before the files are known to be long enough for it; strings take
/// up to `sizeof(std::string)` times that.
class TensorBundleReader {
 public:
  /// Blocks. Reads the index and looks at the other files' sizes.
  TensorBundleReader(FileSystem& files, const std::string& prefix);

  /// The tensors by name, without the entries of slices.
  const std::map<std::string, TensorBundleEntry, std::less<>>& entries() const noexcept { return entries_; }
  /// Null if there is no such tensor.
  const TensorBundleEntry* find(std::string_view name) const noexcept;
  /// Blocks. A tensor of its own.
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
/// Blocks. One that was there is replaced: its index goes first and the new one comes last, so there is none in
/// between.
///
/// Errors: InvalidArgument for an empty name or one that begins with a zero byte, two tensors of one name, and
/// uninitialised ones; those of the file system.
void write_tensor_bundle(FileSystem& files, const std::string& prefix, std::span<const NamedTensor> tensors);

}  // namespace dflow
