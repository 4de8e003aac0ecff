#pragma once

#include <dflow/op/build.hpp>

#include <initializer_list>
#include <span>

namespace dflow {

/// Does nothing, after its control inputs.
struct NoOp : StatefulOp<"NoOp"> {
  using Inputs = In<>;
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::no_op;
  static void infer(InferContext&) {}
};

/// An operation that is done when all of `operations` are.
///
/// Errors: InvalidArgument if there are none, or they belong to different graphs.
Operation group(std::span<const Operation> operations, const At& at = {});
inline Operation group(std::initializer_list<Operation> operations, const At& at = {}) {
  return group(std::span<const Operation>(operations.begin(), operations.size()), at);
}
/// An operation that does nothing, after the control dependencies of the current scope.
Operation no_op(Graph& graph, const At& at = {});

namespace detail {
Operation no_op_after(GraphStore& graph, std::span<const Operation> operations, const At& at);
}  // namespace detail

}  // namespace dflow
