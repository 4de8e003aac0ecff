#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/attr_value.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace dflow {

class InferContext;
class GradientContext;
struct Node;
struct OpDef;

/// One input or output of an op's signature.
struct ArgDef {
  enum class Kind : std::uint8_t {
    fixed,       ///< one edge of element type `dtype`
    param,       ///< one edge of the node's type parameter `param`
    param_list,  ///< any number of edges of type parameter `param`
    any_list,    ///< any number of edges of any element types
    typed_list,  ///< edges of the element types that an attribute lists
    fixed_list,  ///< any number of edges of element type `dtype`
  };
  Kind kind = Kind::fixed;
  DType dtype = DType::invalid;
  std::uint8_t param = 0;
  /// Position in `OpDef::attr_fields` of the attribute that decides a list: the element types of a `typed_list`, the
  /// length of the others. -1: an open list, as long as the node's other inputs leave it (or, of outputs, as
  /// `OpDef::output_list_size` says).
  std::int8_t attr = -1;

  constexpr bool is_of_fixed_type() const noexcept { return kind == Kind::fixed || kind == Kind::fixed_list; }
  constexpr bool is_list() const noexcept { return kind >= Kind::param_list; }
  constexpr bool is_open_list() const noexcept { return is_list() && attr < 0; }
};

/// One type parameter of an op: its attribute name ("T", "SrcT") and a bit per allowed element type.
struct TypeParamDef {
  std::string_view name;
  std::uint32_t allowed = 0;

  constexpr bool allows(DType dtype) const noexcept { return (allowed >> static_cast<unsigned>(dtype)) & 1u; }
};

/// The role of an op for the graph, its passes and its executor, so that none of them knows an op by its name.
enum class OpRole : std::uint8_t {
  ordinary,
  placeholder,     ///< stands for a tensor that a step must feed
  constant,        ///< its value is its first attribute
  shape,           ///< gives the shape of its input as a tensor
  variable,        ///< gives a handle to state of element type T
  read_variable,   ///< gives the value behind a handle
  no_op,           ///< exists for its control edges
  send,            ///< hands a tensor to the step's rendezvous
  recv,            ///< takes a tensor from the step's rendezvous
  switch_op,       ///< passes its input to one of two outputs, the other is dead
  merge,           ///< passes on the first of its inputs that is alive
  enter,           ///< takes a tensor into a frame
  exit,            ///< takes a tensor out of a frame
  next_iteration,  ///< takes a tensor to the next iteration of its frame
  loop_cond,       ///< the condition of a frame
  function,        ///< begins the body of a function; the nodes of the body name it
  argument,        ///< a value that a call gives the function, in its body; its number is its first attribute
  results,         ///< its inputs are the results that a call of the function gets; it ends the body
  call,            ///< runs the function that its attribute names
  branch,          ///< runs one of the functions that its attributes name, which its first input says
  kept_value,      ///< the values that an edge had in a body that its input ran; node and output are its attributes
  loop,            ///< runs the second of the functions that its attributes name as long as the first one says
  frames,          ///< runs the function that its attribute names, of nodes that pass tensors on alive or dead
  collective,      ///< takes a value from each of some devices, or one, and gives each of them a result
};

/// It runs functions: its attributes of kind `function`, or a list of names, say which.
constexpr bool calls_functions(OpRole role) noexcept {
  return role == OpRole::call || role == OpRole::branch || role == OpRole::loop || role == OpRole::frames;
}

/// It belongs to the raw form of control flow.
constexpr bool passes_on(OpRole role) noexcept { return role >= OpRole::switch_op && role <= OpRole::loop_cond; }

/// Two ops with one op that does the work of both: `reader` reads the only output of `first` as its first input.
struct FusedPair {
  const OpDef& (*first)() = nullptr;
  const OpDef& (*reader)() = nullptr;
  /// The attributes of the node that stands for both; null if no node can.
  std::shared_ptr<const void> (*attrs)(const Node& first, const Node& reader) = nullptr;
};

/// Everything the graph needs to know about an op, folded by the compiler from the op's struct (`op_def<Op>`).
///
/// Thread safety: immutable.
struct OpDef {
  std::string_view name;
  std::span<const TypeParamDef> type_params;
  std::span<const ArgDef> inputs;   ///< at most one of them is an open list
  std::span<const ArgDef> outputs;  ///< at most one of them is an open list
  std::span<const AttrField> attr_fields;
  std::shared_ptr<void> (*make_attrs)() = nullptr;  ///< default attributes
  /// Length of the output that is an open list; null where none is.
  std::int64_t (*output_list_size)(const void* attrs) = nullptr;
  void (*infer)(InferContext&) = nullptr;
  /// Null if the op has no gradient: a request for its gradient is an error.
  void (*gradient)(GradientContext&) = nullptr;
  /// The op's output does not depend smoothly on its inputs (Shape, ArgMax, comparisons): gradients stop there.
  bool gradient_stops = false;
  /// Keeps state or has an effect: never folded, merged, or run more than once in a step.
  bool is_stateful = false;
  OpRole role = OpRole::ordinary;
  /// False for ops that the runtime itself carries out (placeholders, constants).
  bool needs_kernel = true;
  /// The pairs that passes replace by this op. Its inputs are the inputs of the first, then the inputs of the reader
  /// except the reader's first.
  std::span<const FusedPair> fuses;
};

}  // namespace dflow
