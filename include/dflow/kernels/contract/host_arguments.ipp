#pragma once

#include <dflow/graph/op_args.hpp>
#include <dflow/kernels/contract/host_arguments.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow {

namespace detail {

std::vector<bool> edges_of_args(const Node& node, std::size_t num_args, std::uint64_t args, std::size_t num_edges,
                                ArgRange (*range_of_arg)(const Node&, std::size_t)) {
  if (args == 0) return {};
  std::vector<bool> edges(num_edges);
  for (std::size_t a = 0; a < num_args && a < 64; ++a) {
    if ((args >> a & 1u) == 0) continue;
    const ArgRange range = range_of_arg(node, a);
    for (std::size_t e = range.first; e < range.first + range.size; ++e) edges[e] = true;
  }
  return edges;
}

}  // namespace detail

std::vector<bool> host_inputs_of(const Node& node, const KernelEntry& entry) {
  return detail::edges_of_args(node, node.op->inputs.size(), entry.host_inputs, node.inputs.size(), &input_range);
}

std::vector<bool> host_outputs_of(const Node& node, const KernelEntry& entry) {
  return detail::edges_of_args(node, node.op->outputs.size(), entry.host_outputs, node.outputs.size(), &output_range);
}

}  // namespace dflow
