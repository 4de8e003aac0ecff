#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/internal/member_collective.hpp>

#include <utility>

namespace dflow::cuda {

namespace detail {

class MemberKernel final : public AsyncKernel {
 public:
  MemberKernel(std::shared_ptr<DeviceGroup> group)
      : AsyncKernel(KernelTraits{.sees_dead_inputs = true, .makes_dead_outputs = true}), group_(std::move(group)) {}

  void run_async(KernelContext& context, Done done) const override {
    CudaStep& step = step_of(context);
    if (step.noted() == nullptr) return group_->arrive(context, std::move(done));
    step.status_async([group = group_, &context, done = std::move(done)](Status status) mutable {
      if (!status.ok()) return done(std::move(status));
      group->arrive(context, std::move(done));
    });
  }

 private:
  const std::shared_ptr<DeviceGroup> group_;
};

}  // namespace detail

std::unique_ptr<AnyKernel> make_member_kernel(const KernelInit& init) {
  const std::shared_ptr<DeviceGroup>& group = init.device.state_as<CudaState>().seat.group();
  if (group == nullptr)
    throw_error(Status::internal(str_cat(init.device.name, " computes no collectives with others")));
  return std::make_unique<detail::MemberKernel>(group);
}

}  // namespace dflow::cuda
