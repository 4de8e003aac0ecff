#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/op/build.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

// Functions are part of the graph. One node begins the body, its nodes name this first node, and one node ends it. A
// call names the function. Its inputs are the edges that the body reads: first the arguments, in their order, then the
// captures, which are edges from around the body. `ops/control/function_builders.hpp` builds functions.

/// Begins the body of a function, which has this node's name. If `is_inlined`, the body's nodes replace each call in a
/// step.
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

/// The argument `number` of a call.
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

/// Ends the body: its inputs are the results of a call. The nodes that it waits for run with every call.
struct FunctionResults : StatefulOp<"FunctionResults"> {
  using Inputs = In<AnyList>;
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::results;
  static constexpr bool has_kernel = false;
  static void infer(InferContext&) {}
};

/// An op that calls functions. Its gradient is the gradient of their bodies. A step may split a call into parts, on
/// several devices: then the `frame` of each part is the call's name, and only the first part gives results.
template <FixedString Name, OpRole Role>
struct CallingOp : StandardOp<Name> {
  static constexpr OpRole role = Role;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
};

/// Runs a function: arguments and captures -> its results. If the call does not see the edges that the body captures,
/// `captured` names the edges that the captures stand for: "node:0;other:1". In a step the function's nodes replace
/// the call if the call, or the function, `is_inlined`.
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

/// Runs one of two functions: condition [], captures of both -> the results of the first if the condition is true,
/// else of the second.
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

/// Runs one of several functions: index [], captures of all -> the results of branch `index`; of the last branch if no
/// branch has this index.
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

/// Runs `body` as long as `condition` is true: the variables' first values, captures of both -> their last values.
/// Both functions take the variables. The condition gives a bool [], the body gives the variables' next values. The
/// values kept for a gradient take up to `max_kept_bytes` of memory, and a file holds the rest; -1: memory holds all.
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

/// Runs a function that contains Switches, Merges and frames: the inputs of the nodes -> the outputs that other nodes
/// read. A step puts it in their place.
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

// The gradient of a call needs values that the call's bodies have computed. The step gives the call more outputs for
// them, so nothing is kept unless a gradient is run.

/// Stands for an edge of a body, or of the nodes that a call stands for: any output of the call -> the value that the
/// edge has had. If the call has no output, a control edge from the call is the input.
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

/// The value in the branch, or function, that the call ran. If another branch ran, it is an empty vector, or an empty
/// list; its shape is therefore not known.
struct KeptValue : KeptOp<"KeptValue", TypeParam<0>, EdgeTypes> {};
/// For a loop: a list of the values that the edge has had, one for each iteration.
struct KeptList : KeptOp<"KeptList", TensorListHandle> {};
/// For a loop: how many iterations it has had, [].
struct KeptCount : KeptOp<"KeptCount", std::int64_t> {
  static void infer(InferContext& context) { context.set_output(0, Shape{}); }
};

/// list, a value of any type -> the list with the value at its end: makes a KeptList in a loop of the raw form.
struct KeptListPush : StandardOp<"KeptListPush"> {
  using Inputs = In<TensorListHandle, AnyList>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
};
/// values of any types -> the list of them. A function that calls itself has such a node for its gradient: the list of
/// one call, which is kept, has all that the gradient of that call reads.
struct CallTape : StandardOp<"CallTape"> {
  using Inputs = In<AnyList>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// An element of a KeptList, or of a CallTape: list, iteration [] -> the value. Errors: InvalidArgument for an
/// iteration that did not run, and for a value of another element type or shape.
struct KeptElement : StandardOp<"KeptElement", AllTypes> {
  struct Attrs {
    PartialShape shape;
  };
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};
/// An element of a KeptList of handles: list, iteration [] -> the handle.
struct KeptHandleElement : StandardOp<"KeptHandleElement"> {
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};
/// An element of a list of lists: list, iteration [] -> the list; it is empty if the iteration has none.
struct KeptListElement : StandardOp<"KeptListElement"> {
  using Inputs = In<TensorListHandle, std::int64_t>;
  using Outputs = Out<TensorListHandle>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

}  // namespace dflow
