#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace dflow::testing {

/// The violation of cuSOLVER's and cuBLAS's manuals by the call; empty if none.
std::string what_is_wrong_with(const cuda::SolverCall& call);
/// How much memory the model says that the call takes.
std::size_t workspace_of(const cuda::SolverCall& call);
/// All memory of the operands that the call reads and writes.
std::vector<cuda::MemoryUse> memory_of(const cuda::SolverCall& call, const cuda::SolverOperands& operands);
/// Computes the call on the host as it was recorded, in double, by Eigen. It writes all memory that a library leaves
/// undefined: the workspace, the elements beside a triangle, a matrix that is used up.
void compute_solver(const cuda::SolverCall& call, const cuda::SolverOperands& operands);

}  // namespace dflow::testing
