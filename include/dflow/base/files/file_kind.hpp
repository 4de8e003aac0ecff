#pragma once

#include <dflow/base/files/byte_source.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/status.hpp>

#include <cstddef>
#include <string_view>

namespace dflow {

/// What a file is that begins with these bytes, for readers of other formats that are often given it by mistake: a
/// pointer of Git LFS, a web page, an archive. Empty if the start is of none of these.
std::string_view kind_of_file(std::string_view start) noexcept;

/// How many bytes of a file `kind_of_file` needs.
inline constexpr std::size_t file_kind_bytes = 256;

/// `error` is why a reader cannot read a file that begins with `start`. If the file is of another kind, the result has
/// the same code and says which kind; else the result is `error`.
Status with_kind_of_file(const Status& error, std::string_view start) noexcept;
/// The same; the file is read only if there is an error. Blocks.
Status with_kind_of_file(const Status& error, const RandomAccessFile& file) noexcept;
/// The same; leaves the source at another position.
Status with_kind_of_file(const Status& error, ByteSource& source) noexcept;

}  // namespace dflow
