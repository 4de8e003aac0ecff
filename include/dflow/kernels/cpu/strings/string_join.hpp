#pragma once

#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/string_join.hpp>

namespace dflow {

template <>
struct Kernel<StringJoin, Cpu> {
  StringJoin::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<ReduceJoin, Cpu> {
  ReduceJoin::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
