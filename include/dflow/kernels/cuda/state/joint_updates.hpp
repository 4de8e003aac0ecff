#pragma once

#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/kernels/cuda/bodies/joint_updates.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/state/update_call.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dflow::cuda {

/// Updates of several variables, by one launch for as many as its arguments hold. A variable that comes again is
/// updated again by a launch behind. If a member's inputs or variables are wrong, nothing is written.
///
/// Thread safety: immutable.
class JointUpdate final : public AnyKernel {
 public:
  /// The nodes of `members` must outlive it.
  JointUpdate(std::span<const KernelInit> members, const VariableUpdateCall& call, const KernelFunction& function);

  /// Throws the errors of `update_variables`, with the node of the update.
  void run(KernelContext& context) const override;

 private:
  template <int num_variables>
  void run_with(KernelContext& context) const;

  std::vector<const Node*> members_;
  VariableUpdateCall call_;
  const KernelFunction& function_;
};

/// The bytes of a node's gradient, which waits for the other gradients. None if the size is not known, or is so large
/// that a launch of its own costs less than the memory.
std::optional<std::int64_t> held_gradient_bytes(const KernelInit& init);

/// The joint update of the op's nodes; `Update` is of T.
template <class O, class Update, class T>
constexpr JointKernel joint_update() {
  constexpr dflow::detail::UpdateInputs inputs = update_call<O>({}).inputs;
  static_assert(inputs.num_variables == Update::num_variables);
  JointKernel joint;
  for (int i = 0; i < inputs.num_factors(); ++i) joint.same_inputs |= std::uint64_t{1} << inputs.factor(i);
  joint.max_held_bytes = std::int64_t{32} << 20;
  joint.held_bytes = &held_gradient_bytes;
  joint.make = [](std::span<const KernelInit> members) -> std::unique_ptr<AnyKernel> {
    return std::make_unique<JointUpdate>(members, update_call<O>(members.front().node.attrs_as<O>()),
                                         kernel_function<JointUpdateBody<Update, T>>());
  };
  return joint;
}

}  // namespace dflow::cuda
