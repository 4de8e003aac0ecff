#pragma once

#include <dflow/graph/infer_context.hpp>
#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace dflow {

// TensorFlow's raw form of control flow: nodes that pass tensors on, to one side or another. The tensors of the other
// side are dead: no node computes with them. A frame is a loop that runs; its nodes run once in each of its
// iterations. `cond` and `while_loop` are easier to write. Nodes of the raw form are raised to the form of `cond` and
// `while_loop` if their structure allows it.

/// Passes x on to one of two outputs, the other output is dead: x, side [] -> x if side is false, x if side is true.
/// Also for handles: nodes then read or write a variable on one side only.
struct Switch : StandardOp<"Switch", EdgeTypes> {
  using Inputs = In<T, bool>;
  using Outputs = Out<T, T>;
  static constexpr OpRole role = OpRole::switch_op;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Passes on the first input that comes alive: -> this input, and its number []. If a NextIteration leads to the
/// Merge, the Merge has the NextIteration's value in every iteration but the first, and the number of an input
/// behind all others.
struct Merge : StandardOp<"Merge", EdgeTypes> {
  struct Attrs {
    std::int64_t N = 0;
    /// The shape that all inputs have in common, also in later iterations; unknown: of the inputs at hand.
    PartialShape shape = PartialShape::unknown();
    bool has_any_shape = false;  ///< the inputs at hand say nothing of later iterations
  };
  using Inputs = In<List<T, "N">>;
  using Outputs = Out<T, std::int32_t>;
  static constexpr OpRole role = OpRole::merge;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Takes a tensor into the frame of that name: x -> x, in the first iteration, or in every iteration if it is
/// constant. Each iteration of the frame around it has another frame of that name.
struct Enter : StandardOp<"Enter", EdgeTypes> {
  struct Attrs {
    std::string frame_name;
    bool is_constant = false;
    std::int64_t parallel_iterations = 10;  ///< at most under way at once; equal for all Enters of a frame
  };
  static constexpr OpRole role = OpRole::enter;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Takes a tensor out of its frame, from the iteration where the tensor is alive: x -> x.
struct Exit : StandardOp<"Exit", EdgeTypes> {
  static constexpr OpRole role = OpRole::exit;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Gives a Merge of its frame a tensor in the next iteration: x, and the Merge's value in this iteration. (In
/// TensorFlow's form the Merge has this node as an input, and the graph has a cycle.)
struct NextIteration : StandardOp<"NextIteration", EdgeTypes> {
  using Inputs = In<T, T>;
  using Outputs = Out<>;
  static constexpr OpRole role = OpRole::next_iteration;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// The condition that a frame's Switches read: side [] -> side.
struct LoopCond : StandardOp<"LoopCond"> {
  using Inputs = In<bool>;
  using Outputs = Out<bool>;
  static constexpr OpRole role = OpRole::loop_cond;
  static constexpr bool is_stateful = true;
  static constexpr bool has_kernel = false;
  static void infer(InferContext& context);
};

/// Builders of the raw form.
///
/// ```cpp
/// namespace raw = df::frames;
/// auto i = raw::merge({raw::enter(zero, "count")});
/// auto goes_on = raw::loop_cond(i.value < raw::enter(limit, "count", {.is_constant = true}));
/// auto [last, now] = raw::switch_on(i.value, goes_on);
/// raw::next_iteration(now + 1, i);
/// auto count = raw::exit(last);
/// ```
/// A node reads only tensors of its own frame, and constants. A fetch of a dead tensor, or of a tensor inside a frame,
/// is InvalidArgument when the step runs, or is compiled. If a NextIteration is built after a step was compiled, the
/// step does not have it.
///
/// Thread safety: they build; see Graph.
namespace frames {

struct EnterOptions {
  bool is_constant = false;
  std::int64_t parallel_iterations = 10;
};

template <Element E>
struct Merged {
  Output<E> value;
  Output<std::int32_t> index;
};

/// {x if `side` is false, x if it is true}. side: bool [].
template <Element E>
std::tuple<Output<E>, Output<E>> switch_on(const Output<E>& x, const Output<bool>& side, const At& at = {}) {
  const BuiltNode node = build<Switch>({x, side}, {}, at);
  return {Output<E>::unchecked(node.output(0)), Output<E>::unchecked(node.output(1))};
}

/// The first input that comes alive, and its number. `shape`: of all inputs, if it is not the shape that they share.
///
/// Errors: InvalidArgument if there are no inputs.
template <Element E>
Merged<E> merge(const std::vector<Output<E>>& inputs, const PartialShape& shape = PartialShape::unknown(),
                const At& at = {}) {
  const std::vector<AnyOutput> edges(inputs.begin(), inputs.end());
  const BuiltNode node = build<Merge>(edges, {static_cast<std::int64_t>(edges.size()), shape}, at);
  return {Output<E>::unchecked(node.output(0)), Output<std::int32_t>::unchecked(node.output(1))};
}
template <Element E>
Merged<E> merge(std::initializer_list<Output<E>> inputs, const PartialShape& shape = PartialShape::unknown(),
                const At& at = {}) {
  return merge(std::vector<Output<E>>(inputs), shape, at);
}

/// Errors: InvalidArgument for an empty name, or fewer than one iteration at once.
template <Element E>
Output<E> enter(const Output<E>& x, std::string frame, const EnterOptions& options = {}, const At& at = {}) {
  return Output<E>::unchecked(
      build<Enter>({x}, {std::move(frame), options.is_constant, options.parallel_iterations}, at).output(0));
}

template <Element E>
Output<E> exit(const Output<E>& x, const At& at = {}) {
  return Output<E>::unchecked(build<Exit>({x}, {}, at).output(0));
}

/// Errors: InvalidArgument if x may have another shape than `to`, which must be the result of a Merge.
template <Element E>
Operation next_iteration(const Output<E>& x, const Merged<E>& to, const At& at = {}) {
  return build<NextIteration>({x, to.value}, {}, at);
}

Output<bool> loop_cond(const Output<bool>& side, const At& at = {});

}  // namespace frames

}  // namespace dflow
