#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/nn/ctc_decoders.hpp>

namespace dflow {

template <>
struct Kernel<CTCGreedyDecoder, Cpu> {
  CTCGreedyDecoder::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 1000 + 2 * estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<CTCBeamSearchDecoder, Cpu> {
  CTCBeamSearchDecoder::Attrs attrs;
  double cost_ns(const KernelInit& init) const {
    return 1000 + 5 * static_cast<double>(attrs.beam_width) * estimated_elements(init.inputs[0]);
  }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
