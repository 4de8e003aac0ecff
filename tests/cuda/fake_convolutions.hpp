#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace dflow::testing {

class FakeDriver;

/// The cuDNN of a `FakeDriver`: checks each call against the library's rules, and computes it on the host as it was
/// recorded. It has no way to compute with a dilation of 3.
///
/// Thread safety: as Convolutions.
class FakeConvolutions final : public cuda::Convolutions {
 public:
  explicit FakeConvolutions(FakeDriver& driver) : driver_(driver) {}

  std::vector<cuda::ConvolutionCall> made() const;  ///< the calls for which plans were made, in order
  std::uint64_t num_declined() const;
  std::uint64_t num_issued() const;
  std::size_t num_alive() const;

  cuda::ErrorCode make_convolution_plan(int device, const cuda::ConvolutionCall& call, std::size_t max_workspace_bytes,
                                        cuda::ConvolutionPlanHandle& plan,
                                        std::size_t& workspace_bytes) noexcept override;
  cuda::ErrorCode destroy_convolution_plan(int device, cuda::ConvolutionPlanHandle plan) noexcept override;
  cuda::ErrorCode run_convolution(int device, cuda::ConvolutionPlanHandle handle,
                                  const cuda::ConvolutionOperands& operands, std::span<const cuda::MemoryUse> uses,
                                  cuda::StreamHandle stream) noexcept override;

 private:
  struct Plan {
    cuda::ConvolutionCall call;
    int device = 0;
    std::size_t workspace_bytes = 0;
  };

  FakeDriver& driver_;
  mutable std::mutex mutex_;
  std::uintptr_t next_handle_ = 1;
  std::map<std::uintptr_t, Plan> plans_;
  std::vector<cuda::ConvolutionCall> made_;
  std::uint64_t num_declined_ = 0, num_issued_ = 0;
};

}  // namespace dflow::testing
