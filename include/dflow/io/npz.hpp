#pragma once

/// Public: tensors by name in npz files, NumPy's form of several arrays.

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/named_tensor.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

class ZipReader;

struct NpzOptions {
  /// Deflated, as `numpy.savez_compressed` does; else stored, as `numpy.savez` does.
  bool is_compressed = false;
};

/// An entry of an npz file, as its header describes it.
struct NpzEntry {
  std::string name;              ///< as in the archive, without ".npy"
  DType dtype = DType::invalid;  ///< stays invalid for an entry that cannot be read
  Shape shape;
  Status problem;  ///< the error of `read` if the entry is no array or dflow lacks its type, or for damage; else ok
};

/// An npz file: a ZIP archive of npy files. The headers of all arrays are read once. The elements of an array are read
/// only when it is asked for.
///
/// ```cpp
/// df::NpzReader file(files, "model.npz");
/// df::Tensor<float> weights = file.read("weights").as<float>();
/// ```
/// An entry that cannot be read does not keep the others from being read.
///
/// Thread safety: const functions may be called from any thread.
/// Errors: as `ZipReader`, naming the path: DataLoss if the archive is damaged or cut short, or has entries "a" and
/// "a.npy".
class NpzReader {
 public:
  /// Blocks. `files` outlives the reader.
  NpzReader(FileSystem& files, std::string path);

  /// In the order of the archive. Files that are no arrays, and folders, are among them.
  const std::vector<NpzEntry>& entries() const noexcept { return entries_; }
  bool contains(std::string_view name) const { return by_name_.contains(name); }
  /// Blocks. Compares the checksum. Errors also: NotFound, with the names that the file has; `NpzEntry::problem`: it is
  /// Unimplemented for an entry that is no array, for element types and more dimensions than dflow has, and for
  /// deflated entries in a library built without zlib. DataLoss for damage. FailedPrecondition if the reader was moved
  /// from.
  AnyTensor read(std::string_view name) const;

 private:
  std::string path_;
  std::shared_ptr<const ZipReader> archive_;
  std::vector<NpzEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

/// The tensors in an npz file, in the order of the archive. Names are as in the archive, without ".npy". Blocks.
/// Checksums are compared. Entries that are no arrays, and arrays of element types that dflow lacks (pickled objects,
/// records) or of more than `max_rank` dimensions, are left out: `NpzReader` lists them.
///
/// ```cpp
/// for (const auto& [name, tensor] : df::read_npz(files, "weights.npz")) std::puts(name.c_str());
/// ```
/// Errors: as `ZipReader` and `read_npy`, naming path and entry. DataLoss for damage. Unimplemented for entries that
/// are encrypted, packed in another way than deflated, or deflated in a library built without zlib. Memory is bounded
/// by the file's size, or by 1032 times that for deflated entries.
std::vector<NamedTensor> read_npz(FileSystem& files, const std::string& path);

/// One of the tensors; the others are not read. Errors also: NotFound, with the names that the file has.
AnyTensor read_npz(FileSystem& files, const std::string& path, std::string_view name);

/// Writes tensors as one npz file, which is written whole or not at all. Blocks.
///
/// Errors: InvalidArgument if two tensors have the same name, a name is empty, or NumPy lacks the element type.
/// Unimplemented for compression in a library built without zlib. Errors of `FileSystem`.
void write_npz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
               const NpzOptions& options = {});

}  // namespace dflow
