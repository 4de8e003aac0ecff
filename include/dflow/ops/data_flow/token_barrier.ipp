#pragma once

#include <dflow/ops/data_flow/token_barrier.hpp>

namespace dflow {

void TokenBarrier::infer(InferContext& context) {
  const auto& attrs = context.attrs<TokenBarrier>();
  if (attrs.aggregate < 1 || attrs.aggregate > attrs.replicas) {
    context.fail(str_cat("aggregate is ", attrs.aggregate, ", not in [1, ", attrs.replicas, "], the replicas"));
  }
  if (attrs.replicas > TokenBarrier::max_replicas) {
    context.fail(str_cat(attrs.replicas, " replicas, more than ", TokenBarrier::max_replicas));
  }
  context.set_output(0, Shape{});
}
void TokenBarrierOpen::infer(InferContext& context) {
  for (const int scalar : {1, 2}) static_cast<void>(context.with_rank(scalar, 0));
  static_cast<void>(context.with_rank(3, 1));
}
void TokenBarrierArrive::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
void TokenBarrierWait::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, Shape{});
}
void TokenBarrierCollect::infer(InferContext& context) {
  for (const int scalar : {1, 2}) static_cast<void>(context.with_rank(scalar, 0));
  for (const int ranks : {0, 1}) context.set_output(ranks, PartialShape{dynamic});
}
void TokenBarrierAdvance::infer(InferContext& context) {
  for (const int scalar : {1, 2}) static_cast<void>(context.with_rank(scalar, 0));
}
void TokenBarrierLeave::infer(InferContext&) {}
void TokenBarrierDropMissing::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, PartialShape{dynamic});
  const std::string& which = context.attrs<TokenBarrierDropMissing>().gives_up;
  if (which != "missing" && which != "lost" && which != "none") {
    context.fail(str_cat("gives_up is '", which, "', not missing, lost or none"));
  }
}
void TokenBarrierHold::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
void TokenBarrierClose::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  const std::string& reason = context.attrs<TokenBarrierClose>().reason;
  if (reason != "late" && reason != "done" && reason != "stopped" && reason != "lost") {
    context.fail(str_cat("the reason is '", reason, "', not late, done, stopped or lost"));
  }
}

}  // namespace dflow
