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
template <AllowedFor<Gather> T, AllowedForParam<Gather, 1> I>
Output<T> gather(const Output<T>& params, const Output<I>& indices, const At& at = {}) {
  return apply<Gather>(params, indices, {}, at);
}

namespace detail {
AnyOutput any_rows_of(const AnyOutput& table, const AnyOutput& ids, const At& at);
}  // namespace detail

/// The rows of `table` [vocabulary, width] that `ids` [...batch] name: [...batch, width]. If the table is a variable,
/// the rows are gathered on the variable's device: only ids and rows go between tasks.
///
/// Errors: as gather.
template <AllowedFor<Gather> T, AllowedForParam<Gather, 1> I>
Output<T> embedding_lookup(const Output<T>& table, const Output<I>& ids, const At& at = {}) {
  return Output<T>::unchecked(detail::any_rows_of(table, ids, at));
}

}  // namespace dflow
