#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/parsing/decode_raw.hpp>

namespace dflow {

template <>
struct Kernel<DecodeRaw, Cpu> {
  DecodeRaw::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 300 + 200 * estimated_elements(init.inputs[0]); }

  void operator()(KernelContext& context) const;
};

}  // namespace dflow
