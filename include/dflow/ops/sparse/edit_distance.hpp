#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/sparse_output.hpp>

namespace dflow {

/// The Levenshtein distances of the sequences along the last dimension of two sparse tensors: hypothesis_indices
/// [n, rank], hypothesis_values [n], hypothesis_shape [rank], and the same of the truth. Gives a tensor of the larger
/// of both extents in all dimensions but the last.
struct EditDistance : StandardOp<"EditDistance", AllTypes> {
  struct Attrs {
    bool normalize = true;  ///< divide by the length of the truth
  };
  using Inputs = In<std::int64_t, T, std::int64_t, std::int64_t, T, std::int64_t>;
  using Outputs = Out<float>;
  static void infer(InferContext& context);
};

/// The least number of insertions, deletions and replacements that make each sequence of `truth` of the one of
/// `hypothesis` at its place (Levenshtein 1966), as TensorFlow's edit_distance. Both have one rank of at least 2, and a
/// sequence for each place in all dimensions but the last. Elements that are not there are no part of a sequence.
/// Elements are equal if == says so. Normalized distances are infinite for a hypothesis without a truth, 1 for a truth
/// without a hypothesis, and 0 where neither has elements.
///
/// ```cpp
/// auto [decoded, score] = df::ctc_greedy_decoder(logits, lengths);
/// auto errors = df::reduce_mean(df::edit_distance(decoded, truth));   // truth: df::SparseOutput<std::int64_t>
/// ```
/// Errors: InvalidArgument if the shapes or the ranks do not fit; in the step, with the position, for an index out of
/// the dense shape, and for indices that are not in row-major order, each once.
template <AllowedFor<EditDistance> T>
Output<float> edit_distance(const SparseOutput<T>& hypothesis, const SparseOutput<T>& truth,
                            EditDistance::Attrs attrs = {}, const At& at = {}) {
  return Output<float>::unchecked(build<EditDistance>(
      {hypothesis.indices, hypothesis.values, hypothesis.dense_shape, truth.indices, truth.values, truth.dense_shape},
      attrs, at));
}

}  // namespace dflow
