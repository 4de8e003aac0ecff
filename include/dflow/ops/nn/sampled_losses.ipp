#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/nn/sampled_losses.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/segment.hpp>

#include <array>
#include <limits>
#include <vector>

namespace dflow::detail {

/// logits [batch, num_sampled], the lowest float added where the candidate is a true class of the row.
Expr without_accidental_hits(const Expr& logits, const Output<std::int64_t>& labels, const Candidates& drawn) {
  constexpr double lowest = std::numeric_limits<float>::lowest();
  const AccidentalHits hits = compute_accidental_hits(labels, drawn.sampled_candidates);
  const AnyOutput width = cast_to(build<SizeOf>({drawn.sampled_candidates}), DType::int64);
  const Expr places = Expr(cast_to(hits.indices, DType::int64)) * Expr(width) + Expr(hits.ids);
  const AnyOutput sums =
      build<UnsortedSegmentSum>({cast_to(hits.weights, logits.dtype()), places, build<SizeOf>({logits})});
  // Two true classes of a row that are the same hit a candidate twice.
  const AnyOutput bounded = build<Maximum>({sums, scalar_like(sums, lowest)});
  return logits + Expr(AnyOutput(build<Reshape>({bounded, shape_of(logits)})));
}

AnyOutput any_sampled_loss(SampledLoss loss, const AnyOutput& weights, const AnyOutput& biases, const AnyOutput& inputs,
                           const AnyOutput& labels, const SampledLossOptions& options, const At& at) {
  const std::string_view name = loss == SampledLoss::nce ? "nce_loss" : "sampled_softmax_loss";
  const std::int64_t num_true = width_of_classes(labels, name, at);
  GraphStore& graph = graph_of({&inputs, 1}, name, at);
  const Composite place(graph, at.where);
  const At here{.where = at.where};
  const auto classes = Output<std::int64_t>::unchecked(cast_to(labels, DType::int64));
  const Candidates drawn =
      options.sampled_values
          ? *options.sampled_values
          : log_uniform_candidate_sampler(
                classes, {.num_sampled = options.num_sampled, .range_max = options.num_classes, .seed = options.seed},
                here);

  const AnyOutput column = any_expand_dims(inputs, -1, here);
  const AnyOutput products = build<BatchMatMul>({any_rows_of(weights, classes, here), column});  // [batch, num_true, 1]
  const Expr of_true = AnyOutput(build<Reshape>({products, shape_of(classes)}));
  const Expr of_sampled =
      AnyOutput(build<MatMul>({inputs, any_rows_of(weights, drawn.sampled_candidates, here)}, {.transpose_b = true}));
  const auto logits = [&](const Expr& product, const AnyOutput& ids, const AnyOutput& expected_count) -> Expr {
    const Expr sum = widened(product + Expr(any_rows_of(biases, ids, here)));
    return sum - Expr(cast_to(AnyOutput(build<Log>({expected_count})), sum.dtype()));
  };
  const Expr true_logits = logits(of_true, classes, drawn.true_expected_count);
  Expr sampled_logits = logits(of_sampled, drawn.sampled_candidates, drawn.sampled_expected_count);
  if (options.remove_accidental_hits.value_or(loss == SampledLoss::softmax)) {
    sampled_logits = without_accidental_hits(sampled_logits, classes, drawn);
  }

  const Expr targets = ones_like(true_logits) / static_cast<double>(num_true);
  const AnyOutput all_logits = any_concat(1, std::array<AnyOutput, 2>{true_logits, sampled_logits});
  const AnyOutput all_targets = any_concat(1, std::array<AnyOutput, 2>{targets, zeros_like(sampled_logits)});
  AnyOutput result;
  if (loss == SampledLoss::nce) {
    const AnyOutput losses = build<SigmoidCrossEntropyWithLogits>({all_logits, all_targets});
    result = build<Sum>({losses, int32_constant(graph, 1)});
  } else {
    result = build<SoftmaxCrossEntropyWithLogits>({all_logits, all_targets});
  }
  return cast_or_name(result, inputs.dtype(), at);
}

}  // namespace dflow::detail
