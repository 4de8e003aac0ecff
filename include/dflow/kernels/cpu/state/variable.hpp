#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/state/kept_resource.hpp>
#include <dflow/kernels/state/variable_state.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/state/variable.hpp>

#include <cstdint>
#include <string>

namespace dflow {

namespace detail {

// The parts of the variables' kernels that do not depend on the element type.

/// Gives the variable that its container holds now: another one after the container was reset.
class VariableKernel {
 public:
  explicit VariableKernel(const KernelInit& init);
  double cost_ns(const KernelInit&) const { return 20; }
  void operator()(KernelContext& context) const { context.set_output(0, handle()); }

 private:
  AnyTensor handle() const {
    return handle_.get([this](ResourceContainer& container) { return find(container); });
  }
  AnyTensor find(ResourceContainer& container) const;

  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;
  KeptResource<AnyTensor> handle_;
};

struct ReadVariableKernel {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const;
};

struct AssignKernel {
  static constexpr bool splits = false;
  Assign::Attrs attrs;

  double cost_ns(const KernelInit& init) const { return 100 + estimated_elements(init.inputs[1]); }
  void operator()(KernelContext& context) const;
};

/// The variable behind input `i`. Fails if it holds another element type.
VariableState& variable_input(const KernelContext& context, int i, DType dtype);
/// Fails unless `value` has exactly the shape of the variable's value.
void require_same_shape(const KernelContext& context, const AnyTensor& variable, const AnyTensor& value,
                        const char* what);
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

template <cpu::ScatterOp op, class T, class Index>
struct ScatterKernel {
  double cost_ns(const KernelInit& init) const { return 300 + estimated_elements(init.inputs[2]); }

  void operator()(KernelContext& context) const {
    VariableUpdate update({&variable_input(context, 0, dtype_of<T>)});
    const Tensor<Index>& indices = context.input<Index>(1);
    const Tensor<T>& updates = context.input<T>(2);
    const std::int64_t row_size = checked_row_size(context, update.value(0), indices, updates);
    const std::int64_t limit = update.value(0).dim(0);
    const std::int64_t bad = cpu::find_bad_index(indices.num_elements(), indices.data(), limit);
    if (bad >= 0) fail_bad_index(context, bad, indices.data()[bad], limit);
    T* to = Tensor<T>::of(update.writable(0, *context.device().allocator)).data();
    static_cast<void>(cpu::scatter_rows(context.pool(), op, limit, indices.num_elements(), row_size, indices.data(),
                                        updates.data(), to, cpu_options(context)));
  }
};

}  // namespace detail

template <class T>
struct Kernel<VariableOp, Cpu, T> : detail::VariableKernel {
  using VariableKernel::VariableKernel;
};
template <class T>
struct Kernel<ReadVariable, Cpu, T> : detail::ReadVariableKernel {};
template <class T>
struct Kernel<Assign, Cpu, T> : detail::AssignKernel {};
template <class T>
struct Kernel<AssignAdd, Cpu, T> : detail::AssignUpdateKernel<Add, T> {};
template <class T>
struct Kernel<AssignSub, Cpu, T> : detail::AssignUpdateKernel<Sub, T> {};
template <class T, class Index>
struct Kernel<ScatterAdd, Cpu, T, Index> : detail::ScatterKernel<cpu::ScatterOp::add, T, Index> {};
template <class T, class Index>
struct Kernel<ScatterSub, Cpu, T, Index> : detail::ScatterKernel<cpu::ScatterOp::subtract, T, Index> {};

template <>
struct Kernel<IsVariableInitialized, Cpu> {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const {
    *context.allocate_output<bool>(0, {}).data() = context.resource<VariableState>(0).is_initialized();
  }
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/state/variable.ipp>
#endif
