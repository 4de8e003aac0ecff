#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/sparse/sparse_matmul.hpp>

namespace dflow {

namespace cpu {
void sparse_matmul(KernelContext& context, SparseTensorDenseMatMul::Attrs attrs);
}  // namespace cpu

template <>
struct Kernel<SparseTensorDenseMatMul, Cpu> {
  SparseTensorDenseMatMul::Attrs attrs;
  double cost_ns(const KernelInit& init) const {
    const PartialShape& b = init.inputs[3].shape;
    const std::int64_t columns = b.has_rank() && b.rank() == 2 ? b[attrs.adjoint_b ? 0 : 1] : dynamic;
    return 500 + estimated_elements(init.inputs[1]) * (columns == dynamic ? 32.0 : static_cast<double>(columns));
  }
  void operator()(KernelContext& context) const { cpu::sparse_matmul(context, attrs); }
};

}  // namespace dflow
