#pragma once

#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstddef>
#include <string_view>

namespace dflow {

/// Names the kind of a file by its first bytes. Readers of other formats often get such files by mistake: a pointer of
/// Git LFS, a web page, an archive. Empty if the bytes begin no such file.
std::string_view kind_of_file(std::string_view start) noexcept;

/// How many bytes of a file `kind_of_file` needs.
inline constexpr std::size_t file_kind_bytes = 256;

/// Adds the kind of the file that begins with `start` to `error`, the error of a reader of another kind. The code stays
/// the same. If no kind is known, the result is `error`.
Status with_kind_of_file(const Status& error, std::string_view start) noexcept;
/// The same; the file is read only if there is an error. Blocks.
Status with_kind_of_file(const Status& error, const RandomAccessFile& file) noexcept;
/// The same; leaves the source at another position.
Status with_kind_of_file(const Status& error, ByteSource& source) noexcept;

}  // namespace dflow
