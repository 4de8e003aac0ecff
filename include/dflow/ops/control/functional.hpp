#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

// Functions are part of the graph: a node begins the body of one, its nodes name that node, and one ends it. What calls
// a function names it, and has as inputs what the body reads: first the arguments, in their order, then what it takes
// from around it. `ops/control/function_builders.hpp` builds them.

/// Begins the body of a function, which has this node's name. In a step its nodes stand in the place of each of its
/// calls where `is_inlined` says so.
struct FunctionBegin : StatefulOp<"Function"> {
  struct Attrs {
    bool is_inlined = false;
  };
  using Inputs = In<>;
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::function;
  static constexpr bool has_kernel = false;
  static void infer(InferContext&) {}
};

/// What a call gives the function as argument `number`.
struct FunctionArgument : StatefulOp<"FunctionArgument", EdgeTypes> {
  static constexpr std::int64_t max_arguments = 65536;

  struct Attrs {
    std::int64_t number = 0;
    PartialShape shape;
  };
  using Inputs = In<>;
  static constexpr OpRole role = OpRole::argument;
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Ends the body: what a call of the function gets. What it waits for runs with every call.
struct FunctionResults : StatefulOp<"FunctionResults"> {
  using Inputs = In<AnyList>;
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::results;
  static constexpr bool has_kernel = false;
  static void infer(InferContext&) {}
};

/// An op that calls functions. Its gradient is that of their bodies. Where a step has a call in parts, on several
/// devices, their `frame` is the call's name, and there is a part that gives no results.
template <FixedString Name, OpRole Role>
struct CallingOp : StandardOp<Name> {
  static constexpr OpRole role = Role;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
};

/// Runs a function: arguments and captures -> its results. Where the call does not see what the body reads of what is
/// around it, `captured` says which edges the captures stand for, "node:0;other:1". In a step the function's nodes
/// stand in the place of the call where it, or the function, `is_inlined`.
struct CallFunction : CallingOp<"Call", OpRole::call> {
  struct Attrs {
    FunctionName function;
    std::vector<DType> output_types;
    std::vector<PartialShape> output_shapes;
    std::string captured = {};
    std::string frame = {};
    bool is_inlined = false;
  };
  using Inputs = In<AnyList>;
  using Outputs = Out<TypedList<"output_types">>;
  static void infer(InferContext& context);
};

/// Runs one of two functions: condition [], captures of both -> the results of the first if it is true, else of the
/// second.
struct If : CallingOp<"If", OpRole::branch> {
  struct Attrs {
    FunctionName then_branch;
    FunctionName else_branch;
    std::vector<DType> output_types;
    std::vector<PartialShape> output_shapes;
    std::string frame = {};
  };
  using Inputs = In<bool, AnyList>;
  using Outputs = Out<TypedList<"output_types">>;
  static void infer(InferContext& context);
};

/// Runs one of several functions: index [], captures of all -> the results of branch `index`, of the last one for an
/// index that none has.
struct Case : CallingOp<"Case", OpRole::branch> {
  struct Attrs {
    std::vector<std::string> branches;
    std::vector<DType> output_types;
    std::vector<PartialShape> output_shapes;
    std::string frame = {};
  };
  using Inputs = In<std::int32_t, AnyList>;
  using Outputs = Out<TypedList<"output_types">>;
  static void infer(InferContext& context);
};

/// Runs `body` as long as `condition` is true: the variables' first values, captures of both -> their last values. Both
/// take the variables; the condition gives a bool [], the body the variables' next values. What is kept of them takes
/// `max_kept_bytes` of memory, the rest a file; -1: all is in memory.
struct While : CallingOp<"While", OpRole::loop> {
  struct Attrs {
    FunctionName condition;
    FunctionName body;
    std::vector<DType> output_types;
    std::vector<PartialShape> output_shapes;
    std::int64_t parallel_iterations = 10;
    std::int64_t max_kept_bytes = -1;
    std::string frame = {};
  };
  using Inputs = In<AnyList>;
  using Outputs = Out<TypedList<"output_types">>;
  static void infer(InferContext& context);
};

/// Runs a function with Switch, Merge and frames in it: what these read -> what is read of them. A step puts it in
/// their place.
struct Frames : CallingOp<"Frames", OpRole::frames> {
  struct Attrs {
    FunctionName graph;
    std::vector<DType> output_types;
  };
  using Inputs = In<AnyList>;
  using Outputs = Out<TypedList<"output_types">>;
  static void infer(InferContext&) {}
};

struct KeptValueAttrs {
  std::string node = {};  ///< in the body
  std::int64_t output = 0;
};

// What the gradient of a call needs of what its bodies have computed. The step gives the call more outputs for them, so
// nothing is kept unless a gradient is run.

/// Stands for an edge of a body, or of what a call is: any output of the call -> what it has had. A control edge from
/// it does where it has no output.
template <FixedString Name, class Output, class... AllowedTypes>
struct KeptOp : StandardOp<Name, AllowedTypes...> {
  using Attrs = KeptValueAttrs;
  using Inputs = In<AnyList>;
  using Outputs = Out<Output>;
  static constexpr OpRole role = OpRole::kept_value;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context) { context.set_output(0, PartialShape::unknown()); }
};

/// The value in the branch, or function, that the call ran; an empty vector, or list, where another branch was taken,
/// so that its shape is not known.
struct KeptValue : KeptOp<"KeptValue", TypeParam<0>, EdgeTypes> {};
/// Of a loop: a list of what the edge has had in each iteration.
struct KeptList : KeptOp<"KeptList", TensorListHandle> {};
/// Of a loop: how many iterations it has had, [].
struct KeptCount : KeptOp<"KeptCount", std::int64_t> {
  static void infer(InferContext& context) { context.set_output(0, Shape{}); }
};

/// list, a value of any type -> the list with the value behind: makes a KeptList in a loop of the raw form.
struct KeptListPush : StandardOp<"KeptListPush"> {
  using Inputs = In<TensorListHandle, AnyList>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};
/// One of a KeptList: list, iteration [] -> the value. Errors: InvalidArgument for an iteration that there was not, and
/// a value of another element type or shape.
struct KeptElement : StandardOp<"KeptElement", AllTypes> {
  struct Attrs {
    PartialShape shape;
  };
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// One of a KeptList of handles: list, iteration [] -> the handle.
struct KeptHandleElement : StandardOp<"KeptHandleElement"> {
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};
/// One of a list of lists: list, iteration [] -> the list, which is empty where there is none.
struct KeptListElement : StandardOp<"KeptListElement"> {
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

}  // namespace dflow
