#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <vector>

namespace dflow {

/// Strings and handles are objects of the host wherever they are used.
constexpr bool is_host_object(DType dtype) noexcept { return dtype == DType::string || is_handle(dtype); }

/// Which inputs of a node are in host memory wherever its device computes, one per edge: as `entry.host_inputs` says by
/// argument of the op's signature. Empty: none is.
std::vector<bool> host_inputs_of(const Node& node, const KernelEntry& entry);
/// The same for outputs.
std::vector<bool> host_outputs_of(const Node& node, const KernelEntry& entry);

}  // namespace dflow
