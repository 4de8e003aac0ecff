#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/kernels/kernel_context.hpp>

#include <span>

namespace dflow {

/// What a kernel is made from: its node and the device it will run on. Called once per node and plan, not per step.
struct KernelInit {
  const Node& node;
  std::span<const OutputInfo> inputs;  ///< element type and inferred shape of each input
  const DeviceContext& device;
};

/// The code of one node on one device.
///
/// Thread safety: `run` is const and may be called for several steps at once; what a kernel keeps across steps it guards
/// itself.
/// Errors: `run` throws `Error`; the executor adds op, node, device and source line, and cancels the step.
class AnyKernel {
 public:
  virtual ~AnyKernel() = default;
  AnyKernel() = default;
  AnyKernel(const AnyKernel&) = delete;
  AnyKernel& operator=(const AnyKernel&) = delete;

  /// Computes the outputs from the inputs; never waits for another node, thread or message.
  virtual void run(KernelContext& context) const = 0;
  /// A rough time in nanoseconds of one run, from the inferred shapes: decides what is worth another thread.
  virtual double cost_ns() const noexcept { return 1000.0; }
};

/// A kernel that finishes later: a receive, a dequeue, a remote call.
class AsyncKernel : public AnyKernel {
 public:
  using Done = UniqueFunction<void(Status)>;

  /// Starts the work and returns at once; calls `done` exactly once, from any thread, when the outputs are set.
  virtual void run_async(KernelContext& context, Done done) const = 0;
  void run(KernelContext& context) const final;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/kernel.ipp>
#endif
