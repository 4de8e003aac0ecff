#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/op/op_table.hpp>

namespace dflow {

/// Included by the units that instantiate the library's kernels, and by everything in header-only mode.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_library_kernel(const KernelInit& init) {
  return make_kernel<O, Device>(init);
}

namespace detail {

/// A library kernel's maker; null for an op that the runtime itself carries out.
using KernelMaker = std::unique_ptr<AnyKernel> (*)(const KernelInit&);

template <class O, class Device>
constexpr KernelMaker library_kernel_maker() {
  if constexpr (O::has_kernel) {
    return &make_library_kernel<O, Device>;
  } else {
    return nullptr;
  }
}

template <class Ops, class Device>
struct KernelMakers;
template <class... Ops, class Device>
struct KernelMakers<TypeList<Ops...>, Device> {
  static constexpr KernelMaker all[] = {library_kernel_maker<Ops, Device>()...};
};

}  // namespace detail

}  // namespace dflow

/// Compiles the kernels of a list of ops and of the gradients that are derived from them:
/// `DFLOW_INSTANTIATE_KERNELS(LossOps, Cpu);`
#define DFLOW_INSTANTIATE_KERNELS(Ops, Device) \
  template struct detail::KernelMakers<typename detail::WithAllDerivatives<Ops>::type, Device>
