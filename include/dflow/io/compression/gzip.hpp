#pragma once

/// Public: gzip's form of compressed bytes.

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// True if the bytes begin like a gzip member (RFC 1952).
bool is_gzip(std::string_view bytes) noexcept;

/// The content of a gzip file of one or more members.
///
/// Errors: DataLoss if it is cut short or damaged; ResourceExhausted if the content exceeds `max_bytes`, before more
/// than that is allocated; Unimplemented in a library built without zlib.
std::string gunzip(std::string_view compressed, std::uint64_t max_bytes = FileSystem::default_max_bytes);

/// A whole file, unpacked if it is gzip-compressed. Blocks.
///
/// Errors: as FileSystem::read_file and gunzip; the message names the path.
std::string read_maybe_gzip(FileSystem& files, const std::string& path,
                            std::uint64_t max_bytes = FileSystem::default_max_bytes);

}  // namespace dflow
