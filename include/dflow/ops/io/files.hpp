#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <string>
#include <string_view>

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

/// A tensor whose elements are the first bytes of a file, in row-major order and in the order of bytes of this machine:
/// -> shape. A kernel reads the file at its first run and keeps the tensor: the file must not change.
struct ImmutableConst : StandardOp<"ImmutableConst", PlainTypes> {
  struct Attrs {
    PartialShape shape;
    std::string memory_region_name = {};  ///< the file's path, on the device's task
  };
  using Inputs = In<>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

Output<std::string> read_file(const Output<std::string>& filename, const At& at = {});
template <class A, class B>
  requires Accepts<WriteFile, A, B>
Operation write_file(const A& filename, const B& contents, const At& at = {}) {
  return apply<WriteFile>(filename, contents, {}, at);
}
/// A constant of a file: `shape` elements of type T, as they lie in memory. Unlike a `constant` it is no part of the
/// graph, of its file, or of what a client sends to a master. Large weights that do not change are meant for it.
///
/// Errors: in the step NotFound and other errors of the file system, naming the file; DataLoss for a file that is too
/// short, and for a bool that is neither 0 nor 1.
template <AllowedFor<ImmutableConst> T>
Output<T> immutable_const(Graph& graph, const Shape& shape, std::string_view path, const At& at = {}) {
  return Output<T>::unchecked(build<ImmutableConst>(*graph.store(), {},
                                                    {.shape = shape, .memory_region_name = std::string(path)}, at,
                                                    detail::one_type(dtype_of<T>)));
}
/// pattern [] or [n] -> [m]
Output<std::string> matching_files(const Output<std::string>& pattern, const At& at = {});

}  // namespace dflow
