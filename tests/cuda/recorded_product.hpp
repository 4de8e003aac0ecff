#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <string>
#include <vector>

namespace dflow::testing {

/// The violation of cuBLASLt's manual by the call; empty if none.
std::string what_is_wrong_with(const cuda::ProductCall& call);
/// All memory of the operands that the call reads and writes.
std::vector<cuda::MemoryUse> memory_of(const cuda::ProductCall& call, const cuda::ProductOperands& operands);
/// Computes the call on the host as it was recorded: from column-major matrices, with their leading dimensions, strides
/// and operations; float in TF32 has 10 bits after the point. The workspace is written.
void compute_product(const cuda::ProductCall& call, const cuda::ProductOperands& operands);

}  // namespace dflow::testing
