#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/shared/position_text.hpp>
#include <dflow/ops/array/gather.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

struct GatherKernel : SplitsUnlessStrings {
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init) + estimated_elements(init.inputs[1]) * 2; }

 private:
  // Before its caller: clang 16 otherwise leaves out instances that a generic lambda asks for.
  template <class I>
  static std::int64_t gather_rows(KernelContext& context, const AnyTensor& params, const Tensor<I>& indices,
                                  std::int64_t row, AnyTensor& y) {
    const std::int64_t limit = params.dim(0), count = indices.num_elements();
    if (row == 0) return cpu::find_bad_index(count, indices.data(), limit);
    if (params.dtype() != DType::string) {
      return cpu::gather_rows(context.pool(), 1, limit, count, static_cast<std::size_t>(row) * size_of(params.dtype()),
                              params.raw_data(), indices.data(), y.raw_data(), cpu_options(context));
    }
    const std::int64_t bad = cpu::find_bad_index(count, indices.data(), limit);
    for (std::int64_t i = 0; bad < 0 && i < count; ++i) {
      copy_elements(DType::string, row, element(params, indices.data()[i] * row), element(y, i * row));
    }
    return bad;
  }

  template <class I>
  static void gather(KernelContext& context) {
    const AnyTensor& params = context.input(0);
    const Tensor<I>& indices = context.input<I>(1);
    const Shape shape = inferred_shape(context);
    const std::int64_t row = params.shape().num_elements(1, params.rank());
    AnyTensor& y = context.allocate_output(0, shape);
    const std::int64_t bad = gather_rows(context, params, indices, row, y);
    if (bad < 0) return;
    context.fail(
        bad_gather_index(bad, indices.shape(), static_cast<std::int64_t>(indices.data()[bad]), params.shape()));
  }

 public:
  void operator()(KernelContext& context) const {
    visit_dtype<IndexTypes>(context.input(1).dtype(), [&]<class I>() { gather<I>(context); });
  }
};

}  // namespace detail

template <>
struct Kernel<Gather, Cpu> : detail::GatherKernel {};

}  // namespace dflow
