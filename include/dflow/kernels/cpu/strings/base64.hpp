#pragma once

#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/base64.hpp>

namespace dflow {

template <>
struct Kernel<EncodeBase64, Cpu> {
  EncodeBase64::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::string>& codes) const;
};

template <>
struct Kernel<DecodeBase64, Cpu> {
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& codes, Tensor<std::string>& texts) const;
};

}  // namespace dflow
