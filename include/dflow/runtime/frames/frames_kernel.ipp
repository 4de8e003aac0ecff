#pragma once

#include <dflow/runtime/frames/frame_run.hpp>
#include <dflow/runtime/frames/frames_kernel.hpp>
#include <dflow/runtime/plan/plan.hpp>

#include <utility>

namespace dflow {

namespace detail {

class FramesKernel final : public AsyncKernel {
 public:
  explicit FramesKernel(std::shared_ptr<const FramePlan> plan)
      : AsyncKernel(KernelTraits{.makes_dead_outputs = true}), plan_(std::move(plan)) {}

  void run_async(KernelContext& context, Done done) const override {
    NoWaiting::check();
    std::make_shared<FrameLoop>(plan_, context, std::move(done))->start();
  }

 private:
  std::shared_ptr<const FramePlan> plan_;
};

}  // namespace detail

std::unique_ptr<AnyKernel> make_frames_kernel(const StepGraph& body, const PlanOptions& options) {
  return std::make_unique<detail::FramesKernel>(detail::FramePlan::compile(body, options));
}

}  // namespace dflow
