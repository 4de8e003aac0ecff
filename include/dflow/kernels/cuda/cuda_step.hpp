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

/// What a GPU keeps for a step: the errors that its kernels find while they run. They go to a slot in the GPU's memory,
/// which is read when the step asks how it has ended.
///
/// Thread safety: all functions may be called from any thread.
class CudaStep final : public DeviceStep {
 public:
  /// What an error in the slot means.
  using Decode = UniqueFunction<Status(const ErrorSlot&)>;

  CudaStep(CudaMemory& memory, std::string device_name) : memory_(memory), device_name_(std::move(device_name)) {}
  ~CudaStep() override;

  /// Errors, given to `done`: what the first kernel that noted an error says, located at its node; Unavailable that
  /// names the device where the work before has failed as a whole; what a check says.
  void status_async(StatusDone done) override;

  struct Note {
    ErrorSlot* slot = nullptr;
    std::uint32_t kernel = 0;
  };
  /// For a kernel that may find errors: where it notes them, and as which kernel. `decode` is called for each step
  /// that has found an error, by one thread at a time.
  /// Throws ResourceExhausted.
  Note note(const KernelContext& context, Decode decode);
  /// What the kernels of `captured` note, which were launched again just now, is noted here as theirs. Throws what the
  /// driver says.
  void take_errors_of(const std::shared_ptr<CudaStep>& captured);
  /// What says whether `subject` has done what a node has issued by it, when the work of the step is done, or has ended
  /// with that error.
  using Check = std::function<Status(ErrorCode work)>;
  /// The last one for a subject is asked.
  void check_at_end(const Node& node, std::shared_ptr<const void> subject, Check check);
  /// Where kernels that were issued before may have noted an error; null if none of them can have.
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
