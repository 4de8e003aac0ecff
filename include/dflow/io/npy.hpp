#pragma once

/// Public: tensors in npy files, NumPy's form of one array.

#include <dflow/base/files/file_system.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// Other ways to write an array than the usual one; NumPy reads them all.
struct NpyOptions {
  int version = 1;                ///< of the format: 1, 2 or 3
  bool is_big_endian = false;     ///< else little-endian
  bool is_fortran_order = false;  ///< the first index runs fastest; else the last
};

/// The tensor in an npy file, NumPy's format of one array (NumPy Enhancement Proposal 1 and numpy.lib.format). It
/// reads versions 1 to 3, and either order of bytes and of elements. A parser of its own reads the header, which is
/// never evaluated. Elements are bool, integers of 8 to 64 bits, half, float, double and both complex types. Arrays of
/// bytes ('S') and of text ('U', given as UTF-8) become strings; their padding of zeros is cut off as NumPy does.
///
/// Errors: DataLoss for a file that is damaged or cut short, for bytes behind the elements, and for truth values other
/// than 0 and 1. DataLoss that says so for a pointer of Git LFS, a web page and the like. Unimplemented for element
/// types that dflow lacks (objects, records, dates, long doubles), naming the type, and for more than `max_rank`
/// dimensions. Nothing is allocated before the file is known to be long enough; strings take up to
/// `sizeof(std::string)` times the bytes of the file.
AnyTensor parse_npy(std::span<const std::byte> bytes);

/// The same from a file; its elements are read into the tensor. Blocks.
///
/// Errors: also NotFound and the other errors of `FileSystem`; the message names the path.
AnyTensor read_npy(FileSystem& files, const std::string& path);

/// The npy file of a tensor, by default in version 1, little-endian and row by row, with elements aligned to 64 bytes.
/// Strings become arrays of bytes ('S'), as long as the longest string.
///
/// Errors: InvalidArgument for bfloat16, which NumPy lacks, for an uninitialised tensor, for another version, and for
/// strings that end in a zero byte, which NumPy would cut off. ResourceExhausted if strings of very different lengths
/// would take more than `FileSystem::default_max_bytes`.
std::string to_npy(const AnyTensor& tensor, const NpyOptions& options = {});

/// The same into a file, which is written whole or not at all. Blocks.
///
/// Errors: also the errors of `FileSystem`.
void write_npy(FileSystem& files, const std::string& path, const AnyTensor& tensor, const NpyOptions& options = {});

namespace detail {

/// The tensor in an npy file of `size` bytes. `read` gives the bytes one after the other; all are read unless it
/// throws.
AnyTensor read_npy_stream(std::uint64_t size, FunctionRef<void(std::span<std::byte>)> read);

/// The type and the shape of the tensor in such a file. Only its header is read. Errors: as `parse_npy`.
struct NpyDescription {
  DType dtype = DType::invalid;
  Shape shape;
};
NpyDescription describe_npy_stream(std::uint64_t size, FunctionRef<void(std::span<std::byte>)> read);

/// Whether a file that begins with these bytes is an npy file.
bool is_npy(std::string_view start) noexcept;
inline constexpr std::size_t npy_magic_bytes = 6;

/// The two parts of the npy file of a tensor.
struct NpyParts {
  std::string header;
  AnyTensor tensor;  ///< keeps the elements, maybe in another order
  std::string text;  ///< the elements, if they are strings
  std::span<const std::byte> elements() const noexcept;
};
NpyParts npy_parts(const AnyTensor& tensor, const NpyOptions& options);

}  // namespace detail

}  // namespace dflow
