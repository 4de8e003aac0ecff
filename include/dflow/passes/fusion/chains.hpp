#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace dflow {

/// By device, whether it runs elementwise nodes that hang together as one (`ElementwiseChain`), and which: those whose
/// kernel says what it computes (`KernelEntry::formula`).
///
/// Thread safety: immutable.
class Chains {
 public:
  Chains() = default;
  /// `kernels` by device, which must outlive it.
  explicit Chains(std::span<const KernelTables> kernels);

  bool empty() const noexcept;
  /// What a node of that device computes of each element; null where it does not go into a chain.
  const Formula* formula_of(const StepNode& node) const;
  /// A kernel of that op, for any of these devices, says so (`KernelEntry::may_wait`).
  bool may_wait(const OpDef& op) const;

 private:
  struct OfDevice {
    const KernelTables* kernels = nullptr;
    std::string_view chained_type;  ///< empty: it runs no chains
  };
  std::vector<OfDevice> by_device_;
};

/// Puts one node in the place of elementwise nodes of one device and one inferred shape that read one another, as many
/// as a kernel has arguments for. What a node outside reads or fetches stays an output; what is fed, is a target, or
/// stands between two of them stays outside, and no node waits for what waits for it. The node is named after its
/// members and has the line of the first. What comes when something else has come (what is received, the results of
/// calls, elements of queues and, if `feeds_come_apart`, feeds) all members wait for, or none. `check` is called now
/// and then; null: there is nothing to call.
///
/// True if it has changed anything.
bool chain(StepGraph& graph, const Chains& chains, bool feeds_come_apart = false, FunctionRef<void()>* check = nullptr);

}  // namespace dflow
