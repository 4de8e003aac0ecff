#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/random/candidates.hpp>

#include <cmath>
#include <utility>

namespace dflow {

namespace detail {

void infer_candidates(InferContext& context, std::int64_t num_true, std::int64_t num_sampled) {
  const PartialShape classes = context.with_rank(0, 2);
  if (num_true < 1) context.fail(str_cat("num_true = ", num_true, " is below 1"));
  if (num_sampled < 1) context.fail(str_cat("num_sampled = ", num_sampled, " is below 1"));
  context.set_output(0, PartialShape{num_sampled});
  context.set_output(1, PartialShape{classes[0], context.merge_dim(classes[1], num_true)});
  context.set_output(2, PartialShape{num_sampled});
}

void infer_candidates(InferContext& context, const CandidateAttrs& attrs) {
  if (attrs.range_max < 1) context.fail(str_cat("range_max = ", attrs.range_max, ": there are no classes"));
  infer_candidates(context, attrs.num_true, attrs.num_sampled);
  if (attrs.unique && attrs.num_sampled > attrs.range_max) {
    context.fail(str_cat("num_sampled = ", attrs.num_sampled,
                         " unique candidates are more than range_max = ", attrs.range_max, " classes"));
  }
}

std::int64_t width_of_classes(const AnyOutput& classes, std::string_view op, const At& at) {
  static_cast<void>(graph_of({&classes, 1}, op, at));
  const PartialShape& shape = classes.shape();
  if (shape.has_rank() && shape.rank() == 2 && shape[1] != dynamic) return shape[1];
  throw_error(Status::invalid_argument(
                  str_cat("true_classes must be [batch, num_true] with a known num_true, got ", shape.to_string()))
                  .with_node(op, at.name)
                  .with_location(at.where));
}

Candidates candidates_of(const BuiltNode& node) {
  return {Output<std::int64_t>::unchecked(node.output(0)), Output<float>::unchecked(node.output(1)),
          Output<float>::unchecked(node.output(2))};
}

std::int64_t candidate_seed(const AnyOutput& classes, std::uint64_t seed) {
  return static_cast<std::int64_t>(next_op_seed(*classes.graph(), seed));
}

template <class O>
Candidates sampler(const AnyOutput& classes, const CandidateOptions& options, const At& at) {
  const std::int64_t num_true = width_of_classes(classes, O::name, at);
  return candidates_of(build<O>({classes},
                                {.num_true = num_true,
                                 .num_sampled = options.num_sampled,
                                 .unique = options.unique,
                                 .range_max = options.range_max,
                                 .seed = candidate_seed(classes, options.seed)},
                                at));
}

}  // namespace detail

void FixedUnigramCandidateSampler::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<FixedUnigramCandidateSampler>();
  detail::infer_candidates(context, CandidateAttrs{.num_true = attrs.num_true,
                                                   .num_sampled = attrs.num_sampled,
                                                   .unique = attrs.unique,
                                                   .range_max = attrs.range_max});
  if (attrs.vocab_file.empty() == attrs.unigrams.empty()) {
    context.fail("wants either unigrams or a vocab_file");
  }
  if (attrs.num_reserved_ids < 0) context.fail(str_cat("num_reserved_ids = ", attrs.num_reserved_ids, " is negative"));
  if (attrs.shard < 0 || attrs.shard >= attrs.num_shards) {
    context.fail(
        str_cat("shard = ", attrs.shard, " is outside [0, num_shards), where num_shards = ", attrs.num_shards));
  }
  if (!std::isfinite(attrs.distortion)) context.fail(str_cat("distortion = ", attrs.distortion, " is not finite"));
}

void AllCandidateSampler::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<AllCandidateSampler>();
  detail::infer_candidates(context, attrs.num_true, attrs.num_sampled);
}

void ComputeAccidentalHits::infer(InferContext& context) {
  const std::int64_t num_true = context.attrs<ComputeAccidentalHits>().num_true;
  if (num_true < 1) context.fail(str_cat("num_true = ", num_true, " is below 1"));
  static_cast<void>(context.merge_dim(context.with_rank(0, 2)[1], num_true));
  static_cast<void>(context.with_rank(1, 1));
  for (int i = 0; i < 3; ++i) context.set_output(i, PartialShape{dynamic});
}

Candidates uniform_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                     const At& at) {
  return detail::sampler<UniformCandidateSampler>(true_classes, options, at);
}

Candidates log_uniform_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                         const At& at) {
  return detail::sampler<LogUniformCandidateSampler>(true_classes, options, at);
}

Candidates learned_unigram_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                             const At& at) {
  return detail::sampler<LearnedUnigramCandidateSampler>(true_classes, options, at);
}

Candidates fixed_unigram_candidate_sampler(const Output<std::int64_t>& true_classes, const CandidateOptions& options,
                                           const UnigramOptions& unigrams, const At& at) {
  const std::int64_t num_true = detail::width_of_classes(true_classes, FixedUnigramCandidateSampler::name, at);
  return detail::candidates_of(
      build<FixedUnigramCandidateSampler>({true_classes},
                                          {.num_true = num_true,
                                           .num_sampled = options.num_sampled,
                                           .unique = options.unique,
                                           .range_max = options.range_max,
                                           .vocab_file = unigrams.vocab_file,
                                           .distortion = unigrams.distortion,
                                           .num_reserved_ids = unigrams.num_reserved_ids,
                                           .num_shards = unigrams.num_shards,
                                           .shard = unigrams.shard,
                                           .unigrams = unigrams.unigrams,
                                           .seed = detail::candidate_seed(true_classes, options.seed)},
                                          at));
}

Candidates all_candidate_sampler(const Output<std::int64_t>& true_classes, std::int64_t num_sampled, const At& at) {
  const std::int64_t num_true = detail::width_of_classes(true_classes, AllCandidateSampler::name, at);
  return detail::candidates_of(
      build<AllCandidateSampler>({true_classes}, {.num_true = num_true, .num_sampled = num_sampled}, at));
}

AccidentalHits compute_accidental_hits(const Output<std::int64_t>& true_classes,
                                       const Output<std::int64_t>& sampled_candidates, const At& at) {
  const std::int64_t num_true = detail::width_of_classes(true_classes, ComputeAccidentalHits::name, at);
  const auto node = build<ComputeAccidentalHits>({true_classes, sampled_candidates}, {.num_true = num_true}, at);
  return {Output<std::int32_t>::unchecked(node.output(0)), Output<std::int64_t>::unchecked(node.output(1)),
          Output<float>::unchecked(node.output(2))};
}

}  // namespace dflow
