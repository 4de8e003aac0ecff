#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/batch_matmul.hpp>

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace dflow {

namespace detail {
AnyOutput any_einsum(std::string_view equation, std::span<const AnyOutput> operands, const At& at);
}  // namespace detail

/// Einstein's sum: products of elements of the operands, summed over the labels that the output lacks. A term has a
/// letter for each dimension of its operand; dimensions of one letter have one extent. `...` stands for any number of
/// dimensions, which broadcast. Without `->` the output has the dimensions of `...` and then the letters that stand
/// once, in the order of ASCII. Blanks are passed over.
///
/// ```cpp
/// df::einsum("ij,jk->ik", {a, b});       // a matrix product
/// df::einsum("...ij,...kj", {q, k});     // products of batches, the second transposed
/// df::einsum("ii", {a});                 // a trace
/// df::einsum("bi,bj,bk->bijk", {x, y, z});
/// ```
/// Operands are multiplied from the first to the last, each pair by `matmul` or `batch_matmul` where labels are summed.
/// A letter that one operand has alone is summed before.
///
/// Errors: InvalidArgument, with the equation and the position in it, if the equation is none; if the number of
/// operands, ranks or extents do not fit it; if an operand with `...` has an unknown rank.
template <AllowedFor<BatchMatMul> T>
Output<T> einsum(std::string_view equation, const std::vector<Output<T>>& operands, const At& at = {}) {
  const std::vector<AnyOutput> edges(operands.begin(), operands.end());
  return Output<T>::unchecked(detail::any_einsum(equation, edges, at));
}
template <AllowedFor<BatchMatMul> T>
Output<T> einsum(std::string_view equation, std::initializer_list<Output<T>> operands, const At& at = {}) {
  return einsum(equation, std::vector<Output<T>>(operands), at);
}

}  // namespace dflow
