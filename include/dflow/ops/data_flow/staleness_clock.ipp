#pragma once

#include <dflow/ops/data_flow/staleness_clock.hpp>

namespace dflow {

DFLOW_INLINE void StalenessClock::infer(InferContext& context) {
  const auto& attrs = context.attrs<StalenessClock>();
  if (attrs.replicas < 1 || attrs.replicas > StalenessClock::max_replicas) {
    context.fail(str_cat(attrs.replicas, " replicas, not 1 to ", StalenessClock::max_replicas));
  }
  if (attrs.staleness < 0) context.fail(str_cat("the staleness is ", attrs.staleness));
  context.set_output(0, Shape{});
}
DFLOW_INLINE void StalenessClockJoin::infer(InferContext& context) { context.set_output(0, Shape{}); }
DFLOW_INLINE void StalenessClockWait::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, Shape{});
}
DFLOW_INLINE void StalenessClockTick::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
DFLOW_INLINE void StalenessClockLeave::infer(InferContext&) {}
DFLOW_INLINE void StalenessClockWatch::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  context.set_output(0, PartialShape{dynamic});
}
DFLOW_INLINE void StalenessClockDropLate::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, Shape{});
}

}  // namespace dflow
