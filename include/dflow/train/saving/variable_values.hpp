#pragma once

#include <dflow/ops/state/variable.hpp>
#include <dflow/session/session.hpp>

#include <vector>

namespace dflow::train {

/// The values of all variables that a graph has when this is made, kept in this process, and set again. Adds its nodes
/// once.
///
/// Thread safety: one thread at a time; for values of one moment, between steps.
/// Errors: InvalidArgument for a graph without variables; those of a step.
class VariableValues {
 public:
  explicit VariableValues(GraphStore& graph);

  /// Blocks. Keeps what they are now instead of what was kept.
  void read(Session& session);
  bool has_values() const noexcept { return !values_.empty(); }
  /// Blocks. Sets them to what was kept. Errors: FailedPrecondition before `read`.
  void assign(Session& session) const;

 private:
  std::vector<AnyOutput> reads_, fed_;
  Operation assign_;
  std::vector<AnyTensor> values_;
};

}  // namespace dflow::train
