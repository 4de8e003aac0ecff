#pragma once

#include <dflow/ops/state/variable.hpp>
#include <dflow/session/session.hpp>

#include <vector>

namespace dflow::train {

/// Keeps the values of all variables of a graph in this process, and sets them again. The constructor takes the
/// variables that the graph has then, and adds its nodes once.
///
/// Thread safety: one thread at a time; for values of one moment, between steps.
/// Errors: InvalidArgument for a graph without variables; errors of a step.
class VariableValues {
 public:
  explicit VariableValues(GraphStore& graph);

  /// Blocks. Keeps the present values instead of the kept values.
  void read(Session& session);
  bool has_values() const noexcept { return !values_.empty(); }
  /// Blocks. Sets the variables to the kept values. Errors: FailedPrecondition before `read`.
  void assign(Session& session) const;

 private:
  std::vector<AnyOutput> reads_, fed_;
  Operation assign_;
  std::vector<AnyTensor> values_;
};

}  // namespace dflow::train
