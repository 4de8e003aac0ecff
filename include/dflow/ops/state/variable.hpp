#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace dflow {

// The ops of variables. A handle's shape, as the graph infers it, is that of the variable's value.

/// Holds a tensor across steps; gives a handle to it.
struct VariableOp : StatefulOp<"Variable", AllTypes> {
  struct Attrs {
    PartialShape shape;
    std::string container;    ///< variables of different containers never meet
    std::string shared_name;  ///< what it is kept under; the node's name where empty
    /// Of a part of a partitioned variable what it is of it, as in `SaveV2`: "4 3 0,2:-". Empty for all others.
    std::string slice;
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr OpRole role = OpRole::variable;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The value of a variable, from before or after an update that runs meanwhile, never from between.
struct ReadVariable : StatefulOp<"ReadVariable", AllTypes> {
  using Inputs = In<ResourceHandle>;
  static constexpr OpRole role = OpRole::read_variable;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// Gives a variable a new value.
struct Assign : StatefulOp<"Assign", AllTypes> {
  struct Attrs {
    bool validate_shape = true;  ///< false: the value may have another shape than the variable
  };
  using Inputs = In<ResourceHandle, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// variable += value, of the same shape.
struct AssignAdd : StatefulOp<"AssignAdd", NumberTypes> {
  using Inputs = In<ResourceHandle, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// variable -= value, of the same shape.
struct AssignSub : StatefulOp<"AssignSub", NumberTypes> {
  using Inputs = In<ResourceHandle, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

namespace detail {
void infer_row_update(InferContext& context);
}  // namespace detail

/// What updates of rows share: a variable [limit, row...], indices [n...] in [0, limit), and updates [n..., row...] or
/// a scalar that stands for each of their elements. Repeated indices are applied in their order; 16-bit floats are
/// rounded once, after the last of them.
template <FixedString Name, class AllowedTypes>
struct RowUpdateOp : StatefulOp<Name, AllowedTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, TypeParam<1>, TypeParam<0>>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context) { detail::infer_row_update(context); }
};

/// variable[indices[i]] = updates[i]; of repeated indices the last one counts.
struct ScatterUpdate : RowUpdateOp<"ScatterUpdate", AllTypes> {};
/// variable[indices[i]] += updates[i]
struct ScatterAdd : RowUpdateOp<"ScatterAdd", NumberTypes> {};
/// variable[indices[i]] -= updates[i]
struct ScatterSub : RowUpdateOp<"ScatterSub", NumberTypes> {};
/// variable[indices[i]] *= updates[i]
struct ScatterMul : RowUpdateOp<"ScatterMul", NumberTypes> {};
/// variable[indices[i]] /= updates[i], as `Div`: integers toward 0, and by 0 an error that leaves the variable as it
/// is.
struct ScatterDiv : RowUpdateOp<"ScatterDiv", NumberTypes> {};
/// The smaller of variable[indices[i]] and updates[i]; what is not a number stays so.
struct ScatterMin : RowUpdateOp<"ScatterMin", RealTypes> {};
/// The larger of variable[indices[i]] and updates[i]; what is not a number stays so.
struct ScatterMax : RowUpdateOp<"ScatterMax", RealTypes> {};

/// Whether a variable has been assigned a value.
struct IsVariableInitialized : StatefulOp<"IsVariableInitialized"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<bool>;
  static void infer(InferContext& context);
};

template <Element T>
class Variable;

struct VariableOptions {
  /// Name of the node, unique in its name scope; "Variable" and a number where empty.
  std::string_view name = {};
  /// In the collection "trainable_variables", which optimizers take their variables from.
  bool trainable = true;
  /// Of the device. Names that begin with "_" are the library's.
  std::string_view container = {};
  std::string_view shared_name = {};
  /// What it is of a partitioned variable, of which it is "part_<number>", as in `SaveV2`; empty: it is no part.
  std::string_view slice = {};
};

/// A variable whose element type is known at run time only: the handle, the edge that reads it, and what gives it its
/// initial value.
///
/// Whatever is built on it is placed where it is, inside whatever device scope.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument from one that no `make` or `of` gave.
class AnyVariable {
 public:
  AnyVariable() = default;

  /// Appends "name" (the handle), "name/read" and "name/Assign", and puts the handle in the collections "variables"
  /// and, if asked, "trainable_variables". Handle and read have no control inputs, whatever the scope.
  ///
  /// Errors: InvalidArgument if a node of that name exists, or the container's name begins with "_".
  static AnyVariable make(GraphStore& graph, const AnyOutput& initial_value, const VariableOptions& options = {},
                          const At& at = {});
  /// The same in no collection: for what may fail yet, and lists its variables when it has not.
  static AnyVariable make_unlisted(GraphStore& graph, const AnyOutput& initial_value,
                                   const VariableOptions& options = {}, const At& at = {});
  /// The variable of a handle that `make` made; its read edge is that of "name/read", else of the first node that reads
  /// it and waits for nothing. Errors: InvalidArgument if the operation is no such handle, or nothing reads it.
  static AnyVariable of(const Operation& handle);
  /// The variable that a read edge belongs to. Errors: InvalidArgument if the edge is no variable's.
  static AnyVariable of_read(const AnyOutput& read);

  const AnyOutput& handle() const noexcept { return handle_; }
  const AnyOutput& read_edge() const noexcept { return read_; }
  /// The node "name/Assign". Errors: InvalidArgument if the graph does not have it.
  Operation initializer() const;
  DType dtype() const { return read_.dtype(); }
  const PartialShape& shape() const { return read_.shape(); }
  const std::string& name() const { return handle_.node().name; }
  /// What it is of a partitioned variable, as in `SaveV2`: "4 3 0,2:-" are rows 0 and 1 of [4, 3]. Empty for no part.
  const std::string& slice() const { return handle_.node().attrs_as<VariableOp>().slice; }
  /// Of a part, the name of the whole: "words" of "words/part_1", and "words/Adam" of "words/part_1/Adam". Else `name`.
  std::string whole_name() const;

  /// With the element type known to the compiler. Errors: InvalidArgument if it is another one.
  template <Element T>
  Variable<T> as() const;

  /// A new read, ordered by the control dependencies of the current scope.
  AnyOutput read(const At& at = {}) const;
  Operation assign(const AnyOutput& value, const At& at = {}, bool validate_shape = true) const;
  Operation assign_add(const AnyOutput& delta, const At& at = {}) const;
  Operation assign_sub(const AnyOutput& delta, const At& at = {}) const;
  Operation scatter_update(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_add(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_sub(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_mul(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_div(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_min(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  Operation scatter_max(const AnyOutput& indices, const AnyOutput& updates, const At& at = {}) const;
  AnyOutput is_initialized(const At& at = {}) const;

 private:
  AnyOutput handle_;
  AnyOutput read_;
};

namespace detail {
/// Those of the graph's collection of that name.
std::vector<AnyVariable> variables_in(GraphStore& graph, std::string_view collection);
}  // namespace detail

/// The variables that the graph has now, in the order in which they were made: all of them, and those that optimizers
/// train. They are the graph's collections "variables" and "trainable_variables".
std::vector<AnyVariable> global_variables(const Graph& graph);
std::vector<AnyVariable> trainable_variables(const Graph& graph);

/// An operation that gives every variable that the graph has now its initial value.
Operation initialize_variables(Graph& graph, const At& at = {});

}  // namespace dflow
