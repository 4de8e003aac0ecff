#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/parsing/decode_csv.hpp>

namespace dflow {

template <>
struct Kernel<DecodeCsv, Cpu> {
  static constexpr bool splits = false;
  DecodeCsv::Attrs attrs;

  double cost_ns(const KernelInit& init) const {
    return 300 + 50 * static_cast<double>(attrs.OUT_TYPE.size()) * estimated_elements(init.inputs[0]);
  }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
