#pragma once

/// Public: the class that a device of your own derives from.

#include <dflow/base/status.hpp>
#include <dflow/base/threads/completion.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <memory>
#include <string>

namespace dflow {

/// A place where kernels run: a name, an allocator, resources, a kernel table, and the ways in and out of its memory. A
/// third party adds one by deriving from this class (docs/adding-a-device.md).
///
/// A device may compute at once, in the thread that runs a kernel, or later, in an order of its own (a stream). In the
/// latter case
/// - its kernels return when their work is issued, with outputs allocated;
/// - `context().memory` orders copies after the work on their source;
/// - `context().release` keeps what a step lets go of until the work that was issued has passed;
/// - `begin_step` gives a step of its own class, whose `status_async` says when the work issued so far is done, and how
///   it ended: the kernel of Send asks, since others would compute with what a kernel that failed has left behind.
///
/// Thread safety: all functions may be called from any thread.
class Device {
 public:
  using StepDone = Completion;

  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device();

  const std::string& name() const noexcept { return context_.name; }
  const std::string& type() const noexcept { return context_.type; }
  const DeviceContext& context() const noexcept { return context_; }

  /// What passes and peers know of it, read from its context: devices with one `DeviceMemory` are in one memory.
  virtual DeviceInfo info() const;

  /// The kernels that it brings itself, after those that a session was given; null for none.
  virtual const KernelTable* kernels() const noexcept { return nullptr; }

  /// What computes collectives between it and others of this process that give the same one; null: each of them is made
  /// of ordinary nodes. It lives as long as the device.
  virtual DeviceCollectives* collectives() const noexcept { return nullptr; }

  /// Before the first kernel of a step's part runs here. Null where nothing is kept per step.
  virtual std::unique_ptr<DeviceStep> begin_step() { return nullptr; }
  /// After the last kernel of the part has returned: calls `done`, when all that they issued is done, with the first
  /// error of that work. What is thrown, and a completion that is dropped, ends the part with that error. The default
  /// asks the step, where there is one.
  virtual void end_step_async(DeviceStep* step, StepDone done);

  /// Gives cached memory back where it came from.
  virtual void release_cached_memory();

 protected:
  DeviceContext context_;
};

}  // namespace dflow
