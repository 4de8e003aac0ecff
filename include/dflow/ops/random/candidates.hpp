#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Some of very many classes, drawn for a loss that cannot afford them all (Jean et al. 2014).
struct CandidateAttrs {
  std::int64_t num_true = 1;     ///< classes that an example has
  std::int64_t num_sampled = 1;  ///< candidates that a run draws
  bool unique = true;            ///< no candidate is drawn twice
  std::int64_t range_max = 1;    ///< the classes are [0, range_max)
  std::int64_t seed = 0;         ///< as of RandomAttrs
  std::int64_t seed2 = 0;
};

namespace detail {
void infer_candidates(InferContext& context, std::int64_t num_true, std::int64_t num_sampled);
void infer_candidates(InferContext& context, const CandidateAttrs& attrs);
/// num_true, the known width of true_classes. Errors: InvalidArgument if it is not known.
std::int64_t width_of_classes(const AnyOutput& classes, std::string_view op, const At& at);
}  // namespace detail

/// The base of candidate samplers: true_classes [batch, num_true] -> sampled_candidates [num_sampled],
/// true_expected_count [batch, num_true] and sampled_expected_count [num_sampled], which say how often the sampler is
/// expected to draw each of these classes in a run. If candidates repeat, that is the probability times num_sampled. If
/// they do not, it is the probability to draw the class at all, 1 - (1 - p)^tries, where `tries` numbers were drawn.
///
/// For the same two seeds the candidates are TensorFlow's.
template <FixedString Name>
struct CandidateSampler : StatefulOp<Name> {
  using Attrs = CandidateAttrs;
  using Inputs = In<std::int64_t>;
  using Outputs = Out<std::int64_t, float, float>;
  static void infer(InferContext& context) {
    detail::infer_candidates(context, context.template attrs<CandidateSampler>());
  }
};

/// All classes are equally likely.
struct UniformCandidateSampler : CandidateSampler<"UniformCandidateSampler"> {};
/// Class i has the probability log((i + 2) / (i + 1)) / log(range_max + 1), for classes in the order of their
/// frequencies.
struct LogUniformCandidateSampler : CandidateSampler<"LogUniformCandidateSampler"> {};
/// A class is as likely as the number of times that it was a true class before, plus 1. The session keeps the
/// counts: they begin anew with each session.
struct LearnedUnigramCandidateSampler : CandidateSampler<"LearnedUnigramCandidateSampler"> {};
/// The same. Runs at once are safe here.
struct ThreadUnsafeUnigramCandidateSampler : CandidateSampler<"ThreadUnsafeUnigramCandidateSampler"> {};

/// The probabilities are given, as `unigrams` or as the last column of a file whose columns end with commas.
struct FixedUnigramCandidateSampler : StatefulOp<"FixedUnigramCandidateSampler"> {
  struct Attrs {
    std::int64_t num_true = 1;
    std::int64_t num_sampled = 1;
    bool unique = true;
    std::int64_t range_max = 1;
    std::string vocab_file = {};        ///< a file of the device, with a line for each class; empty: unigrams
    float distortion = 1;               ///< the weights are raised to this power
    std::int64_t num_reserved_ids = 0;  ///< classes in front that have no weight and are not drawn
    std::int64_t num_shards = 1;        ///< the classes are those with id % num_shards = shard
    std::int64_t shard = 0;
    std::vector<double> unigrams = {};  ///< the weights of the classes behind the reserved ones
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  using Inputs = In<std::int64_t>;
  using Outputs = Out<std::int64_t, float, float>;
  static void infer(InferContext& context);
};

/// The classes 0 to num_sampled - 1, each once, with expected counts of 1.
struct AllCandidateSampler : StatefulOp<"AllCandidateSampler"> {
  struct Attrs {
    std::int64_t num_true = 1;
    std::int64_t num_sampled = 1;
    bool unique = true;
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  using Inputs = In<std::int64_t>;
  using Outputs = Out<std::int64_t, float, float>;
  static void infer(InferContext& context);
};

/// The candidates that are true classes: true_classes [batch, num_true], sampled_candidates [num_sampled] -> for each
/// pair of a true class and a candidate that is the same class the row of the batch, the position of the candidate, and
/// the lowest finite float, [hits] each. Of candidates that repeat the last one is found.
struct ComputeAccidentalHits : StandardOp<"ComputeAccidentalHits"> {
  struct Attrs {
    std::int64_t num_true = 1;
    std::int64_t seed = 0;  ///< without effect, as `seed2`: graphs of TensorFlow have them
    std::int64_t seed2 = 0;
  };
  using Inputs = In<std::int64_t, std::int64_t>;
  using Outputs = Out<std::int32_t, std::int64_t, float>;
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The candidates of a run and how often each class is expected among them.
struct Candidates {
  Output<std::int64_t> sampled_candidates;  ///< [num_sampled]
  Output<float> true_expected_count;        ///< [batch, num_true]
  Output<float> sampled_expected_count;     ///< [num_sampled]
};

struct CandidateOptions {
  std::int64_t num_sampled = 1;
  std::int64_t range_max = 1;  ///< the number of classes
  bool unique = true;          ///< no candidate is drawn twice
  std::uint64_t seed = 0;      ///< 0: from the graph's seed, or another seed on each device
};

/// The weights of `fixed_unigram_candidate_sampler`.
struct UnigramOptions {
  std::vector<double> unigrams = {};  ///< of the classes behind the reserved ones; not negative
  std::string vocab_file = {};        ///< instead: a file of the device, whose lines end with a comma and a weight
  float distortion = 1;               ///< the weights are raised to this power
  std::int64_t num_reserved_ids = 0;  ///< classes in front that have no weight and are not drawn
  std::int64_t num_shards = 1;        ///< the classes are those with id % num_shards = shard, numbered anew
  std::int64_t shard = 0;
};

// Candidate samplers: true_classes [batch, num_true], each in [0, range_max), with a known num_true. The candidates do
// not depend on them. They are drawn anew in each step, and no gradient goes through them.
//
// ```cpp
// auto drawn = df::log_uniform_candidate_sampler(labels, {.num_sampled = 64, .range_max = 50'000});
// ```
// Errors: InvalidArgument if true_classes is no matrix of known width, for a num_sampled or range_max below 1, and for
// more unique candidates than there are classes; in the step, with the position, for a true class outside of the range.

/// All classes are equally likely.
Candidates uniform_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                     const At& at = {});
/// Class i has the probability log((i + 2) / (i + 1)) / log(range_max + 1), near to that of words in the order of their
/// frequencies.
Candidates log_uniform_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                         const At& at = {});
/// A class is as likely as the number of times that it was among true_classes in the session, plus 1.
Candidates learned_unigram_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                             const At& at = {});
/// A class is as likely as its weight says. A file is read when the first step with the sampler is prepared.
///
/// Errors: also InvalidArgument if neither or both of weights and file are given; for a weight that is negative or not
/// finite, with its position or line; if there are not range_max weights with those that are reserved; for fewer
/// classes that can be drawn than unique candidates. In the step also those of the file system.
Candidates fixed_unigram_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                           const UnigramOptions& unigrams, const At& at = {});
/// The classes 0 to num_sampled - 1, each once, with expected counts of 1: a loss over all classes.
Candidates all_candidate_sampler(const Output<std::int64_t>& true_classes, std::int64_t num_sampled, const At& at = {});

/// The result of `compute_accidental_hits`, [hits] each.
struct AccidentalHits {
  Output<std::int32_t> indices;  ///< rows of the batch, ascending
  Output<std::int64_t> ids;      ///< positions of candidates
  Output<float> weights;         ///< the lowest finite float, to be added to the logit of the candidate
};

/// The candidates [num_sampled] that are true classes of a row of true_classes [batch, num_true], which has a known
/// num_true. Of candidates that repeat the last one is found, as in TensorFlow.
///
/// Errors: InvalidArgument if the shapes do not fit.
AccidentalHits compute_accidental_hits(const Output<std::int64_t>& true_classes,
                                       const Output<std::int64_t>& sampled_candidates, const At& at = {});

}  // namespace dflow
