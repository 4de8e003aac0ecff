#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace dflow::testing {

/// The violation of cuFFT's manual by the call; empty if none.
std::string what_is_wrong_with(const cuda::TransformCall& call);
/// How much memory the model says that the call takes.
std::size_t workspace_of(const cuda::TransformCall& call);
/// All memory that the call reads and writes.
std::vector<cuda::MemoryUse> memory_of(const cuda::TransformCall& call, void* from, void* to);
/// Computes the call on the host, in double, by the sum that defines it. Coefficients of real lines are used up.
void compute_transform(const cuda::TransformCall& call, void* from, void* to);

}  // namespace dflow::testing
