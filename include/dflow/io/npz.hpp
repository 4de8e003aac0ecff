#pragma once

/// Public: tensors by name in npz files, NumPy's form of several arrays.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/named_tensor.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

struct NpzOptions {
  /// Deflated, as `numpy.savez_compressed` does; else stored, as `numpy.savez` does.
  bool is_compressed = false;
};

/// The tensors in an npz file, a ZIP archive of npy files, in the order of the archive. Names are as in the archive,
/// without ".npy". Blocks. Checksums are compared.
///
/// ```cpp
/// for (const auto& [name, tensor] : df::read_npz(files, "weights.npz")) std::puts(name.c_str());
/// ```
/// Errors: as `ZipReader` and `read_npy`, naming path and entry. DataLoss for damage. Unimplemented for element types
/// that dflow lacks, and for deflated entries in a library built without zlib. Memory is bounded by the file's size,
/// or by 1032 times that for deflated entries.
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
