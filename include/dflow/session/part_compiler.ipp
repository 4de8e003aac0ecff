#pragma once

#include <dflow/session/part_compiler.hpp>

#include <utility>

namespace dflow {

PartCompiler::PartCompiler(std::vector<std::shared_ptr<Device>> devices, const KernelTables& kernels,
                           const Options& options)
    : devices_(std::move(devices)), options_(options) {
  for (const std::shared_ptr<Device>& device : devices_) {
    kernels_.push_back(kernels.for_device(device->context(), device->kernels()));
  }
}

CompiledStep::Part PartCompiler::compile(Partition part, const StepLimits& limits, FunctionRef<void()>* check,
                                         bool streams) {
  const std::shared_ptr<Device>& device = devices_[part.device];
  PlanOptions plan;
  plan.kernels = &kernels_[part.device];
  plan.device = &device->context();
  plan.device_owner = device;
  plan.kept = &kept_;
  plan.inter_op = options_.inter_op;
  plan.num_threads = options_.pool->num_threads();
  plan.reuse_buffers = options_.reuse_buffers;
  plan.joins_nodes = options_.joins_nodes;
  plan.streams = streams;
  plan.check = check;
  plan.constants = &constants_;
  plan.clock = options_.clock;
  plan.deadline = limits.deadline;
  plan.stop = limits.stop;
  return {device, Plan::compile(std::move(part.graph), plan), std::move(part.feeds), std::move(part.fetches)};
}

}  // namespace dflow
