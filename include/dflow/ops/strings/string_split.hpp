#pragma once

#include <dflow/ops/sparse_output.hpp>
#include <dflow/ops/strings/string_op.hpp>

#include <string>

namespace dflow {

/// The parts of each text, as a sparse matrix with a row per text: input [n], delimiter [] -> indices [parts, 2],
/// values [parts], shape [2] = [n, most parts]. Each character of the delimiter ends a part. With an empty delimiter,
/// each byte is a part. An empty text has no parts.
struct StringSplit : TextOp<"StringSplit"> {
  struct Attrs {
    bool skip_empty = true;
  };
  using Inputs = In<std::string, std::string>;
  using Outputs = Out<std::int64_t, std::string, std::int64_t>;
  static void infer(InferContext& context);
};

/// The same with the separator as a whole, as in Python's `str.split`. An empty separator stands for any run of white
/// space; spaces in front are then ignored. With any other separator, empty parts count.
struct StringSplitV2 : TextOp<"StringSplitV2"> {
  struct Attrs {
    std::int64_t maxsplit = -1;  ///< the most parts to split off, the rest stays whole; below 0: all
  };
  using Inputs = In<std::string, std::string>;
  using Outputs = Out<std::int64_t, std::string, std::int64_t>;
  static void infer(InferContext& context);
};

namespace detail {
SparseOutput<std::string> split_of(const BuiltNode& node);
}  // namespace detail

/// input: [n], delimiter: a scalar.
///
/// ```cpp
/// auto words = df::string_split(lines, " ,");   // words.values: [words]
/// ```
/// Errors: InvalidArgument for other ranks.
template <class A, class B>
  requires Accepts<StringSplit, A, B>
SparseOutput<std::string> string_split(const A& input, const B& delimiter, StringSplit::Attrs attrs = {},
                                       const At& at = {}) {
  return detail::split_of(
      build<StringSplit>(std::span<const AnyOutput>(detail::edges_for<StringSplit>(at, input, delimiter)), attrs, at));
}
/// The same, split at spaces.
SparseOutput<std::string> string_split(const Output<std::string>& input, StringSplit::Attrs attrs = {},
                                       const At& at = {});

/// input: [n], separator: a scalar. Errors: as of string_split.
template <class A, class B>
  requires Accepts<StringSplitV2, A, B>
SparseOutput<std::string> string_split_v2(const A& input, const B& separator, StringSplitV2::Attrs attrs = {},
                                          const At& at = {}) {
  return detail::split_of(build<StringSplitV2>(
      std::span<const AnyOutput>(detail::edges_for<StringSplitV2>(at, input, separator)), attrs, at));
}
/// The same, split at white space.
SparseOutput<std::string> string_split_v2(const Output<std::string>& input, StringSplitV2::Attrs attrs = {},
                                          const At& at = {});

}  // namespace dflow
