#pragma once

/// Public: the base classes of kernels, for kernels of any op.

#include <dflow/base/threads/completion.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <cstddef>
#include <span>

namespace dflow {

struct KernelEntry;
class KernelTables;

/// The arguments of a kernel's factory: the node and the device that it will run on. The factory is called once per
/// node and plan, not per step.
struct KernelInit {
  const Node& node;
  std::span<const OutputInfo> inputs;  ///< element type and inferred shape of each input
  const DeviceContext& device;
  const KernelEntry* entry = nullptr;  ///< the row of the kernel table that it is made by
  const KernelTables* tables =
      nullptr;  ///< of the device, for a kernel that runs others; null where they are not known
};

/// The properties of a kernel that the executor must know.
struct KernelTraits {
  /// The kernel divides a long run among the pool's threads itself. Kernels that do not are run side by side.
  bool splits = false;
  /// The kernel keeps state across steps in itself: it is made once for (device, node) and shared by all plans of a
  /// session. State that other nodes may ask for, save or share is a resource instead.
  bool keeps_state = false;
  /// The kernel runs although an input is dead. Any other node with a dead input is passed over, and its outputs are
  /// dead.
  bool sees_dead_inputs = false;
  /// An output may be dead although all inputs are alive.
  bool makes_dead_outputs = false;
  /// The kernel is asynchronous, and the work that it starts may start it again. The executor runs it after all other
  /// ready work, the last one first, so a tree of calls is worked on along one path and not level by level.
  bool nests = false;
  /// For a device that records work (`WorkRecorder`): the kernel issues all work to one stream. The work depends only
  /// on the node, the shapes of its inputs, and the elements of its inputs in host memory. Ignored for a stateful op.
  bool repeats = false;
};

/// The code of one node on one device.
///
/// Thread safety: `run` is const and may be called for several steps at once. The kernel itself guards the state that
/// it keeps across steps.
/// Errors: `run` throws `Error`; the executor adds op, node, device and source line, and cancels the step.
class AnyKernel {
 public:
  virtual ~AnyKernel() = default;
  AnyKernel() = default;
  AnyKernel(const AnyKernel&) = delete;
  AnyKernel& operator=(const AnyKernel&) = delete;

  /// Computes the outputs from the inputs; never waits for another node, thread or message.
  virtual void run(KernelContext& context) const = 0;
  /// A rough time in nanoseconds of one run, from the inferred shapes. It decides whether the run is worth another
  /// thread. 0: the time is estimated from the flops and bytes of the kernel table's row (`estimated_ns`).
  virtual double cost_ns() const noexcept { return 0; }
  const KernelTraits& traits() const noexcept { return traits_; }
  /// True for an AsyncKernel.
  bool is_async() const noexcept { return is_async_; }

 protected:
  explicit AnyKernel(const KernelTraits& traits) noexcept : traits_(traits) {}

 private:
  friend class AsyncKernel;
  KernelTraits traits_;
  bool is_async_ = false;
};

/// A kernel that finishes later: a receive, a dequeue, a remote call.
class AsyncKernel : public AnyKernel {
 public:
  /// The completion that a kernel calls when its outputs are set, or with the error that ended the kernel.
  using Done = Completion;

  AsyncKernel() noexcept { is_async_ = true; }

  /// Starts the work and returns at once; calls `done` from any thread when the outputs are set. `context` lives until
  /// then.
  virtual void run_async(KernelContext& context, Done done) const = 0;
  void run(KernelContext& context) const final;

 protected:
  explicit AsyncKernel(const KernelTraits& traits) noexcept : AnyKernel(traits) { is_async_ = true; }
};

}  // namespace dflow
