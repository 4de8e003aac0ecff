#pragma once

/// Public: the struct that an op of your own derives from.

#include <dflow/base/fixed_string.hpp>
#include <dflow/base/type_list.hpp>
#include <dflow/graph/op_def.hpp>
#include <dflow/op/elementwise_math.hpp>
#include <dflow/op/signature.hpp>

#include <array>
#include <concepts>
#include <string_view>

namespace dflow {

/// A pair in the list `Fuses` of an op. The op does the work of `First` and of `Reader`; `Reader` reads the only output
/// of `First` as its first input.
template <class First, class Reader>
struct OpPair {};

/// The base of every op struct: its run-time name and, per type parameter, the element types it allows. The struct adds
/// everything that differs from the defaults below: signature, attributes, shape inference, gradient.
///
/// ```cpp
/// struct RowNorm : df::Op<"RowNorm", df::FloatTypes> {
///   struct Attrs { float epsilon = 1e-6f; };
///   static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
/// };
/// ```
///
/// - `infer` is `PartialShape infer(const Attrs&, PartialShape...)`, one shape per input, or
///   `void infer(InferContext&)`.
/// - `Inputs` and `Outputs` name element types, type parameters (`T`, `U`, `V`) and lists (`op/signature.hpp`).
/// - `gradient` is `void gradient(GradientContext&)`, or for one type parameter the typed
///   `template <class T> Output<T> gradient(const NodeView<Op, T>&, Output<T> dy)`.
/// - `Fuses` lists pairs of ops. Passes put this op in place of a pair where the device has a kernel of this op. Its
///   results equal the pair's, bit for bit. Its inputs are the inputs of the first op, then the inputs of the reader
///   except its first. Each pair has a function `fuse(const First::Attrs&, const Reader::Attrs&)`, which gives the
///   attributes, or none if the op cannot stand for the two.
template <FixedString Name, class... AllowedTypes>
struct Op {
  static constexpr std::string_view name = Name.view();
  using TypeParams = TypeList<AllowedTypes...>;
  using T = TypeParam<0>;
  using U = TypeParam<1>;
  using V = TypeParam<2>;

  struct Attrs {};
  using Inputs = In<T>;
  using Outputs = Out<T>;

  /// Attribute names of the type parameters in a GraphDef.
  static constexpr std::array<std::string_view, 4> type_names{"T", "U", "V", "W"};
  static constexpr bool gradient_stops = false;
  static constexpr bool is_stateful = false;
  static constexpr OpRole role = OpRole::ordinary;
  using Fuses = TypeList<>;
  /// False for ops that the runtime itself carries out (Placeholder, Const).
  static constexpr bool has_kernel = true;
  /// Kernels come from the compiled library instead of from specialisations that the including file can see.
  static constexpr bool in_library = false;
};

/// An op of dflow itself.
template <FixedString Name, class... AllowedTypes>
struct StandardOp : Op<Name, AllowedTypes...> {
  static constexpr bool in_library = true;
};

/// An op of dflow itself that has side effects, or has outputs that its inputs and attributes alone do not determine.
/// No two stateful nodes are merged into one, none is computed before the step runs, and no gradient goes through it.
template <FixedString Name, class... AllowedTypes>
struct StatefulOp : StandardOp<Name, AllowedTypes...> {
  static constexpr bool gradient_stops = true;
  static constexpr bool is_stateful = true;
};

/// An elementwise op: one expression `template <class T> DFLOW_FN static R apply(T x)` of one to four arguments.
/// Shapes broadcast by NumPy's rule; R is T, or bool for a predicate. Unless the struct defines `gradient`, it is
/// derived from the expression, to second order, by evaluating it on dual numbers (`op/dual.hpp`).
///
/// An op that is undefined for some arguments adds `template <class T> static const char* check(T...)`, constrained to
/// the types it concerns. The function returns null, or the message with which the step fails.
///
/// An op with `static constexpr bool chains = true` may be put into one kernel with others, on a device that makes
/// kernels at run time. Its expression is then evaluated on a number that records the operations on it
/// (`op/symbol.hpp`). The expression must be the same for all element types, and no argument may decide the end of a
/// loop in it.
template <FixedString Name, class AllowedTypes>
struct ElementwiseOp : Op<Name, AllowedTypes>, ElementwiseMath {
  static constexpr bool is_elementwise = true;
  static constexpr bool chains = false;
  /// Of the expression; a derivative has the incoming gradient as well.
  static constexpr int max_arguments = 4;
};

template <FixedString Name, class AllowedTypes>
struct StandardElementwiseOp : ElementwiseOp<Name, AllowedTypes> {
  static constexpr bool in_library = true;
  static constexpr bool chains = true;
};

template <class O>
concept OpType = requires {
  { O::name } -> std::convertible_to<std::string_view>;
  typename O::TypeParams;
  typename O::Attrs;
};

template <class O>
concept ElementwiseOpType = OpType<O> && requires { requires O::is_elementwise; };

/// `T` is among the element types of the op's first type parameter.
template <class T, class O>
concept AllowedFor = Element<T> && contains_v<T, element_t<0, typename O::TypeParams>>;

/// Reads as a sentence where an op cannot be applied to an element type.
template <class T, class O, std::size_t I>
concept AllowedForParam = Element<T> && contains_v<T, element_t<I, typename O::TypeParams>>;

}  // namespace dflow
