#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/build.hpp>
#include <dflow/op/operand.hpp>
#include <dflow/ops/state/variable.hpp>

namespace dflow {

/// Holds a tensor within one step, and within one iteration of a loop; gives a handle for the ops of variables.
struct TemporaryVariableOp : StatefulOp<"TemporaryVariable", AllTypes> {
  struct Attrs {
    PartialShape shape = PartialShape::unknown();
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The last value of a temporary variable, which ends with it.
struct DestroyTemporaryVariable : StatefulOp<"DestroyTemporaryVariable", AllTypes> {
  using Inputs = In<ResourceHandle>;
  static constexpr std::array<std::string_view, 1> type_names{"T"};
  static void infer(InferContext& context);
};

namespace detail {
AnyOutput make_temporary_variable(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at);
Operation assign_temporary(const AnyOutput& handle, const AnyOutput& value, const At& at);
Operation add_to_temporary(const AnyOutput& handle, const AnyOutput& delta, const At& at);
Operation subtract_from_temporary(const AnyOutput& handle, const AnyOutput& delta, const At& at);
AnyOutput destroy_temporary(const AnyOutput& handle, DType dtype, const At& at);
}  // namespace detail

/// A variable of one step, without a value at its begin: sums are made in its memory. Two steps at once have one each.
/// Control dependencies order the operations, as for a `Variable`.
///
/// ```cpp
/// df::TemporaryVariable<float> sum(graph, {1000});
/// const auto first = sum.assign(a);
/// const auto second = [&] {
///   const auto after = graph.control_dependencies({first});
///   return sum.assign_add(b);
/// }();
/// const auto after = graph.control_dependencies({second});
/// auto total = sum.destroy();
/// ```
///
/// Thread safety: a value type. Valid while the graph lives.
/// Errors: InvalidArgument for values of another shape; FailedPrecondition in a step that uses it before it was
/// assigned.
template <Element T>
class TemporaryVariable {
 public:
  TemporaryVariable() = default;
  explicit TemporaryVariable(Graph& graph, const PartialShape& shape = PartialShape::unknown(), const At& at = {})
      : handle_(detail::make_temporary_variable(*graph.store(), dtype_of<T>, shape, at)) {}

  const AnyOutput& handle() const noexcept { return handle_; }

  Operation assign(const Operand<T>& value, const At& at = {}) const {
    return detail::assign_temporary(handle_, value.beside(handle_), at);
  }
  Operation assign_add(const Operand<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignAdd>
  {
    return detail::add_to_temporary(handle_, delta.beside(handle_), at);
  }
  Operation assign_sub(const Operand<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignSub>
  {
    return detail::subtract_from_temporary(handle_, delta.beside(handle_), at);
  }
  /// The value at last; the variable ends with it.
  Output<T> destroy(const At& at = {}) const {
    return Output<T>::unchecked(detail::destroy_temporary(handle_, dtype_of<T>, at));
  }

 private:
  AnyOutput handle_;
};

}  // namespace dflow
