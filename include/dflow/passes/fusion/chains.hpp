#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace dflow {

/// By device: whether it runs connected elementwise nodes as one (`ElementwiseChain`), and which nodes. They are the
/// nodes whose kernel says its formula (`KernelEntry::formula`).
///
/// Thread safety: immutable.
class Chains {
 public:
  Chains() = default;
  /// `kernels` by device, which must outlive it.
  explicit Chains(std::span<const KernelTables> kernels);

  bool empty() const noexcept;
  /// The formula that a node of that device computes of each element; null if the node does not go into a chain.
  const Formula* formula_of(const StepNode& node) const;
  /// Whether a kernel of the op, for any of the devices, says that it may wait (`KernelEntry::may_wait`).
  bool may_wait(const OpDef& op) const;

 private:
  struct OfDevice {
    const KernelTables* kernels = nullptr;
    std::string_view chained_type;  ///< empty: it runs no chains
  };
  std::vector<OfDevice> by_device_;
};

/// Puts one node in the place of elementwise nodes of one device and one inferred shape that read one another, as
/// many as a kernel has arguments for.
///
/// - An edge that a node outside reads, or that is fetched, stays an output.
/// - A node that is fed, is a target, or stands between two members stays outside; no node waits for its own readers.
/// - The new node is named after its members and has the line of the first.
/// - Late edges are received tensors, results of calls, elements of queues and, if `feeds_come_apart`, feeds. All
///   members wait for the same late edge, or none does.
///
/// `check` is called now and then; null: there is nothing to call. Returns true if it has changed anything.
bool chain(StepGraph& graph, const Chains& chains, bool feeds_come_apart = false, FunctionRef<void()>* check = nullptr);

}  // namespace dflow
