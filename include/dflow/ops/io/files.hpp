#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// Whole files of the device's task, read and written in threads that may wait for a disk.

/// The content of a file: filename [] -> contents []. Errors: NotFound and other errors of the file system, naming the
/// file; ResourceExhausted for more than FileSystem::default_max_bytes.
struct ReadFile : StatefulOp<"ReadFile"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// Writes a file: filename [], contents []. Missing directories are made. A reader of the file finds all of the old
/// content, or all of the new. Errors: errors of the file system, naming the file.
struct WriteFile : StatefulOp<"WriteFile"> {
  using Inputs = In<std::string, std::string>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The paths of the files and directories that fit a pattern, sorted: pattern [] or [n] -> filenames [m]. If a path
/// fits several patterns, it is given once for each. Patterns are as of base/files/matching_files.hpp: `*`, `?`,
/// `[a-z]`, `\x`; none of them stands for '/'. A directory that is missing, or may not be listed, has no files.
struct MatchingFiles : StatefulOp<"MatchingFiles"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

Output<std::string> read_file(const Output<std::string>& filename, const At& at = {});
template <class A, class B>
  requires Accepts<WriteFile, A, B>
Operation write_file(const A& filename, const B& contents, const At& at = {}) {
  return apply<WriteFile>(filename, contents, {}, at);
}
/// pattern [] or [n] -> [m]
Output<std::string> matching_files(const Output<std::string>& pattern, const At& at = {});

}  // namespace dflow
