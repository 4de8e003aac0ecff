#pragma once

#include <dflow/ops/array/literal.hpp>
#include <dflow/ops/state/variable.hpp>

#include <utility>

namespace dflow {

namespace detail {
/// The tensor, if no other handle can write its elements, else a copy of it.
inline AnyTensor owned(AnyTensor tensor) { return tensor.buffer_is_unique() ? tensor : tensor.deep_copy(); }
}  // namespace detail

/// A tensor that lives across steps, as one value. It is also the edge that reads it: use it wherever an Output<T> is
/// wanted. Its member functions build the operations that change it.
///
/// ```cpp
/// df::Variable<float> w(graph, df::Tensor<float>::zeros({784, 10}), {.name = "w"});
/// auto y = df::matmul(x, w);
/// auto bump = w.assign_add(delta);
/// ```
///
/// A read and an update of one step are ordered only by edges and control dependencies between them. Without an order,
/// the read sees the value from before or after the update, never a mix. `read()` builds a new read, for use after
/// `graph.control_dependencies({bump})`.
///
/// Thread safety: a value type. Valid while the graph lives.
/// Errors: InvalidArgument for shapes that differ from the variable's: when the update is built, or when it runs if the
/// shapes are not known before. FailedPrecondition, naming the variable, in a step that uses it before it was
/// initialised.
template <Element T>
class Variable : public Output<T> {
 public:
  Variable() = default;
  Variable(Graph& graph, const Output<T>& initial_value, const VariableOptions& options = {}, const At& at = {})
      : Variable(AnyVariable::make(*graph.store(), initial_value, options, at)) {}
  /// The elements are copied, unless the tensor is a temporary that owns them alone.
  Variable(Graph& graph, Tensor<T> initial_value, const VariableOptions& options = {}, const At& at = {})
      : Variable(AnyVariable::make(
            *graph.store(),
            detail::any_constant(*graph.store(), detail::owned(std::move(initial_value).any()), {.where = at.where}),
            options, at)) {}
  /// A scalar: `Variable<float> total(graph, 0)`.
  template <detail::LiteralFor<T> V>
  Variable(Graph& graph, const V& initial_value, const VariableOptions& options = {}, const At& at = {})
      : Variable(graph, Tensor<T>(detail::convert_literal<T>(initial_value)), options, at) {}
  /// Throws InvalidArgument if the variable has another element type.
  explicit Variable(const AnyVariable& variable) : Output<T>(variable.read_edge()), variable_(variable) {}

  const AnyVariable& any_variable() const noexcept { return variable_; }
  AnyOutput handle() const noexcept { return variable_.handle(); }
  Operation initializer() const { return variable_.initializer(); }
  /// The variable's name, without the "/read" of its edge.
  const std::string& name() const { return variable_.name(); }

  Output<T> read(const At& at = {}) const { return Output<T>::unchecked(variable_.read(at)); }
  /// The initial value, for the initial values of other variables: a step with this edge assigns it first.
  ///
  /// ```cpp
  /// df::Variable<float> w(graph, df::random_normal<float>(graph, {784, 10}));
  /// df::Variable<float> twice(graph, w.initialized_value() * 2.0f);  // of the same random numbers
  /// ```
  Output<T> initialized_value(const At& at = {}) const { return Output<T>::unchecked(variable_.initialized_value(at)); }
  Operation assign(const Output<T>& value, const At& at = {}) const { return variable_.assign(value, at); }
  /// The same with a tensor, which becomes a constant of the graph: its elements must not be written any more. To set a
  /// variable once, use `train::assign`.
  Operation assign(const Tensor<T>& value, const At& at = {}) const { return assign(constant_tensor(value, at), at); }
  Operation assign_add(const Output<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignAdd>
  {
    return variable_.assign_add(delta, at);
  }
  Operation assign_sub(const Output<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignSub>
  {
    return variable_.assign_sub(delta, at);
  }
  /// The same with a number, for a scalar variable: `step.assign_add(1)`.
  template <detail::LiteralFor<T> V>
  Operation assign(const V& value, const At& at = {}) const {
    return assign(constant_of(value, at), at);
  }
  template <detail::LiteralFor<T> V>
    requires AllowedFor<T, AssignAdd>
  Operation assign_add(const V& delta, const At& at = {}) const {
    return assign_add(constant_of(delta, at), at);
  }
  template <detail::LiteralFor<T> V>
    requires AllowedFor<T, AssignSub>
  Operation assign_sub(const V& delta, const At& at = {}) const {
    return assign_sub(constant_of(delta, at), at);
  }
  /// variable[ids[i]] = updates[i] over the leading dimension: ids [n...] in [0, limit), updates [n..., row...], or a
  /// scalar for all of their elements. Repeated ids are applied in their order: the last one counts.
  template <AllowedForParam<ScatterUpdate, 1> Index>
  Operation scatter_update(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_update(ids, updates, at);
  }
  /// variable[ids[i]] += updates[i], and the same with the other operators. Repeated ids add up; 16-bit floats are
  /// rounded once.
  template <AllowedForParam<ScatterAdd, 1> Index>
    requires AllowedFor<T, ScatterAdd>
  Operation scatter_add(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_add(ids, updates, at);
  }
  template <AllowedForParam<ScatterSub, 1> Index>
    requires AllowedFor<T, ScatterSub>
  Operation scatter_sub(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_sub(ids, updates, at);
  }
  template <AllowedForParam<ScatterMul, 1> Index>
    requires AllowedFor<T, ScatterMul>
  Operation scatter_mul(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_mul(ids, updates, at);
  }
  /// Errors: also InvalidArgument, in the step, from an integer 0 among the updates.
  template <AllowedForParam<ScatterDiv, 1> Index>
    requires AllowedFor<T, ScatterDiv>
  Operation scatter_div(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_div(ids, updates, at);
  }
  /// The smaller, or larger, of variable[ids[i]] and updates[i].
  template <AllowedForParam<ScatterMin, 1> Index>
    requires AllowedFor<T, ScatterMin>
  Operation scatter_min(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_min(ids, updates, at);
  }
  template <AllowedForParam<ScatterMax, 1> Index>
    requires AllowedFor<T, ScatterMax>
  Operation scatter_max(const Output<Index>& ids, const Output<T>& updates, const At& at = {}) const {
    return variable_.scatter_max(ids, updates, at);
  }
  Output<bool> is_initialized(const At& at = {}) const { return Output<bool>::unchecked(variable_.is_initialized(at)); }

 private:
  /// An empty edge if the variable is empty.
  template <class V>
  Output<T> constant_of(const V& value, const At& at) const {
    return constant_tensor(Tensor<T>(detail::convert_literal<T>(value)), at);
  }
  Output<T> constant_tensor(const Tensor<T>& value, const At& at) const {
    if (!this->is_valid()) return {};
    return Output<T>::unchecked(detail::any_constant(*this->graph(), value, {.where = at.where}));
  }

  AnyVariable variable_;
};

template <Element T>
Variable<T> AnyVariable::as() const {
  return Variable<T>(*this);
}

}  // namespace dflow
