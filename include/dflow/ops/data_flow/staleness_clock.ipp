#pragma once

#include <dflow/ops/data_flow/staleness_clock.hpp>

namespace dflow {

void StalenessClock::infer(InferContext& context) {
  const auto& attrs = context.attrs<StalenessClock>();
  if (attrs.replicas < 1 || attrs.replicas > StalenessClock::max_replicas) {
    context.fail(str_cat(attrs.replicas, " replicas, not 1 to ", StalenessClock::max_replicas));
  }
  if (attrs.staleness < 0) context.fail(str_cat("the staleness is ", attrs.staleness));
  context.set_output(0, Shape{});
}
void StalenessClockJoin::infer(InferContext& context) { context.set_output(0, Shape{}); }
void StalenessClockLead::infer(InferContext&) {}
void StalenessClockWait::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, Shape{});
}
void StalenessClockTick::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
void StalenessClockLeave::infer(InferContext&) {}
void StalenessClockWatch::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  context.set_output(0, PartialShape{dynamic});
}
void StalenessClockDropLate::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, Shape{});
}

}  // namespace dflow
