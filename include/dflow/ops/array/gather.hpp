#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Rows `indices` of params. Its gradient by params is IndexedSlices: only the rows that were read have one.
struct Gather : StandardOp<"Gather", AllTypes, IndexTypes> {
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"Tparams", "Tindices"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// params: [limit, ...row], indices: [...batch] gives [...batch, ...row].
///
/// Errors: InvalidArgument if params is a scalar; in the step, naming position and range, if an index is outside
/// [0, limit).
template <class A, class B>
  requires Accepts<Gather, A, B>
Output<ElementFor<Gather, A, B>> gather(const A& params, const B& indices, const At& at = {}) {
  return apply<Gather>(params, indices, {}, at);
}

namespace detail {
AnyOutput any_rows_of(const AnyOutput& table, const AnyOutput& ids, const At& at);
}  // namespace detail

/// The rows of `table` [vocabulary, width] that `ids` [...batch] name: [...batch, width]. If the table is a variable,
/// the rows are gathered on the variable's device: only ids and rows go between tasks.
///
/// Errors: as gather.
template <class A, class B>
  requires Accepts<Gather, A, B>
Output<ElementFor<Gather, A, B>> embedding_lookup(const A& table, const B& ids, const At& at = {}) {
  const auto edges = detail::edges_for<Gather>(at, table, ids);
  return Output<ElementFor<Gather, A, B>>::unchecked(detail::any_rows_of(edges[0], edges[1], at));
}

}  // namespace dflow
