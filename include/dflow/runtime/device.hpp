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
/// third party adds a device by deriving from this class (docs/adding-a-device.md).
///
/// A device may compute at once, in the thread that runs a kernel, or later, in an order of its own (a stream). In the
/// latter case
/// - its kernels return when their work is issued, with outputs allocated;
/// - `context().memory` orders copies after the work on their source;
/// - `context().release` keeps the tensors that a step releases until the work issued so far has passed;
/// - `begin_step` gives a step of its own class. Its `status_async` says when the work issued so far is done, and how
///   it ended. The kernel of Send asks it, because others would compute with the output of a kernel that failed.
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

  /// The description of the device for passes and peers, read from its context. Devices with one `DeviceMemory` are in
  /// one memory.
  virtual DeviceInfo info() const;

  /// The kernels that the device brings itself, asked after the kernels of a session; null for none.
  virtual const KernelTable* kernels() const noexcept { return nullptr; }

  /// Computes collectives between this device and the other devices of this process that return the same object. It
  /// lives as long as the device. Null: each collective is made of ordinary nodes.
  virtual DeviceCollectives* collectives() const noexcept { return nullptr; }

  /// Called before the first kernel of a step's part runs here. Null if the device keeps nothing per step.
  virtual std::unique_ptr<DeviceStep> begin_step() { return nullptr; }
  /// Called after the last kernel of the part has returned. Calls `done` when all work that the kernels issued is done,
  /// with the first error of the work. An exception, or a completion that is dropped, ends the part with its error. The
  /// default asks the step, if there is one.
  virtual void end_step_async(DeviceStep* step, StepDone done);

  /// Gives cached memory back where it came from.
  virtual void release_cached_memory();

 protected:
  DeviceContext context_;
};

}  // namespace dflow
