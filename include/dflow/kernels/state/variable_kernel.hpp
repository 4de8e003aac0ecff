#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/state/kept_resource.hpp>
#include <dflow/ops/state/temporary_variable.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/state/variable_state.hpp>

#include <string>

namespace dflow::detail {

// The parts of the variables' kernels that are the same for every device and element type.

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

/// Its output is in host memory.
struct IsVariableInitializedKernel {
  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const;
};

/// Gives the variable of the step, and of the iteration around it.
struct TemporaryVariableKernel {
  double cost_ns(const KernelInit&) const { return 200; }
  void operator()(KernelContext& context) const;
};

struct DestroyTemporaryVariableKernel {
  double cost_ns(const KernelInit&) const { return 100; }
  void operator()(KernelContext& context) const;
};

/// Another tensor of the same value, in a buffer of the device's that nobody else has.
using CopyTensor = FunctionRef<AnyTensor(const AnyTensor&)>;

/// The variable behind input 0 takes the value of input 1, or a copy of it where others may write to that.
void assign_variable(const KernelContext& context, const Assign::Attrs& attrs, CopyTensor copy);

/// The variable behind input `i`. Fails if it holds another element type.
VariableState& variable_input(const KernelContext& context, int i, DType dtype);
/// Fails unless `value` has exactly the shape of the variable's value.
void require_same_shape(const KernelContext& context, const AnyTensor& variable, const AnyTensor& value,
                        const char* what);
/// Fails unless input `i`, a hyperparameter, is a scalar.
void require_scalar(const KernelContext& context, int i);

}  // namespace dflow::detail
