#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// Whole files of the device's task, read and written in threads that may wait for a disk.

/// What is in a file: filename [] -> contents []. Errors: NotFound and others of the file system, naming the file;
/// ResourceExhausted for more than FileSystem::default_max_bytes.
struct ReadFile : StatefulOp<"ReadFile"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// Writes a file: filename [], contents []. Directories that are missing are made; who reads it finds what was there
/// before, or all of the new. Errors: those of the file system, naming the file.
struct WriteFile : StatefulOp<"WriteFile"> {
  using Inputs = In<std::string, std::string>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The paths of what is there, sorted: pattern [] or [n] -> filenames [m]. Of several patterns a path is given as often
/// as it fits one. Patterns are those of base/files/matching_files.hpp: `*`, `?`, `[a-z]`, `\x`, none of which stands
/// for '/'. What may not be listed, or is not there, has no files.
struct MatchingFiles : StatefulOp<"MatchingFiles"> {
  using Inputs = In<std::string>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

Output<std::string> read_file(const Output<std::string>& filename, const At& at = {});
Operation write_file(const Output<std::string>& filename, const Output<std::string>& contents, const At& at = {});
/// pattern [] or [n] -> [m]
Output<std::string> matching_files(const Output<std::string>& pattern, const At& at = {});

}  // namespace dflow
