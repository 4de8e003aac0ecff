#pragma once

#include <dflow/ops/array/bitcast.hpp>

#include <cstdint>

namespace dflow {

void Bitcast::infer(InferContext& context) {
  const auto from = static_cast<std::int64_t>(size_of(context.type_arg(0)));
  const auto to = static_cast<std::int64_t>(size_of(context.type_arg(1)));
  if (from >= to) {
    const PartialShape& x = context.input(0);
    return context.set_output(0, from > to && x.has_rank() ? x.appended(from / to) : x);
  }
  const PartialShape x = context.with_rank_at_least(0, 1);
  if (!x.has_rank()) return;
  static_cast<void>(context.merge_dim(x[x.rank() - 1], to / from));
  context.set_output(0, x.subshape(0, x.rank() - 1));
}

}  // namespace dflow
