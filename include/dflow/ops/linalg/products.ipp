#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/products.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <array>
#include <initializer_list>
#include <vector>

namespace dflow {

AnyOutput detail::any_cross(const AnyOutput& a, const AnyOutput& b, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{a, b}, "Cross", at);
  const Composite place(graph, at.where);
  const auto parts = [](const AnyOutput& x) {
    std::vector<Expr> all;
    for (const AnyOutput& part : any_unpack(x, 3, -1)) all.emplace_back(part);
    return all;
  };
  const std::vector<Expr> x = parts(a), y = parts(b);
  const std::array<AnyOutput, 3> product{x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2],
                                         x[0] * y[1] - x[1] * y[0]};
  return build<Pack>(std::span<const AnyOutput>(product), {.axis = -1}, at);
}

AnyOutput detail::any_trace(const AnyOutput& x, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, "trace", at);
  const Composite place(graph, at.where);
  return build<Sum>({build<MatrixDiagPart>({x}), int32_constant(graph, -1)}, {}, at);
}

}  // namespace dflow
