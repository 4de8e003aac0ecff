#pragma once

#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/ops/standard_ops.hpp>

namespace dflow {

namespace detail {

template <class List>
struct StandardKernels;
template <class... Ops>
struct StandardKernels<TypeList<Ops...>> {
  using Sorted = SortedKernels<Cpu, typename Concatenated<typename WithDerivatives<Ops>::type...>::type>;
  static constexpr KernelRows rows{Sorted::entries};
};

}  // namespace detail

const KernelRows& standard_cpu_kernels() noexcept { return detail::StandardKernels<StandardOps>::rows; }

}  // namespace dflow
