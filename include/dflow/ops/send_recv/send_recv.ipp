#pragma once

#include <dflow/ops/send_recv/send_recv.hpp>

namespace dflow {

DFLOW_INLINE void Send::infer(InferContext&) {}

DFLOW_INLINE void Recv::infer(InferContext& context) { context.set_output(0, context.attrs<Recv>().shape); }

}  // namespace dflow
