#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/op/op_table.hpp>
#include <dflow/ops/standard_ops.hpp>

namespace dflow {

namespace detail {

/// Whether a kernel of the op, for its first element types or for all, can be seen here.
template <class O, class Device, class... Firsts>
constexpr bool sees_kernel(TypeList<Firsts...>) {
  if constexpr (HasKernel<O, Device, Firsts...>) {
    return true;
  } else if constexpr (sizeof...(Firsts) < O::TypeParams::size) {
    using Allowed = element_t<sizeof...(Firsts), typename O::TypeParams>;
    return sees_kernel<O, Device>(TypeList<Firsts..., element_t<0, Allowed>>{});
  } else {
    return false;
  }
}

/// Says which part of the library the program lacks.
template <class O>
constexpr void require_part() {
  static_assert(!contains_v<O, ArrayOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/array.hpp>");
  static_assert(!contains_v<O, CheckpointOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/checkpoint.hpp>");
  static_assert(!contains_v<O, ControlOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/control.hpp>");
  static_assert(!contains_v<O, DataFlowOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/data_flow.hpp>");
  static_assert(!contains_v<O, ImageOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/image.hpp>");
  static_assert(!contains_v<O, IoOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/io.hpp>");
  static_assert(!contains_v<O, LinalgOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/linalg.hpp>");
  static_assert(!contains_v<O, MathOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/math.hpp>");
  static_assert(!contains_v<O, NnOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/nn.hpp>");
  static_assert(!contains_v<O, ParsingOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/parsing.hpp>");
  static_assert(!contains_v<O, RandomOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/random.hpp>");
  static_assert(!contains_v<O, ReductionOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/reduction.hpp>");
  static_assert(!contains_v<O, SendRecvOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/send_recv.hpp>");
  static_assert(!contains_v<O, SparseOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/sparse.hpp>");
  static_assert(!contains_v<O, StateOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/state.hpp>");
  static_assert(!contains_v<O, StringsOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/strings.hpp>");
  static_assert(!contains_v<O, SummaryOps>,
                "the CPU kernel of this op is not compiled here: include <dflow/src/ops/summary.hpp>");
}

}  // namespace detail

/// Included by the units that instantiate the library's kernels, among them a program's own that folds its op table.
template <OpType O, class Device>
std::unique_ptr<AnyKernel> make_library_kernel(const KernelInit& init) {
  if constexpr (detail::sees_kernel<O, Device>(TypeList<>{})) {
    return make_kernel<O, Device>(init);
  } else {
    detail::require_part<O>();
    return nullptr;
  }
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
