#pragma once

/// Public: work that a device of your own records once and issues again.

#include <dflow/kernels/contract/kernel_context.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

/// Nodes that a plan runs one after the other in one thread. The kernel of each node `repeats`: the nodes issue the
/// same work whenever their inputs have the same shapes, and inputs in host memory also the same elements.
struct Stretch {
  std::vector<SlotId> inputs;        ///< made before it, read in the device's memory
  std::vector<SlotId> host_inputs;   ///< made before it, read in host memory
  std::vector<SlotId> outputs;       ///< made by it in the device's memory, and there when it is over
  std::vector<SlotId> host_outputs;  ///< the same in host memory
};

/// One run of a stretch in a step. Errors: throws the errors of the kernels.
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
  /// Runs the kernels with the given services and slots: as many slots as the step has, with the inputs in them.
  /// Nothing of the step changes. False if the kernels have not come to the end, because the step must stop.
  virtual bool rehearse(const StepContext& services, std::span<AnyTensor> slots) = 0;
  /// Releases the tensors that the stretch is the last to read. Called instead of `issue`, before the outputs are set.
  virtual void release() = 0;
  /// The services of the step.
  virtual const StepContext& services() const = 0;

  std::size_t num_slots() const noexcept { return slots_.size(); }
  const AnyTensor& input(SlotId slot) const noexcept { return slots_[slot.position()]; }
  void set_output(SlotId slot, AnyTensor tensor) noexcept { slots_[slot.position()] = std::move(tensor); }

 protected:
  ~StretchRun() = default;

 private:
  const std::span<AnyTensor> slots_;
};

/// The recorder of a device that can issue the work of a stretch again as one unit (a CUDA graph), without running the
/// kernels.
///
/// Thread safety: safe.
class WorkRecorder {
 public:
  /// The device's record of one stretch. Any number of steps may run it at once.
  class Record {
   public:
    Record() = default;
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    virtual ~Record() = default;

    /// Runs the stretch, by its kernels or without them.
    virtual void run(StretchRun& run) = 0;
  };

  WorkRecorder() = default;
  WorkRecorder(const WorkRecorder&) = delete;
  WorkRecorder& operator=(const WorkRecorder&) = delete;
  virtual ~WorkRecorder() = default;

  /// The fewest nodes of a stretch that is worth recording.
  virtual std::size_t min_nodes() const noexcept = 0;
  virtual std::unique_ptr<Record> record(Stretch stretch) = 0;
};

}  // namespace dflow
