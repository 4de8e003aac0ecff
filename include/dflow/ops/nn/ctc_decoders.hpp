#pragma once

#include <dflow/ops/nn/ctc.hpp>

#include <vector>

namespace dflow {

/// The most likely class of each time step, with blanks left out: inputs [max_time, batch, classes], sequence_length
/// [batch] -> the labels of each item as a sparse matrix, and minus the sum of the chosen inputs, [batch, 1].
struct CTCGreedyDecoder : StandardOp<"CTCGreedyDecoder", CtcTypes> {
  struct Attrs {
    bool merge_repeated = false;  ///< a run of one class is one label
  };
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<std::int64_t, std::int64_t, std::int64_t, T>;
  static void infer(InferContext& context);
};

/// The most likely sequences of labels that a beam search finds: inputs [max_time, batch, classes], logits,
/// sequence_length [batch] -> indices, values and shapes of top_paths sparse matrices, and the logarithms of the
/// probabilities, [batch, top_paths].
struct CTCBeamSearchDecoder : StandardOp<"CTCBeamSearchDecoder", CtcTypes> {
  /// Bounds the memory of a search: it keeps at most beam_width prefixes for each time step.
  static constexpr std::int64_t max_beam_width = std::int64_t{1} << 20;
  struct Attrs {
    std::int64_t beam_width = 100;  ///< the sequences kept from one time step to the next
    std::int64_t top_paths = 1;     ///< the sequences that are given, at most beam_width
    bool merge_repeated = true;     ///< equal labels that follow one another in a result are given once
  };
  using Inputs = In<T, std::int32_t>;
  using Outputs =
      Out<List<std::int64_t, "top_paths">, List<std::int64_t, "top_paths">, List<std::int64_t, "top_paths">, T>;
  static void infer(InferContext& context);
};

/// The result of ctc_greedy_decoder.
template <Element T>
struct GreedyPath {
  SparseOutput<std::int64_t> decoded;  ///< a row of labels for each item
  Output<T> neg_sum_logits;            ///< [batch, 1]
};

/// The result of ctc_beam_search_decoder.
template <Element T>
struct BeamPaths {
  std::vector<SparseOutput<std::int64_t>> decoded;  ///< the best sequences of all items, then the second best ones
  Output<T> log_probability;                        ///< [batch, top_paths]
};

namespace detail {
SparseOutput<std::int64_t> decoded_labels(const BuiltNode& node, int path, int paths);
}  // namespace detail

/// The labels of the most likely path. inputs: [max_time, batch, classes], float or double, of which the last class is
/// the blank; sequence_length: int32 [batch], in [0, max_time]. Among equal inputs the first class counts.
///
/// ```cpp
/// auto [decoded, score] = df::ctc_greedy_decoder(logits, lengths, {.merge_repeated = true});
/// ```
/// Errors: InvalidArgument if the shapes do not fit; in the step, with the position, for a length out of range.
template <class A, class B>
  requires Accepts<CTCGreedyDecoder, A, B>
GreedyPath<ElementFor<CTCGreedyDecoder, A, B>> ctc_greedy_decoder(const A& inputs, const B& sequence_length,
                                                                  CTCGreedyDecoder::Attrs attrs = {},
                                                                  const At& at = {}) {
  const BuiltNode node = build<CTCGreedyDecoder>(
      std::span<const AnyOutput>(detail::edges_for<CTCGreedyDecoder>(at, inputs, sequence_length)), attrs, at);
  return {detail::decoded_labels(node, 0, 1), Output<ElementFor<CTCGreedyDecoder, A, B>>::unchecked(node.output(3))};
}

/// The most likely sequences of labels, each the sum over its paths, by a search that keeps `beam_width` prefixes
/// (Graves 2012, "Supervised Sequence Labelling", 7.5). It is exact if the beam holds all prefixes. inputs: logits
/// [max_time, batch, classes], float or double, of which the last class is the blank; sequence_length: int32 [batch],
/// in [0, max_time]. Among equally likely prefixes those that were found first stay. `merge_repeated` makes "aab" of
/// "aab" and of "ab" the same result "ab"; it is true by default, as in TensorFlow.
///
/// ```cpp
/// auto [decoded, scores] = df::ctc_beam_search_decoder(logits, lengths, {.beam_width = 50, .top_paths = 3});
/// ```
/// Errors: InvalidArgument if the shapes do not fit, for top_paths below 1, and for a beam_width below top_paths or
/// above 2^20. In the step, InvalidArgument with the position for a length out of range, for logits without a softmax,
/// and for an item of fewer possible sequences than top_paths.
template <class A, class B>
  requires Accepts<CTCBeamSearchDecoder, A, B>
BeamPaths<ElementFor<CTCBeamSearchDecoder, A, B>> ctc_beam_search_decoder(const A& inputs, const B& sequence_length,
                                                                          CTCBeamSearchDecoder::Attrs attrs = {},
                                                                          const At& at = {}) {
  const int paths = static_cast<int>(attrs.top_paths);
  const BuiltNode node = build<CTCBeamSearchDecoder>(
      std::span<const AnyOutput>(detail::edges_for<CTCBeamSearchDecoder>(at, inputs, sequence_length)), attrs, at);
  BeamPaths<ElementFor<CTCBeamSearchDecoder, A, B>> result;
  for (int p = 0; p < paths; ++p) result.decoded.push_back(detail::decoded_labels(node, p, paths));
  result.log_probability = Output<ElementFor<CTCBeamSearchDecoder, A, B>>::unchecked(node.output(3 * paths));
  return result;
}

}  // namespace dflow
