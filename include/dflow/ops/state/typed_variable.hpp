#pragma once

#include <dflow/ops/state/variable.hpp>

#include <initializer_list>
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
  /// A tensor becomes a constant of the graph: its elements must not be written any more. To set a variable once, use
  /// `train::assign`.
  Operation assign(const Operand<T>& value, const At& at = {}) const {
    return variable_.assign(value.beside(*this), at);
  }
  Operation assign_add(const Operand<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignAdd>
  {
    return variable_.assign_add(delta.beside(*this), at);
  }
  Operation assign_sub(const Operand<T>& delta, const At& at = {}) const
    requires AllowedFor<T, AssignSub>
  {
    return variable_.assign_sub(delta.beside(*this), at);
  }
  /// The part that the indices name gets the value, which has its shape or is a scalar; the rest stays. Indices are
  /// those of `strided_slice`.
  ///
  /// ```cpp
  /// auto clear = table.assign_slice({df::slice(1, 3), df::ellipsis}, 0.0f);  // rows 1 and 2
  /// ```
  /// Errors: also InvalidArgument for indices that do not fit the variable.
  Operation assign_slice(std::initializer_list<SliceIndex> indices, const Operand<T>& value, const At& at = {}) const {
    return variable_.assign_slice(indices, value.beside(*this), at);
  }
  /// variable[ids[i]] = updates[i] over the leading dimension: ids [n...] in [0, limit), updates [n..., row...], or a
  /// scalar for all of their elements. Repeated ids are applied in their order: the last one counts.
  template <detail::ArgumentOf<IndexTypes> Ids>
  Operation scatter_update(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_update(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  /// variable[ids[i]] += updates[i], and the same with the other operators. Repeated ids add up; 16-bit floats are
  /// rounded once.
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterAdd>
  Operation scatter_add(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_add(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterSub>
  Operation scatter_sub(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_sub(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterMul>
  Operation scatter_mul(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_mul(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  /// Errors: also InvalidArgument, in the step, from an integer 0 among the updates.
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterDiv>
  Operation scatter_div(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_div(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  /// The smaller, or larger, of variable[ids[i]] and updates[i].
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterMin>
  Operation scatter_min(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_min(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  template <detail::ArgumentOf<IndexTypes> Ids>
    requires AllowedFor<T, ScatterMax>
  Operation scatter_max(const Ids& ids, const Operand<T>& updates, const At& at = {}) const {
    return variable_.scatter_max(detail::edge_beside<IndexTypes>(*this, ids, at), updates.beside(*this), at);
  }
  Output<bool> is_initialized(const At& at = {}) const { return Output<bool>::unchecked(variable_.is_initialized(at)); }

 private:
  AnyVariable variable_;
};

template <Element T>
Variable<T> AnyVariable::as() const {
  return Variable<T>(*this);
}

}  // namespace dflow
