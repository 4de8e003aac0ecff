#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/op/build.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/strided_slice.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

// The ops of variables. The shape that the graph infers for a handle is the shape of the variable's value.

/// Holds a tensor across steps. The output is a handle to the tensor.
struct VariableOp : StatefulOp<"Variable", AllTypes> {
  struct Attrs {
    PartialShape shape;
    std::string container;    ///< variables of different containers never meet
    std::string shared_name;  ///< the variable's name in its container; the node's name if empty
    /// The slice of a partitioned variable that this part holds, as in `SaveV2`: "4 3 0,2:-". Empty for a variable that
    /// is no part.
    std::string slice;
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static constexpr OpRole role = OpRole::variable;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext& context);
};

/// The value of a variable. If an update runs at the same time, the value is from before or after the update, never a
/// mix.
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

/// The base of ops that update rows: a variable [limit, row...], indices [n...] in [0, limit), and updates [n...,
/// row...]. A scalar update stands for every element of the updates. Repeated indices are applied in their order.
/// 16-bit floats are rounded once, after the last repeat.
template <FixedString Name, class AllowedTypes>
struct RowUpdateOp : StatefulOp<Name, AllowedTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, TypeParam<1>, TypeParam<0>>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context) { detail::infer_row_update(context); }
};

/// variable[indices[i]] = updates[i]. If an index is repeated, its last update counts.
struct ScatterUpdate : RowUpdateOp<"ScatterUpdate", AllTypes> {};
/// variable[indices[i]] += updates[i]
struct ScatterAdd : RowUpdateOp<"ScatterAdd", NumberTypes> {};
/// variable[indices[i]] -= updates[i]
struct ScatterSub : RowUpdateOp<"ScatterSub", NumberTypes> {};
/// variable[indices[i]] *= updates[i]
struct ScatterMul : RowUpdateOp<"ScatterMul", NumberTypes> {};
/// variable[indices[i]] /= updates[i], as `Div`: integers round toward 0. An integer update of 0 is an error that
/// leaves the variable unchanged.
struct ScatterDiv : RowUpdateOp<"ScatterDiv", NumberTypes> {};
/// The smaller of variable[indices[i]] and updates[i]; a NaN stays a NaN.
struct ScatterMin : RowUpdateOp<"ScatterMin", RealTypes> {};
/// The larger of variable[indices[i]] and updates[i]; a NaN stays a NaN.
struct ScatterMax : RowUpdateOp<"ScatterMax", RealTypes> {};

/// The places of a variable that a `StridedSlice` of it reads get the value: handle, begin, end, strides, value. The
/// value has the slice's shape, or is a scalar, which stands for every element.
struct StridedSliceAssign : StatefulOp<"StridedSliceAssign", AllTypes, IndexTypes> {
  using Attrs = StridedSliceAttrs;
  using Inputs = In<ResourceHandle, TypeParam<1>, TypeParam<1>, TypeParam<1>, TypeParam<0>>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Index"};
  static void infer(InferContext& context);
};

/// Whether a variable has been assigned a value.
struct IsVariableInitialized : StatefulOp<"IsVariableInitialized"> {
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<bool>;
  static void infer(InferContext& context);
};

template <Element T>
class Variable;

struct VariableOptions {
  /// Name of the node, unique in its name scope. If empty: "Variable" and a number.
  std::string_view name = {};
  /// Lists the variable in the collection "trainable_variables", from which optimizers take their variables.
  bool trainable = true;
  /// A variable of this task's own, in the collection "local_variables" alone: it is not trained, not saved, and not
  /// among `global_variables`. `initialize_local_variables` gives it its value, and so does a `train::Supervisor`, in
  /// each replica. It is placed like any variable: name the task, since `replica_device` puts variables on parameter
  /// servers.
  ///
  /// ```cpp
  /// const auto own = graph.device(cluster.task_name());
  /// df::Variable<std::int64_t> seen(graph, 0, {.name = "seen", .local = true});
  /// ```
  bool local = false;
  /// A container of the device. Names that begin with "_" are reserved for the library.
  std::string_view container = {};
  std::string_view shared_name = {};
  /// If the variable is "part_<number>" of a partitioned variable: its slice of the whole, as in `SaveV2`. Empty: no
  /// part.
  std::string_view slice = {};
};

/// A variable whose element type is known only at run time: its handle, the edge that reads it, and the node that
/// assigns its initial value.
///
/// Ops that are built on a variable are placed where the variable is, inside any device scope.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument from a variable that neither `make` nor `of` returned.
class AnyVariable {
 public:
  AnyVariable() = default;

  /// Appends "name" (the handle), "name/read" and "name/Assign". Puts the handle in the collections that the options
  /// say: "variables" and "trainable_variables", or "local_variables". In any scope, the handle and the read have no
  /// control inputs.
  ///
  /// Errors: InvalidArgument if a node has this name already, or if the container's name begins with "_".
  static AnyVariable make(GraphStore& graph, const AnyOutput& initial_value, const VariableOptions& options = {},
                          const At& at = {});
  /// As `make`, but in no collection: for a caller that may still fail, and lists its variables after it succeeds.
  static AnyVariable make_unlisted(GraphStore& graph, const AnyOutput& initial_value,
                                   const VariableOptions& options = {}, const At& at = {});
  /// The same with the value that `initial_value` builds, of that type and shape. If a device function puts the handle
  /// into a task, the nodes of the value are in that task: the value does not go through the network.
  static AnyVariable make_unlisted(GraphStore& graph, DType dtype, const PartialShape& shape,
                                   FunctionRef<AnyOutput()> initial_value, const VariableOptions& options,
                                   const At& at);
  /// The variable of a handle that `make` built. Its read edge is "name/read", or else the first node that reads the
  /// handle and has no control inputs. Errors: InvalidArgument if the operation is no handle of a variable, or if
  /// nothing reads it.
  static AnyVariable of(const Operation& handle);

  const AnyOutput& handle() const noexcept { return handle_; }
  const AnyOutput& read_edge() const noexcept { return read_; }
  /// The node "name/Assign". Errors: InvalidArgument if the graph has no node of this name.
  Operation initializer() const;
  DType dtype() const { return read_.dtype(); }
  const PartialShape& shape() const { return read_.shape(); }
  const std::string& name() const { return handle_.node().name; }
  /// The slice of the partitioned variable, as in `SaveV2`: "4 3 0,2:-" are rows 0 and 1 of [4, 3]. Empty for no part.
  const std::string& slice() const { return handle_.node().attrs_as<VariableOp>().slice; }
  /// For a part, the name of the whole: "words" of "words/part_1", "words/Adam" of "words/part_1/Adam". Else `name`.
  std::string whole_name() const;

  /// The variable with its element type known to the compiler. Errors: InvalidArgument if its element type is not T.
  template <Element T>
  Variable<T> as() const;

  /// A new read, ordered by the control dependencies of the current scope.
  AnyOutput read(const At& at = {}) const;
  /// The initial value, for the initial values of other variables: a read after the initializer. A step with this edge
  /// assigns the initial value, so no variable is used before it has one, and a random value is drawn once.
  ///
  /// Errors: as `initializer`.
  AnyOutput initialized_value(const At& at = {}) const;
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
  Operation assign_slice(std::span<const SliceIndex> indices, const AnyOutput& value, const At& at = {}) const;
  AnyOutput is_initialized(const At& at = {}) const;

 private:
  AnyOutput handle_;
  AnyOutput read_;
};

namespace detail {
/// The variables in the graph's collection of this name, behind the first `begin`.
std::vector<AnyVariable> variables_in(GraphStore& graph, std::string_view collection, std::size_t begin = 0);
}  // namespace detail

/// All variables of the graph, and the variables that optimizers train, in the order in which they were made. They are
/// the graph's collections "variables" and "trainable_variables". Variables made later are not included.
std::vector<AnyVariable> global_variables(const Graph& graph);
std::vector<AnyVariable> trainable_variables(const Graph& graph);

/// An operation that assigns the initial value of every variable in the graph, but of no local variable. Variables made
/// later are not included.
Operation initialize_variables(Graph& graph, const At& at = {});
/// The variables that were made with `VariableOptions::local`, and an operation that assigns the initial value of each.
std::vector<AnyVariable> local_variables(const Graph& graph);
Operation initialize_local_variables(Graph& graph, const At& at = {});

}  // namespace dflow
