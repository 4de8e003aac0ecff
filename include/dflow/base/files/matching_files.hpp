#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Whether a name fits a pattern. `*` stands for any characters, `?` for one character. `[a-z]` stands for a character
/// of a set, `[^a-z]` or `[!a-z]` for a character that is not in it. `\x` stands for x itself, and anything else for
/// itself. A set that does not end fits nothing. Takes time in proportion to the product of both lengths.
bool matches(std::string_view name, std::string_view pattern) noexcept;

/// The files and directories with paths that fit a pattern, sorted. Each part between two '/' fits as in `matches`.
/// Names that begin with a dot are like others. A directory that is missing or may not be listed has no files. Behind
/// a wildcard ".." fits nothing, as in TensorFlow: the directories that fit have no entry of that name. Blocks.
///
/// Errors: the errors of FileSystem except NotFound, PermissionDenied and FailedPrecondition.
std::vector<std::string> matching_files(FileSystem& files, const std::string& pattern);

}  // namespace dflow
