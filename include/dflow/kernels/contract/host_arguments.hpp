#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/node.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <vector>

namespace dflow {

/// Strings and handles are objects of the host wherever they are used.
constexpr bool is_host_object(DType dtype) noexcept { return dtype == DType::string || is_handle(dtype); }

/// One flag per edge: whether the input is in host memory wherever the node's device computes. `entry.host_inputs`
/// gives the same flags by argument of the op's signature. Empty: no input is.
std::vector<bool> host_inputs_of(const Node& node, const KernelEntry& entry);
/// The same for outputs.
std::vector<bool> host_outputs_of(const Node& node, const KernelEntry& entry);

}  // namespace dflow
