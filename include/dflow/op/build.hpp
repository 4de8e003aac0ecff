#pragma once

/// Public: builders of ops of your own, `apply<Op>` and `build<Op>`.

#include <dflow/graph/graph.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/op/op_def_of.hpp>
#include <dflow/op/operand.hpp>

#include <array>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow {

/// A node just built. It converts to its first output where an edge is wanted.
class BuiltNode {
 public:
  BuiltNode(GraphStore* graph, NodeId node) : graph_(graph), node_(node) {}

  AnyOutput output(int i) const noexcept { return {graph_, Endpoint{node_, i}}; }
  Operation operation() const noexcept { return {graph_, node_}; }
  operator AnyOutput() const noexcept { return output(0); }
  operator Operation() const noexcept { return operation(); }

 private:
  GraphReference graph_;
  NodeId node_;
};

inline Expr::Expr(const BuiltNode& node) : AnyOutput(node.output(0)) {}

namespace detail {

/// The graph that the inputs belong to. Throws InvalidArgument if there are none or the first one is empty.
GraphStore& graph_of(std::span<const AnyOutput> inputs, std::string_view op, const At& at);

template <OpType O>
std::shared_ptr<const void> share_attrs(typename O::Attrs&& attrs) {
  if constexpr (reflect::num_fields<typename O::Attrs> == 0) {
    return nullptr;
  } else {
    return reflect::share(std::move(attrs));
  }
}

}  // namespace detail

/// The element types of a node's type parameters.
template <Element... Ts>
TypeArgs type_args() {
  TypeArgs types;
  (types.push_back(dtype_of<Ts>), ...);
  return types;
}

namespace detail {
/// The element types of a node that has one type parameter, or two.
inline TypeArgs one_type(DType dtype) {
  TypeArgs types;
  types.push_back(dtype);
  return types;
}
inline TypeArgs two_types(DType first, DType second) {
  TypeArgs types = one_type(first);
  types.push_back(second);
  return types;
}
}  // namespace detail

/// Builds a node from erased edges. Typed builders and gradient functions call it. Element types are checked against
/// the op's signature at run time; `types` gives the element types that no input decides.
///
/// Errors: InvalidArgument with op, shapes and line.
template <OpType O>
BuiltNode build(GraphStore& graph, std::span<const AnyOutput> inputs, typename O::Attrs attrs = {}, const At& at = {},
                const TypeArgs& types = {}) {
  const NodeRequest request{&op_def<O>, inputs, types, detail::share_attrs<O>(std::move(attrs)), at.name, at.where};
  return {&graph, append_node(graph, request)};
}

template <OpType O>
BuiltNode build(std::initializer_list<AnyOutput> inputs, typename O::Attrs attrs = {}, const At& at = {},
                const TypeArgs& types = {}) {
  const std::span<const AnyOutput> edges(inputs.begin(), inputs.size());
  return build<O>(detail::graph_of(edges, O::name, at), edges, std::move(attrs), at, types);
}

template <OpType O>
BuiltNode build(std::span<const AnyOutput> inputs, typename O::Attrs attrs = {}, const At& at = {},
                const TypeArgs& types = {}) {
  return build<O>(detail::graph_of(inputs, O::name, at), inputs, std::move(attrs), at, types);
}

namespace detail {

/// The element type that an argument has by itself: that of an edge, a tensor, a number or a text.
template <Element T>
std::type_identity<T> element_of(const Output<T>& edge);
template <Element T>
std::type_identity<T> element_of(const Tensor<T>& tensor);
template <Element T>
std::type_identity<T> element_of(const T& value);
template <TextLiteral V>
  requires(!Element<V>)
std::type_identity<std::string> element_of(const V& text);
std::type_identity<std::int64_t> element_of(const long long& value);
template <class A>
struct OwnElement {
  using type = void;
};
template <class A>
  requires requires(const A& argument) { detail::element_of(argument); }
struct OwnElement<A> : decltype(element_of(std::declval<const A&>())) {};

/// The same where only some element types are allowed. An unsigned number is int64 if these lack its own type: an index
/// may be `rows.size() - 1`.
template <class A, class Types>
struct ElementAmong : OwnElement<A> {};
template <std::unsigned_integral A, class Types>
  requires(!std::same_as<A, bool> && !contains_v<typename OwnElement<A>::type, Types> &&
           contains_v<std::int64_t, Types>)
struct ElementAmong<A, Types> : std::type_identity<std::int64_t> {};

template <class A>
inline constexpr bool is_edge_argument = std::derived_from<A, AnyOutput>;

/// The type of the argument that gives a type parameter its element type. The first edge decides, then the first
/// tensor, and then the first literal, among the arguments of that parameter. void if the op has none of that
/// parameter.
template <class Param, class Inputs, class... As>
struct DecidingArgument {
  using type = void;
};
template <class Param, class... Args, class... As>
  requires(sizeof...(Args) == sizeof...(As))
struct DecidingArgument<Param, In<Args...>, As...> {
  static consteval int position() {
    int best = -1, strength = 0, i = -1;
    const auto look = [&](bool is_param, int of_this) {
      ++i;
      if (is_param && of_this > strength) best = i, strength = of_this;
    };
    (look(std::same_as<Args, Param>, is_edge_argument<As> ? 3 : std::derived_from<As, AnyTensor> ? 2 : 1), ...);
    return best;
  }
  static auto bound() {
    if constexpr (position() < 0) {
      return std::type_identity<void>();
    } else {
      return std::type_identity<element_t<static_cast<std::size_t>(position()), TypeList<As...>>>();
    }
  }
  using type = typename decltype(bound())::type;
};

/// The element types of an op's type parameters, by its arguments.
template <class O, class Indices, class... As>
struct TypesBoundBy;
template <class O, std::size_t... I, class... As>
struct TypesBoundBy<O, std::index_sequence<I...>, As...> {
  using type = TypeList<typename ElementAmong<typename DecidingArgument<TypeParam<I>, InputsOf<O>, As...>::type,
                                              element_t<I, typename O::TypeParams>>::type...>;
};
template <class O, class... As>
using TypesBy = typename TypesBoundBy<O, std::make_index_sequence<O::TypeParams::size>, As...>::type;

/// The element type of an input or output of an op whose type parameters are Ts.
template <class Arg, class... Ts>
struct Bound {
  using type = Arg;
};
template <std::uint8_t I, class... Ts>
struct Bound<TypeParam<I>, Ts...> {
  using type = element_t<I, TypeList<Ts...>>;
};

template <class O, class... Ts>
inline constexpr bool allows = false;
template <class O, class... Ts>
  requires(sizeof...(Ts) == O::TypeParams::size)
inline constexpr bool allows<O, Ts...> = []<std::size_t... I>(std::index_sequence<I...>) {
  return (AllowedForParam<Ts, O, I> && ...);
}(std::index_sequence_for<Ts...>{});

template <class T, class A>
inline constexpr bool stands_for = false;
template <Element T, class A>
inline constexpr bool stands_for<T, A> = std::derived_from<A, Output<T>> || ValueFor<A, T>;

template <class O, class Inputs, class Types, class... As>
inline constexpr bool types_fit = false;
template <class O, class... Args, class... Ts, class... As>
  requires(sizeof...(Args) == sizeof...(As))
inline constexpr bool types_fit<O, In<Args...>, TypeList<Ts...>, As...> =
    allows<O, Ts...> && (stands_for<typename Bound<Args, Ts...>::type, As> && ...);

/// The result of a typed builder for one output. A handle has no element type, so it is erased.
template <class Arg>
auto wrapped(const AnyOutput& output) {
  if constexpr (std::same_as<Arg, ResourceHandle> || std::same_as<Arg, TensorListHandle>) {
    return output;
  } else {
    return Output<Arg>::unchecked(output);
  }
}

template <class Outputs>
struct Wrap;
template <>
struct Wrap<Out<>> {
  static Operation of(const BuiltNode& node) { return node; }
};
template <class Arg>
struct Wrap<Out<Arg>> {
  static auto of(const BuiltNode& node) { return wrapped<Arg>(node.output(0)); }
};
template <class First, class Second, class... Rest>
struct Wrap<Out<First, Second, Rest...>> {
  template <std::size_t... I>
  static auto of(const BuiltNode& node, std::index_sequence<I...>) {
    return std::tuple{wrapped<First>(node.output(0)), wrapped<Second>(node.output(1)),
                      wrapped<Rest>(node.output(static_cast<int>(I) + 2))...};
  }
  static auto of(const BuiltNode& node) { return of(node, std::index_sequence_for<Rest...>{}); }
};

template <class Outputs, class Types>
struct WrapBound;
template <class... Args, class... Ts>
struct WrapBound<Out<Args...>, TypeList<Ts...>> : Wrap<Out<typename Bound<Args, Ts...>::type...>> {};

/// The first edge that belongs to a graph; empty if there is none. A tensor or a literal counts as an empty edge.
AnyOutput neighbour_among(std::span<const AnyOutput> edges);

template <class A>
AnyOutput edge_or_nothing(const A& argument) {
  if constexpr (is_edge_argument<A>) {
    return argument;
  } else {
    return {};
  }
}

template <class T, class A>
AnyOutput edge_of_argument(const A& argument, const AnyOutput& neighbour, const At& at) {
  if constexpr (is_edge_argument<A>) {
    return argument;
  } else {
    return constant_beside(neighbour, tensor_of_value<T>(argument, at.where), at.where);
  }
}

template <class... Args, class... Ts, class... As>
std::array<AnyOutput, sizeof...(As)> edges_of(In<Args...>, TypeList<Ts...>, const At& at, const As&... arguments) {
  if constexpr ((is_edge_argument<As> && ...)) {
    return {arguments...};
  } else {
    const AnyOutput neighbour = neighbour_among(std::initializer_list<AnyOutput>{edge_or_nothing(arguments)...});
    return {edge_of_argument<typename Bound<Args, Ts...>::type>(arguments, neighbour, at)...};
  }
}
/// The inputs of an op that accepts the arguments.
template <OpType O, class... As>
std::array<AnyOutput, sizeof...(As)> edges_for(const At& at, const As&... arguments) {
  return edges_of(InputsOf<O>(), TypesBy<O, As...>(), at, arguments...);
}

template <OpType O, class... As>
auto apply_to(typename O::Attrs&& attrs, const At& at, const As&... arguments) {
  const std::array<AnyOutput, sizeof...(As)> edges = edges_for<O>(at, arguments...);
  return WrapBound<OutputsOf<O>, TypesBy<O, As...>>::of(
      build<O>(std::span<const AnyOutput>(edges), std::move(attrs), at));
}

/// An edge, a tensor or a literal of an element type that is in the list.
template <class A, class Types>
concept ArgumentOf = contains_v<typename ElementAmong<A, Types>::type, Types>;
/// Its edge; that of a tensor or a literal is a constant beside `neighbour`.
template <class Types, ArgumentOf<Types> A>
AnyOutput edge_beside(const AnyOutput& neighbour, const A& argument, const At& at) {
  return edge_of_argument<typename ElementAmong<A, Types>::type>(argument, neighbour, at);
}

}  // namespace detail

/// An `Output`, a `Tensor`, a number or a text. A vector is none of them: `df::Tensor<int>({2}, {0, 1})` is a tensor.
template <class A>
concept EdgeTensorNumberOrText = !std::is_void_v<typename detail::OwnElement<A>::type>;

/// The op's signature accepts the arguments. At least one is an `Output`. Each is an `Output`, a `Tensor` or a literal
/// of an element type that the op allows there. A type parameter is the element type of the first edge that has it; if
/// no edge has it, of the first tensor, and then of the first literal. Each condition has a name for the compiler's
/// message.
template <class O, class... Arguments>
concept Accepts =
    OpType<O> && (EdgeTensorNumberOrText<Arguments> && ...) && (detail::is_edge_argument<Arguments> || ...) &&
    detail::types_fit<O, InputsOf<O>, detail::TypesBy<O, Arguments...>, Arguments...>;

/// The element type of the op's first type parameter with these arguments.
template <class O, class... Arguments>
using ElementFor = element_t<0, detail::TypesBy<O, Arguments...>>;

/// The op has no inputs, and its type parameters may be the element types Ts.
template <class O, class... Ts>
concept SourceOf = OpType<O> && std::same_as<InputsOf<O>, In<>> && detail::allows<O, Ts...>;

/// Applies an op to typed edges: the builder of every user-defined op without lists among its inputs and outputs. One
/// argument is an edge; the others may be tensors or literals, which become constants of that edge's graph.
///
/// ```cpp
/// auto y = df::apply<Swish>(x);
/// auto z = df::apply<RowNorm>(x, {.epsilon = 1e-3f});
/// auto q = df::apply<Quantile>(x, 0.5f);
/// auto r = df::apply<Ramp, float>(graph, {.size = 10});   // no inputs: they would say the graph and the element types
/// ```
/// Returns an `Output` for an op with one output, a tuple of them for several, or an `Operation` for none. A handle is
/// an `AnyOutput`.
/// Errors: does not compile for element types the op does not accept; InvalidArgument if the shapes do not fit.
template <OpType O, class A>
  requires Accepts<O, A>
auto apply(const A& a, typename O::Attrs attrs = {}, At at = {}) {
  return detail::apply_to<O>(std::move(attrs), at, a);
}
template <OpType O, class A, class B>
  requires Accepts<O, A, B>
auto apply(const A& a, const B& b, typename O::Attrs attrs = {}, At at = {}) {
  return detail::apply_to<O>(std::move(attrs), at, a, b);
}
template <OpType O, class A, class B, class C>
  requires Accepts<O, A, B, C>
auto apply(const A& a, const B& b, const C& c, typename O::Attrs attrs = {}, At at = {}) {
  return detail::apply_to<O>(std::move(attrs), at, a, b, c);
}
template <OpType O, class A, class B, class C, class D>
  requires Accepts<O, A, B, C, D>
auto apply(const A& a, const B& b, const C& c, const D& d, typename O::Attrs attrs = {}, At at = {}) {
  return detail::apply_to<O>(std::move(attrs), at, a, b, c, d);
}

template <OpType O, Element... Ts>
  requires SourceOf<O, Ts...>
auto apply(Graph& graph, typename O::Attrs attrs = {}, At at = {}) {
  return detail::WrapBound<OutputsOf<O>, TypeList<Ts...>>::of(
      build<O>(*graph.store(), {}, std::move(attrs), at, type_args<Ts...>()));
}

}  // namespace dflow
