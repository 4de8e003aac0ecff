#pragma once

#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/strings/string_op.hpp>

#include <initializer_list>
#include <span>
#include <string>

namespace dflow {

/// Joins the texts of N inputs, elementwise, in the order of the inputs.
struct StringJoin : TextOp<"StringJoin"> {
  struct Attrs {
    std::int64_t N = 1;
    std::string separator = {};
  };
  using Inputs = In<List<std::string, "N">>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// Joins the texts along some dimensions. The first dimension that `reduction_indices` names runs fastest.
struct ReduceJoin : TextOp<"ReduceJoin"> {
  struct Attrs {
    bool keep_dims = false;
    std::string separator = {};
  };
  using Inputs = In<std::string, std::int32_t>;
  using Outputs = Out<std::string>;
  static void infer(InferContext& context);
};

/// inputs: texts of one shape, or scalars. A scalar counts for every element of the others. The result has the same
/// shape.
///
/// ```cpp
/// auto path = df::string_join({folder, name}, "/");   // [], [n] to [n]
/// ```
/// Errors: InvalidArgument for inputs of different shapes, or none.
Output<std::string> string_join(std::span<const Output<std::string>> inputs, std::string separator = {},
                                const At& at = {});
inline Output<std::string> string_join(std::initializer_list<Output<std::string>> inputs, std::string separator = {},
                                       const At& at = {}) {
  return string_join(std::span(inputs.begin(), inputs.size()), std::move(separator), at);
}

/// inputs [d0, ..., dn] without the dimensions `axes`, or with 1 in their place. A dimension of extent 0 gives an empty
/// text. The first axis in `axes` runs fastest: [[a, b], [c, d]] gives "abcd" with {1, 0}, and "acbd" with {0, 1}.
///
/// Errors: InvalidArgument for an axis outside [-rank, rank), or named twice.
Output<std::string> reduce_join(const Output<std::string>& inputs, const IndexList& axes, ReduceJoin::Attrs attrs = {},
                                const At& at = {});

}  // namespace dflow
