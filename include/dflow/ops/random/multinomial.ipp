#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/random/multinomial.hpp>

namespace dflow {

void Multinomial::infer(InferContext& context) {
  const PartialShape logits = context.with_rank(0, 2);
  static_cast<void>(context.with_rank(1, 0));
  if (logits[1] == 0) context.fail("there are no classes to draw from");
  std::int64_t count = dynamic;
  if (const auto known = detail::known_integers(context, 1)) {
    count = (*known)[0];
    if (count < 0) context.fail(str_cat("num_samples = ", count, " is negative"));
  }
  context.set_output(0, PartialShape{logits[0], count});
}

AnyOutput detail::any_multinomial(const AnyOutput& logits, const AnyOutput& num_samples,
                                  const MultinomialOptions& options, const At& at) {
  GraphStore& graph = graph_of({&logits, 1}, Multinomial::name, at);
  return build<Multinomial>({logits, num_samples},
                            {.seed = static_cast<std::int64_t>(next_op_seed(graph, options.seed))}, at);
}

}  // namespace dflow
