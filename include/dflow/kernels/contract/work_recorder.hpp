#pragma once

/// Public: work that a device of your own records once and issues again.

#include <dflow/kernels/contract/kernel_context.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

/// Nodes that a plan runs one after the other in one thread, each of which `repeats`: they issue the same work whenever
/// what they read has the same shapes, and the same elements where it is in host memory.
struct Stretch {
  std::vector<SlotId> inputs;        ///< made before it, read in the device's memory
  std::vector<SlotId> host_inputs;   ///< made before it, read in host memory
  std::vector<SlotId> outputs;       ///< made by it in the device's memory, and there when it is over
  std::vector<SlotId> host_outputs;  ///< the same in host memory
};

/// One run of a stretch in a step. Errors: throws what a kernel throws.
///
/// Thread safety: used by one thread; others may read the slots of the inputs meanwhile.
class StretchRun {
 public:
  /// The step's slots.
  explicit StretchRun(std::span<AnyTensor> slots) noexcept : slots_(slots) {}
  StretchRun(const StretchRun&) = delete;
  StretchRun& operator=(const StretchRun&) = delete;

  /// Runs the kernels.
  virtual void issue() = 0;
  /// Runs the kernels with these services and slots, as many as the step has, in which the inputs are. Nothing of the
  /// step changes. False if they have not come to the end, because the step must stop.
  virtual bool rehearse(const StepContext& services, std::span<AnyTensor> slots) = 0;
  /// Lets go of what the stretch is the last to read. Instead of `issue`, before the outputs are set.
  virtual void release() = 0;
  /// Of the step.
  virtual const StepContext& services() const = 0;

  std::size_t num_slots() const noexcept { return slots_.size(); }
  const AnyTensor& input(SlotId slot) const noexcept { return slots_[slot.position()]; }
  void set_output(SlotId slot, AnyTensor tensor) noexcept { slots_[slot.position()] = std::move(tensor); }

 protected:
  ~StretchRun() = default;

 private:
  const std::span<AnyTensor> slots_;
};

/// Of a device that can issue again as one what the kernels of a stretch have issued before (a CUDA graph), without
/// running them.
///
/// Thread safety: safe.
class WorkRecorder {
 public:
  /// What the device keeps of one stretch, which any number of steps may run at once.
  class Record {
   public:
    Record() = default;
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    virtual ~Record() = default;

    /// Has the stretch run, by its kernels or without.
    virtual void run(StretchRun& run) = 0;
  };

  WorkRecorder() = default;
  WorkRecorder(const WorkRecorder&) = delete;
  WorkRecorder& operator=(const WorkRecorder&) = delete;
  virtual ~WorkRecorder() = default;

  /// Shorter stretches are not worth it.
  virtual std::size_t min_nodes() const noexcept = 0;
  virtual std::unique_ptr<Record> record(Stretch stretch) = 0;
};

}  // namespace dflow
