#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/sparse/sparse_indices.hpp>
#include <dflow/ops/sparse/sparse_joins.hpp>

#include <span>

namespace dflow {

namespace cpu {

/// How indices [count, extents] become positions: index i lies at the sum of its numbers times the strides.
struct SparseLayout {
  std::span<const std::int64_t> extents;
  std::span<const std::int64_t> strides;
};
/// Writes the positions, if `positions` is not null. Fails for an index outside of the extents. I: int32, int64.
template <class I>
void find_positions(KernelContext& context, std::int64_t count, const I* indices, const SparseLayout& layout,
                    std::int64_t* positions);

void sparse_positions(KernelContext& context, bool exact);
void sparse_order(KernelContext& context);
void sparse_unique(KernelContext& context);
void sparse_to_dense(KernelContext& context, bool validate_indices);

}  // namespace cpu

template <>
struct Kernel<SparsePositions, Cpu> {
  SparsePositions::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const { cpu::sparse_positions(context, attrs.exact); }
};

template <>
struct Kernel<SparseOrder, Cpu> {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 40; }
  void operator()(KernelContext& context) const { cpu::sparse_order(context); }
};

template <>
struct Kernel<SparseUnique, Cpu> {
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 40; }
  void operator()(KernelContext& context) const { cpu::sparse_unique(context); }
};

template <>
struct Kernel<SparseToDense, Cpu> {
  SparseToDense::Attrs attrs;
  double cost_ns(const KernelInit& init) const {
    return 500 + estimated_elements(init.inputs[0]) * 2 + estimated_elements(init.node.outputs[0]);
  }
  void operator()(KernelContext& context) const { cpu::sparse_to_dense(context, attrs.validate_indices); }
};

}  // namespace dflow
