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

/// The rows of `table` [vocabulary, width] that `ids` [...batch] name: [...batch, width].
///
/// Errors: as gather.
template <AllowedFor<Gather> T, AllowedForParam<Gather, 1> I>
Output<T> embedding_lookup(const Output<T>& table, const Output<I>& ids, const At& at = {}) {
  return gather(table, ids, at);
}

}  // namespace dflow
