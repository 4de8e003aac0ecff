#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/state/variable_kernel.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/state/variable.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace dflow {

namespace detail {

// The parts of the kernels here that do not depend on the element type.

struct AssignKernel {
  static constexpr bool splits = false;
  Assign::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.inputs[1]); }
  void operator()(KernelContext& context) const;
};

struct StridedSliceAssignKernel {
  StridedSliceAttrs attrs;

  double cost_ns(const KernelInit& init) const { return 200 + estimated_elements(init.inputs[4]); }
  void operator()(KernelContext& context) const;
};

/// variable [limit, row...], indices [n...], updates [n..., row...]: the number of elements of a row.
std::int64_t checked_row_size(const KernelContext& context, const AnyTensor& variable, const AnyTensor& indices,
                              const AnyTensor& updates);
[[noreturn]] void fail_bad_index(const KernelContext& context, std::int64_t position, std::int64_t index,
                                 std::int64_t limit);

/// variable = Op(variable, value), element by element.
template <class Op, class T>
struct AssignUpdateKernel {
  double cost_ns(const KernelInit& init) const { return 200 + estimated_elements(init.inputs[1]) * 0.3; }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&variable_input(context, 0, dtype_of<T>)});
    const Tensor<T>& value = context.input<T>(1);
    require_same_shape(context, update.value(0), value, "value");
    T* to = Tensor<T>::of(update.writable(0, *context.device().allocator)).data();
    const T* from = value.data();
    context.pool().parallel_for(value.num_elements(), 0.3, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) to[i] = Op::template apply<T>(to[i], from[i]);
    });
  }
};

/// As `scatter_rows`, for every element type: types that it does not take have no arithmetic.
template <class T, class Index>
void scatter_into(KernelContext& context, cpu::ScatterOp op, std::int64_t row_size, const Tensor<Index>& indices,
                  const T* rows, const cpu::ScatterRows& how, AnyTensor& variable) {
  T* const to = Tensor<T>::of(variable).data();
  if constexpr (contains_v<T, NumberTypes>) {
    static_cast<void>(cpu::scatter_rows(context.pool(), op, variable.dim(0), indices.num_elements(), row_size,
                                        indices.data(), rows, to, cpu_options(context), how));
  } else {
    const std::int64_t step = how.repeats ? 0 : row_size;
    for (const Index index : indices) {
      std::copy_n(rows, row_size, to + static_cast<std::int64_t>(index) * row_size);
      rows += step;
    }
  }
}

/// variable[indices[i]] = variable[indices[i]] op updates[i]
template <class T, class Index>
void update_rows(KernelContext& context, cpu::ScatterOp op) {
  VariableUpdate update({&variable_input(context, 0, dtype_of<T>)});
  const Tensor<Index>& indices = context.input<Index>(1);
  const Tensor<T>& updates = context.input<T>(2);
  const Shape shape = update.value(0).shape();
  const bool repeats = updates.rank() == 0 && shape.rank() > 0;
  const std::int64_t row_size = repeats ? shape.subshape(1, shape.rank()).num_elements()
                                        : checked_row_size(context, update.value(0), indices, updates);
  const std::int64_t bad = cpu::find_bad_index(indices.num_elements(), indices.data(), shape[0]);
  if (bad >= 0) fail_bad_index(context, bad, indices.data()[bad], shape[0]);
  if (indices.num_elements() == 0 || row_size == 0) return;
  if constexpr (is_integer_element<T>) {
    if (op == cpu::ScatterOp::divide && std::find(updates.begin(), updates.end(), T(0)) != updates.end()) {
      context.fail("integer division by zero");
    }
  }
  const T* rows = updates.data();
  AnyTensor one_row;
  if (repeats && row_size > 1) {
    one_row = context.allocate_temporary(dtype_of<T>, {row_size});
    T* const elements = Tensor<T>::of(one_row).data();
    std::fill_n(elements, row_size, *updates.data());
    rows = elements;
  }
  scatter_into(context, op, row_size, indices, rows, {.repeats = repeats},
               update.writable(0, *context.device().allocator));
}

/// The same for the node's element types: one function has the loops for all ops.
template <class Types>
void update_rows_of(KernelContext& context, cpu::ScatterOp op) {
  const TypeArgs& types = context.node().types;
  visit_dtype<Types>(types[0], [&]<class T>() {
    visit_dtype<IndexTypes>(types[1], [&]<class Index>() { update_rows<T, Index>(context, op); });
  });
}

template <cpu::ScatterOp op>
struct RowUpdateKernel {
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[2]); }
  void operator()(KernelContext& context) const { update_rows_of<AllTypes>(context, op); }
};

}  // namespace detail

template <>
struct Kernel<VariableOp, Cpu> : detail::VariableKernel {
  using VariableKernel::VariableKernel;
};
template <>
struct Kernel<ReadVariable, Cpu> : detail::ReadVariableKernel {};
template <>
struct Kernel<TemporaryVariableOp, Cpu> : detail::TemporaryVariableKernel {};
template <>
struct Kernel<DestroyTemporaryVariable, Cpu> : detail::DestroyTemporaryVariableKernel {};
template <>
struct Kernel<Assign, Cpu> : detail::AssignKernel {};
template <class T>
struct Kernel<AssignAdd, Cpu, T> : detail::AssignUpdateKernel<Add, T> {};
template <class T>
struct Kernel<AssignSub, Cpu, T> : detail::AssignUpdateKernel<Sub, T> {};
template <>
struct Kernel<ScatterUpdate, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::assign> {};
template <>
struct Kernel<ScatterAdd, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::add> {};
template <>
struct Kernel<ScatterSub, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::subtract> {};
template <>
struct Kernel<ScatterMul, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::multiply> {};
template <>
struct Kernel<ScatterDiv, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::divide> {};
template <>
struct Kernel<ScatterMin, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::minimum> {};
template <>
struct Kernel<ScatterMax, Cpu> : detail::RowUpdateKernel<cpu::ScatterOp::maximum> {};

template <>
struct Kernel<StridedSliceAssign, Cpu> : detail::StridedSliceAssignKernel {};
template <>
struct Kernel<IsVariableInitialized, Cpu> : detail::IsVariableInitializedKernel {};

}  // namespace dflow
