#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A name fits a pattern: `*` stands for any characters, `?` for one, `[a-z]` for one of a set, `[^a-z]` or `[!a-z]`
/// for one that is not in it, `\x` for x itself, and anything else for itself. A set that does not end fits nothing.
/// Takes time in proportion to the product of both lengths.
bool matches(std::string_view name, std::string_view pattern) noexcept;

/// The files and directories whose paths fit a pattern, sorted; between two '/' it is as of `matches`. Names that begin
/// with a dot are like others. What may not be listed, or is not there, has none. Behind a wildcard ".." fits nothing,
/// as in TensorFlow: in the directories that fit there is no such name. Blocks.
///
/// Errors: those of FileSystem but NotFound, PermissionDenied and FailedPrecondition.
std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern);

}  // namespace dflow
