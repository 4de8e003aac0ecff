#pragma once

#include <dflow/kernels/contract/kernel_context.hpp>
#include <dflow/kernels/cuda/chains/chain_programs.hpp>
#include <dflow/kernels/cuda/cuda_step.hpp>
#include <dflow/kernels/cuda/device_group.hpp>
#include <dflow/kernels/cuda/graph_recorder.hpp>
#include <dflow/kernels/cuda/memory/convolution_plans.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>
#include <dflow/kernels/cuda/memory/product_plans.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

/// The device type of NVIDIA GPUs: `Kernel<Op, Cuda, T>`.
struct Cuda {
  static constexpr std::string_view type = "GPU";
  /// Its kernels of the library's ops, which issue to one stream (`KernelTraits::repeats`).
  static constexpr bool repeats = true;
  /// A device of that type that is none of ours has no state for our kernels.
  static Status check(const DeviceContext& device);
};

/// The state that the kernels of a GPU share.
class CudaState final : public DeviceState {
 public:
  CudaState(const std::shared_ptr<cuda::DeviceCore>& core, cuda::CudaAllocatorOptions options, bool tf32,
            std::size_t convolution_bytes, std::string device_name, cuda::GraphRecorder::Options recording,
            std::shared_ptr<cuda::DeviceGroup> group)
      : memory(core, options),
        recorder(memory, std::move(device_name), recording),
        products(core, cuda::max_product_workspace_bytes),
        convolutions(core, convolution_bytes),
        chains(core, 0),
        seat(std::move(group), core),
        allows_tf32(tf32),
        convolution_workspace_bytes(convolution_bytes) {}

  cuda::CudaMemory memory;
  cuda::GraphRecorder recorder;
  cuda::ProductPlans products;
  cuda::ConvolutionPlans convolutions;
  cuda::ChainPrograms chains;
  cuda::ChainCounter chain_counter;
  cuda::DeviceGroup::Seat seat;
  const bool allows_tf32;
  const std::size_t convolution_workspace_bytes;
};

namespace cuda {

inline CudaState& state_of(const KernelContext& context) { return context.device().state_as<CudaState>(); }
inline CudaStep& step_of(const KernelContext& context) { return *static_cast<CudaStep*>(context.step().device_step); }

/// The memory that issued work touches, for a driver that checks it.
class MemoryUses {
 public:
  MemoryUses() = default;
  /// The inputs of a kernel, read, and its outputs, written.
  explicit MemoryUses(const KernelContext& context);
  void add(const AnyTensor& tensor, bool writes);
  void add(const void* block, std::size_t bytes, bool writes);
  std::span<const MemoryUse> all() const noexcept {
    return many_.empty() ? std::span<const MemoryUse>(few_.data(), count_) : std::span<const MemoryUse>(many_);
  }

 private:
  // Most kernels touch few blocks and need no allocation.
  std::array<MemoryUse, 32> few_;
  std::size_t count_ = 0;
  std::vector<MemoryUse> many_;  ///< all of them, once there are more
};

/// Issues a kernel that reads the inputs of `context` and writes its outputs, `temporaries`, and the step's errors if
/// it may find any. Throws the driver's error of the launch.
void launch(const KernelContext& context, const KernelFunction& function, GridShape shape, const void* arguments,
            const ErrorSlot* errors = nullptr, std::span<const AnyTensor* const> temporaries = {});
/// The same for a kernel that touches the memory in `uses`.
void launch(const KernelContext& context, const KernelFunction& function, GridShape shape, const void* arguments,
            const MemoryUses& uses);
template <class Body>
void launch(const KernelContext& context, GridShape shape, const typename Body::Args& args,
            const ErrorSlot* errors = nullptr, std::span<const AnyTensor* const> temporaries = {}) {
  launch(context, kernel_function<Body>(), shape, &args, errors, temporaries);
}

}  // namespace cuda

}  // namespace dflow
