#pragma once

#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/string_split.hpp>

namespace dflow {

template <>
struct Kernel<StringSplit, Cpu> {
  static constexpr bool splits = false;
  StringSplit::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 5 * detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<StringSplitV2, Cpu> {
  static constexpr bool splits = false;
  StringSplitV2::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 5 * detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
