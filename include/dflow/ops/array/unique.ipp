#pragma once

#include <dflow/ops/array/unique.hpp>

namespace dflow {

void ListDiff::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 1));
  static_cast<void>(context.with_rank(1, 1));
  context.set_output(0, {dynamic});
  context.set_output(1, {dynamic});
}

void Unique::infer(InferContext& context) {
  context.set_output(0, {dynamic});
  context.set_output(1, context.with_rank(0, 1));
}

void UniqueWithCounts::infer(InferContext& context) {
  context.set_output(0, {dynamic});
  context.set_output(1, context.with_rank(0, 1));
  context.set_output(2, {dynamic});
}

}  // namespace dflow
