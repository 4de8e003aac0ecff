#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/cuda/grid/error_slot.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::cuda {

/// A GPU's part of a step: the errors that its kernels find while they run. They go to a slot in the GPU's memory,
/// which is read when the step asks how it has ended.
///
/// Thread safety: all functions may be called from any thread.
class CudaStep final : public DeviceStep {
 public:
  /// Turns an error in the slot into a status.
  using Decode = UniqueFunction<Status(const ErrorSlot&)>;

  CudaStep(CudaMemory& memory, std::string device_name) : memory_(memory), device_name_(std::move(device_name)) {}
  ~CudaStep() override;

  /// Errors, given to `done`: the error of the first kernel that noted one, located at its node; Unavailable, naming
  /// the device, if the earlier work has failed as a whole; the error of a check.
  void status_async(StatusDone done) override;

  struct Note {
    ErrorSlot* slot = nullptr;
    std::uint32_t kernel = 0;
  };
  /// For a kernel that may find errors: where it notes them, and as which kernel. `decode` is called for each step
  /// that has found an error, by one thread at a time.
  /// Throws ResourceExhausted.
  Note note(const KernelContext& context, Decode decode);
  /// Notes the errors of the kernels of `captured`, which were launched again just now, as errors of this step. Throws
  /// the driver's error.
  void take_errors_of(const std::shared_ptr<CudaStep>& captured);
  /// Says whether `subject` has done the work that a node has issued by it. Called when the work of the step is done,
  /// or has ended with error `work`.
  using Check = std::function<Status(ErrorCode work)>;
  /// Only the last check for a subject is called.
  void check_at_end(const Node& node, std::shared_ptr<const void> subject, Check check);
  /// The slot for errors of kernels that were issued before; null if none of them can have noted an error.
  const ErrorSlot* noted() const;

 private:
  struct Noted {
    Decode decode;
    const Node* node;
  };

  struct Checked {
    std::shared_ptr<const void> subject;
    Check check;
    const Node* node;
  };

  void make_slot();
  Status decode(std::size_t kernel, const ErrorSlot& found);
  Status located(Status status, const Node& node) const;
  Status status_from(ErrorCode code, const AnyTensor* slot) noexcept;
  Status found_in(const ErrorSlot& slot);
  Status status_of_check(const Checked& checked, ErrorCode work) const noexcept;

  CudaMemory& memory_;
  const std::string device_name_;
  mutable std::mutex mutex_;
  AnyTensor slot_;  ///< uint8 [sizeof(ErrorSlot)] in the GPU's memory, once a kernel needs it
  std::vector<Noted> noted_;
  std::vector<Checked> checks_;
};

}  // namespace dflow::cuda
