#pragma once

/// Public: tensors by name in safetensors files.

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/named_tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A tensor in a safetensors file, as its header describes it.
struct SafetensorsEntry {
  std::string name;
  std::string type;                  ///< the format's own word, "F32"
  DType dtype = DType::invalid;      ///< stays invalid for a tensor that cannot be read
  Shape shape;                       ///< [] for more than `max_rank` dimensions
  std::uint64_t begin = 0, end = 0;  ///< where its bytes lie in the file
  Status problem;  ///< the error of `read` if dflow lacks the type (8-bit floats) or so many dimensions, else ok
};

using SafetensorsMetadata = std::map<std::string, std::string>;

/// A safetensors file, Hugging Face's format of named tensors (github.com/huggingface/safetensors, README, "Format").
/// The header is read once. The bytes of a tensor are read only when it is asked for, straight into the tensor.
///
/// ```cpp
/// df::SafetensorsReader file(files, "model.safetensors");
/// df::Tensor<float> weights = file.read("layer1.weight").as<float>();
/// ```
/// A tensor that cannot be read does not keep the others from being read. As in the format's own library, members that
/// the format does not have are passed over.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: DataLoss for a file that is damaged or cut short: a header that is no JSON of the format or has more than
/// 100 MB, a name that stands twice, truth values other than 0 and 1. DataLoss also for tensors with holes or overlaps
/// between them or bytes behind them, and for sizes that do not match the shapes. DataLoss that says so for a pointer
/// of Git LFS, a web page and the like. NotFound and the other errors of `FileSystem`. Messages name the path, the
/// offset and the tensor. Nothing is allocated before the file is known to be long enough; entries take about their
/// part of the header.
class SafetensorsReader {
 public:
  static constexpr std::uint64_t max_header_bytes = 100'000'000;  ///< the format's own limit

  /// Blocks. `files` outlives the reader.
  SafetensorsReader(FileSystem& files, std::string path);

  /// In the order of the header.
  const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }
  /// The metadata in the file: any words, "format" for instance.
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }

  /// Blocks. Errors also: NotFound if the file lacks the tensor; `SafetensorsEntry::problem`, which is Unimplemented;
  /// FailedPrecondition if the reader was moved from.
  AnyTensor read(std::string_view name) const;
  AnyTensor read(const SafetensorsEntry& entry) const;

 private:
  const SafetensorsEntry* find(std::string_view name) const noexcept;

  std::string path_;
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  SafetensorsMetadata metadata_;
};

/// All tensors of a safetensors file, in the order of its header. Blocks. Tensors of types that the format has and
/// dflow lacks, and of more than `max_rank` dimensions, are left out: `SafetensorsReader` lists them. Errors: as
/// SafetensorsReader; Unimplemented for a type that the format does not have.
std::vector<NamedTensor> read_safetensors(FileSystem& files, const std::string& path);
/// One of the tensors; the bytes of the others are not read.
AnyTensor read_safetensors(FileSystem& files, const std::string& path, std::string_view name);

/// Writes tensors as one safetensors file, which is written whole or not at all. Blocks. Tensors with the widest
/// elements lie first, so that all are aligned; otherwise tensors keep their order.
///
/// Errors: InvalidArgument for strings and complex128, which the format lacks, and for two tensors of one name.
/// InvalidArgument also for names and metadata that are no UTF-8, the name "__metadata__", and a header beyond the
/// limit. Errors of `FileSystem`.
void write_safetensors(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace dflow
