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

/// The tensors in an npz file, a ZIP archive of npy files, in its order and named as there without ".npy". Blocks.
/// Checksums are compared.
///
/// ```cpp
/// for (const auto& [name, tensor] : df::read_npz(files, "weights.npz")) std::puts(name.c_str());
/// ```
/// Errors: those of `ZipReader` and `read_npy`, which name path and entry: DataLoss for what is damaged, Unimplemented
/// for entries that are deflated in a library built without zlib, and for element types that dflow has not. Memory is
/// bounded by the file's size, or 1032 times that for what is deflated.
std::vector<NamedTensor> read_npz(FileSystem& files, const std::string& path);

/// One of the tensors; the others are not read. Errors also: NotFound, with the names that there are.
AnyTensor read_npz(FileSystem& files, const std::string& path, std::string_view name);

/// Writes tensors as one npz file, which is there whole or not at all. Blocks.
///
/// Errors: InvalidArgument if two have the same name, a name is empty, or NumPy has not the element type; Unimplemented
/// if it is to be compressed in a library built without zlib; those of `FileSystem`.
void write_npz(FileSystem& files, const std::string& path, std::span<const NamedTensor> tensors,
               const NpzOptions& options = {});

}  // namespace dflow
