// expect: no matching function|cannot convert|could not convert|no viable conversion
#include <dflow/graph/graph.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

// The number of a slot of a step is no number of a node.
const dflow::Node& node(const dflow::Graph& graph, const dflow::KernelContext::Wiring& wiring) {
  return graph.node(wiring.first_output);
}
