#pragma once

#include <dflow/ops/random/shuffle.hpp>

namespace dflow {

void RandomShuffle::infer(InferContext& context) { context.set_output(0, context.with_rank_at_least(0, 1)); }

AnyOutput detail::any_random_shuffle(const AnyOutput& x, const ShuffleOptions& options, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, RandomShuffle::name, at);
  return build<RandomShuffle>({x}, {.seed = static_cast<std::int64_t>(next_op_seed(graph, options.seed))}, at);
}

}  // namespace dflow
