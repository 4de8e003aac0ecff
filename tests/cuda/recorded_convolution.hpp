#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <string>
#include <vector>

namespace dflow::testing {

/// The violation of cuDNN's manual by the call; empty if none.
std::string what_is_wrong_with(const cuda::ConvolutionCall& call);
/// All memory of the operands that the call reads and writes.
std::vector<cuda::MemoryUse> memory_of(const cuda::ConvolutionCall& call, const cuda::ConvolutionOperands& operands);
/// Computes the call on the host as it was recorded, by the sum that defines it; float in TF32 has 10 bits after the
/// point. The workspace is written.
void compute_convolution(const cuda::ConvolutionCall& call, const cuda::ConvolutionOperands& operands);

}  // namespace dflow::testing
