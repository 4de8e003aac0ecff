#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/state/variable.hpp>

#include <span>

namespace dflow::train::detail {

/// Updates a 16-bit variable through a float copy of it, since most updates are less than its last digit. An element
/// of the copy counts if it rounds to the variable's element; otherwise, as at first, the variable's element replaces
/// it.
class MasterCopy {
 public:
  /// `master` is a float variable of the same shape.
  MasterCopy(const AnyVariable& variable, const AnyVariable& master) : variable_(variable), master_(master) {
    // Reads of their own: the nodes before this step may have updated the variable.
    const AnyOutput now = variable.read(), held = master_.read();
    const AnyOutput is_held = build<Equal>({rounded(held), now});
    in_step_ = master_.assign(build<Select>({is_held, held, dflow::detail::widened(now)}));
  }

  /// `update` builds the update of the copy that it is given.
  template <class Update>
  Operation apply(const Update& update) const {
    GraphStore& graph = *master_.handle().graph();
    const auto after = [&](const Operation& operation) {
      return enter_control_dependencies(graph, std::span(&operation, 1));
    };
    const Operation updated = [&] {
      const ScopeGuard ordered = after(in_step_);
      return update(master_);
    }();
    const ScopeGuard ordered = after(updated);
    return variable_.assign(rounded(master_.read()));
  }

 private:
  AnyOutput rounded(const AnyOutput& x) const { return dflow::detail::cast_to(x, variable_.dtype()); }

  AnyVariable variable_, master_;
  Operation in_step_;
};

}  // namespace dflow::train::detail
