#pragma once

#include <dflow/op/import.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/one_hot.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/state/update.hpp>
#include <dflow/ops/state/variable.hpp>

#include <array>
#include <cstdlib>
#include <source_location>

/// Imports a graph that a fuzz target has read; a graph that imports must come back unchanged.
namespace dflow::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// Definitions alone: an import makes no kernel.
template <class... Ops>
OpTable definitions() {
  static const auto sorted = [] {
    std::array<const OpDef*, sizeof...(Ops)> ops{&op_def<Ops>...};
    detail::sort_by_name(ops, [](const OpDef* op) { return op->name; });
    return ops;
  }();
  return {sorted, {}};
}

inline const OpTable& table() {
  static const OpTable ops = definitions<Const, Placeholder, Identity, ZerosLike, ShapeOf, RankOf, SizeOf, NoOp, MatMul,
                                         Reshape, Concat, ConcatOffset, Split, Pack, Unpack, Fill, Range, OneHot,
                                         Gather, VariableOp, ReadVariable, Assign, AssignAdd>();
  return ops;
}

inline void import(const GraphDef& def) {
  ImportOptions options;
  options.max_list_outputs = 1 << 12;
  const auto here = std::source_location::current();  // one place for both imports, which note it in their nodes
  GraphDef once;
  try {
    once = to_graph_def(import_graph(def, table(), options, here));
  } catch (const Error& error) {
    require(error.code() == Code::invalid_argument);
    return;
  }
  require(to_graph_def(import_graph(once, table(), options, here)) == once);
}

}  // namespace dflow::fuzz
