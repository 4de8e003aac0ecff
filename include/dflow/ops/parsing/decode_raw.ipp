#pragma once

#include <dflow/ops/parsing/decode_raw.hpp>

namespace dflow {

void DecodeRaw::infer(InferContext& context) {
  const PartialShape& bytes = context.input(0);
  if (!bytes.has_rank()) return;
  if (bytes.rank() == max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  context.set_output(0, bytes.inserted(bytes.rank(), dynamic));
}

}  // namespace dflow
