#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/ops/math/batch_matmul.hpp>

namespace dflow {

template <class T>
struct Kernel<BatchMatMul, Cpu, T> {
  BatchMatMul::Attrs attrs;

  double cost_ns(const KernelInit& init) const {
    const PartialShape& x = init.inputs[0].shape;
    const std::int64_t inner = x.has_rank() ? x.dim(x.rank() - (attrs.adj_x ? 2 : 1)) : dynamic;
    return 500 + estimated_elements(init.node.outputs[0]) * static_cast<double>(inner == dynamic ? 128 : inner) * 0.02;
  }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const int rank = shape.rank();
    const AnyTensor x = adjoint_operand(context, 0, attrs.adj_x), y = adjoint_operand(context, 1, attrs.adj_y);
    const std::int64_t m = shape[rank - 2], n = shape[rank - 1], k = x.dim(rank - (attrs.adj_x ? 2 : 1));
    T* z = context.allocate_output<T>(0, shape).data();
    if (shape.num_elements() == 0) return;
    cpu::batched_gemm<T>(context.pool(), shape.num_elements(0, rank - 2), {m * k, k * n, m * n}, attrs.adj_x,
                         attrs.adj_y, m, n, k, Tensor<T>::of(x).data(), Tensor<T>::of(y).data(), z, {},
                         cpu_options(context));
  }

 private:
  /// The operand with its elements conjugated, if they are complex and the product takes its adjoint.
  static AnyTensor adjoint_operand(const KernelContext& context, int i, bool is_adjoint) {
    if constexpr (is_complex_element<T>) {
      if (is_adjoint) {
        const Tensor<T>& x = context.input<T>(i);
        AnyTensor conjugate = context.allocate_temporary(dtype_of<T>, x.shape());
        T* to = Tensor<T>::of(conjugate).data();
        for (const T& value : x.span()) *to++ = std::conj(value);
        return conjugate;
      }
    }
    static_cast<void>(is_adjoint);
    return context.input(i);
  }
};

}  // namespace dflow
