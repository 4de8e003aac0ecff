#pragma once

/// Public: tensors from IDX files, the form of MNIST.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace dflow {

/// The tensor in an IDX file (LeCun, Cortes, Burges, "The MNIST database"). The file has two zero bytes, element type,
/// rank, the extents as 32-bit numbers, then the elements in row-major order, all big-endian. Elements are uint8,
/// int8, int16, int32, float or double.
///
/// Errors: DataLoss if the magic number is another or the rank exceeds `max_rank`. DataLoss also if the extents
/// multiply past the size of the file, or the file has fewer or more bytes than they say. Nothing is allocated before
/// that is known.
AnyTensor parse_idx(std::span<const std::byte> bytes);

/// The same from a file, which may be gzip-compressed. Blocks.
///
/// Errors: also NotFound and the others of `FileSystem`; the message names the path.
AnyTensor read_idx(FileSystem& files, const std::string& path);

}  // namespace dflow
