#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/session/compiled_step.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

namespace dflow {

/// The limits that end a run from outside, counted from the moment of the call: compiling counts.
struct StepLimits {
  Clock::time_point deadline = Clock::never;
  std::stop_token stop = {};

  bool any() const noexcept { return deadline != Clock::never || stop.stop_possible(); }
};

/// Makes plans for the devices of this process, for one session: its own, or the share that another task gives to this
/// task. All its plans share kernels that keep state, and constants in the devices' memories.
///
/// Thread safety: safe.
class PartCompiler {
 public:
  struct Options {
    ThreadPool* pool = nullptr;  ///< runs the units of steps
    Clock* clock = nullptr;
    InterOp inter_op = InterOp::automatic;
    bool reuse_buffers = true;
    bool joins_nodes = true;
  };

  /// Errors: InvalidArgument for a table of kernels that does not serve its device.
  PartCompiler(std::vector<std::shared_ptr<Device>> devices, const KernelTables& kernels, const Options& options);

  std::span<const std::shared_ptr<Device>> devices() const noexcept { return devices_; }
  /// By device.
  std::span<const KernelTables> kernels() const noexcept { return kernels_; }
  ThreadPool& pool() const noexcept { return *options_.pool; }

  /// `part.device` is the position among `devices`; `streams` is as in `PlanOptions`. `check` is called now and then;
  /// null: no calls. Errors: the errors of `Plan::compile`, and exceptions of `check`.
  CompiledStep::Part compile(Partition part, const StepLimits& limits, FunctionRef<void()>* check,
                             bool streams = false);

 private:
  std::vector<std::shared_ptr<Device>> devices_;
  std::vector<KernelTables> kernels_;
  Options options_;
  KeptKernels kept_;
  DeviceConstants constants_;
};

}  // namespace dflow
