#pragma once

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/sparse/sparse_indices.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <span>
#include <vector>

namespace dflow {

/// How the rows of a table that one row of ids names become one.
enum class Combiner : std::uint8_t {
  sum,    ///< the sum of rows times weights
  mean,   ///< that sum divided by the sum of the weights
  sqrtn,  ///< that sum divided by the square root of the sum of the squares of the weights
};

namespace detail {
struct SparseLookup {
  AnyOutput table = {};  ///< or shards
  std::vector<AnyVariable> shards = {};
  PartitionStrategy strategy = PartitionStrategy::mod;
  Combiner combiner = Combiner::mean;
};
/// weights: null if every id has weight 1.
AnyOutput any_embedding_lookup_sparse(const SparseLookup& lookup, const AnySparseOutput& ids,
                                      const AnySparseOutput* weights, const At& at);

template <Element T>
SparseLookup lookup_in(const std::vector<Variable<T>>& shards, Combiner combiner, PartitionStrategy strategy) {
  SparseLookup lookup{.strategy = strategy, .combiner = combiner};
  for (const Variable<T>& shard : shards) lookup.shards.push_back(shard.any_variable());
  return lookup;
}
}  // namespace detail

/// One vector for each row of sparse ids: `ids` [batch, longest] of any longest, int32 or int64, names rows of a table
/// [vocabulary, width...]; the rows that one row of ids names are combined. Gives [batch, width...], with zeros where a
/// row has no ids, or weights whose sum is 0. `weights` have the indices of the ids.
///
/// ```cpp
/// auto bags = df::embedding_lookup_sparse(table, words, df::Combiner::sqrtn);
/// auto weighted = df::embedding_lookup_sparse(shards, words, weights);
/// ```
/// Ids are in row-major order, as parse_example and sparse_reorder give them. The gradient of the table is
/// IndexedSlices of the rows that were read. Where the table is one variable and there are no weights, rows are
/// combined on the variable's device, and none is copied.
///
/// Errors: InvalidArgument, as `embedding_lookup`; in the step, naming the position, for an id outside of [0,
/// vocabulary), for rows of ids that decrease, for a row of ids outside of the dense shape and for another number of
/// weights than of ids.
template <class A, Element I>
  requires Accepts<Gather, A, Output<I>> && contains_v<ElementFor<Gather, A, Output<I>>, FloatTypes>
Output<ElementFor<Gather, A, Output<I>>> embedding_lookup_sparse(const A& table, const SparseOutput<I>& ids,
                                                                 Combiner combiner = Combiner::mean,
                                                                 const At& at = {}) {
  return Output<ElementFor<Gather, A, Output<I>>>::unchecked(detail::any_embedding_lookup_sparse(
      {.table = detail::edges_for<Gather>(at, table, ids.values)[0], .combiner = combiner}, ids, nullptr, at));
}
template <class A, Element I, Element W>
  requires Accepts<Gather, A, Output<I>> && contains_v<ElementFor<Gather, A, Output<I>>, FloatTypes> &&
           contains_v<W, FloatTypes>
Output<ElementFor<Gather, A, Output<I>>> embedding_lookup_sparse(const A& table, const SparseOutput<I>& ids,
                                                                 const SparseOutput<W>& weights,
                                                                 Combiner combiner = Combiner::mean,
                                                                 const At& at = {}) {
  const detail::AnySparseOutput given = weights;
  return Output<ElementFor<Gather, A, Output<I>>>::unchecked(detail::any_embedding_lookup_sparse(
      {.table = detail::edges_for<Gather>(at, table, ids.values)[0], .combiner = combiner}, ids, &given, at));
}
/// The same of a table in shards, as `embedding_lookup`.
template <Element T, Element I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> embedding_lookup_sparse(const std::vector<Variable<T>>& shards, const SparseOutput<I>& ids,
                                  Combiner combiner = Combiner::mean,
                                  PartitionStrategy strategy = PartitionStrategy::mod, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_embedding_lookup_sparse(detail::lookup_in(shards, combiner, strategy), ids, nullptr, at));
}
template <Element T, Element I, Element W>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes> && contains_v<W, FloatTypes>
Output<T> embedding_lookup_sparse(const std::vector<Variable<T>>& shards, const SparseOutput<I>& ids,
                                  const SparseOutput<W>& weights, Combiner combiner = Combiner::mean,
                                  PartitionStrategy strategy = PartitionStrategy::mod, const At& at = {}) {
  const detail::AnySparseOutput given = weights;
  return Output<T>::unchecked(
      detail::any_embedding_lookup_sparse(detail::lookup_in(shards, combiner, strategy), ids, &given, at));
}

}  // namespace dflow
