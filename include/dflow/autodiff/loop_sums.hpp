#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/op/build.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Sums over the iterations of a loop that is being built. Nothing reads a sum before the end of the loop; each sum is
/// a variable of the loop, in the type `sum_type` of its terms' elements. Some terms are products of matrices a^T b,
/// a: [n, k], b: [n, m], as gradients with respect to weights are. They become one product after the loop, of the rows
/// of all iterations. It takes as many multiplications, and a copy of all rows instead of reading and writing [k, m] in
/// each iteration. A term stays in the loop unless it is known that n (k + m) <= k m: an iteration then keeps no more
/// than it would add.
///
/// Thread safety: builds; see Graph.
class LoopSums {
 public:
  explicit LoopSums(GraphStore& graph) : graph_(graph) {}

  /// In the body: the next value of `variable`, which is sum number `i`.
  AnyOutput add(std::size_t i, const AnyOutput& variable, const AnyOutput& term);
  /// Beside the loop: the sum of all terms. `variable` is the part of the sum that has come out of the loop.
  AnyOutput total(std::size_t i, const BuiltNode& loop, const AnyOutput& variable);

 private:
  struct Sum {
    std::vector<NodeId> products;  ///< nodes of the body that do not run
    bool has_rest = false;         ///< of all other terms
  };

  bool is_product_of_rows(Endpoint term) const;
  AnyOutput product_of_all(NodeId product, const BuiltNode& loop);
  AnyOutput all_rows(Endpoint factor, const BuiltNode& loop);

  GraphStore& graph_;
  std::map<std::size_t, Sum> sums_;
  std::map<std::pair<NodeId, std::int32_t>, AnyOutput> all_rows_;  ///< by the edge of the body
};

}  // namespace dflow::detail
