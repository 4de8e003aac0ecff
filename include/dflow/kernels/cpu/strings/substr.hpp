#pragma once

#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/substr.hpp>

namespace dflow {

template <>
struct Kernel<Substr, Cpu> {
  Substr::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<StringLength, Cpu> {
  StringLength::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::int32_t>& lengths) const;
};

}  // namespace dflow
