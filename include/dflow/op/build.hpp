#pragma once

/// Public: builders of ops of your own, `apply<Op>` and `build<Op>`.

#include <dflow/graph/graph.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/op/op_def_of.hpp>

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

/// The element type of an edge: an Output, or a class derived from Output, like Variable.
template <Element T>
std::type_identity<T> edge_element(const Output<T>& edge);
template <class Edge>
using EdgeElement = typename decltype(edge_element(std::declval<const Edge&>()))::type;

/// The element type bound to type parameter 0 by the first edge whose argument is that parameter.
template <class Args, class... Edges>
struct Bind0;
template <class... Edges>
struct Bind0<In<>, Edges...> {
  using type = void;
};
template <class Arg, class... Args, class Edge, class... Edges>
struct Bind0<In<Arg, Args...>, Edge, Edges...> {
  using type = typename Bind0<In<Args...>, Edges...>::type;
};
template <class... Args, class Edge, class... Edges>
struct Bind0<In<TypeParam<0>, Args...>, Edge, Edges...> {
  using type = EdgeElement<Edge>;
};

template <class Arg, class T, class Edge>
inline constexpr bool fits = std::derived_from<Edge, Output<Arg>>;
template <class T, class Edge>
inline constexpr bool fits<TypeParam<0>, T, Edge> = std::derived_from<Edge, Output<T>>;
template <std::uint8_t I, class T, class Edge>
  requires(I > 0)
inline constexpr bool fits<TypeParam<I>, T, Edge> = true;

template <class O, class Args, class... Edges>
inline constexpr bool accepts = false;
template <class O, class... Args, class... Edges>
  requires(sizeof...(Args) == sizeof...(Edges))
inline constexpr bool accepts<O, In<Args...>, Edges...> =
    AllowedFor<typename Bind0<In<Args...>, Edges...>::type, O> &&
    (fits<Args, typename Bind0<In<Args...>, Edges...>::type, Edges> && ...);

/// The result of a typed builder for one output. A handle has no element type, so it is erased.
template <class Arg, class T>
auto wrapped(const AnyOutput& output) {
  if constexpr (std::same_as<Arg, ResourceHandle> || std::same_as<Arg, TensorListHandle>) {
    return output;
  } else if constexpr (std::same_as<Arg, TypeParam<0>>) {
    return Output<T>::unchecked(output);
  } else {
    return Output<Arg>::unchecked(output);
  }
}

template <class T, class Signature>
struct Wrap;
template <class T>
struct Wrap<T, Out<>> {
  static Operation of(const BuiltNode& node) { return node; }
};
template <class T, class Arg>
struct Wrap<T, Out<Arg>> {
  static auto of(const BuiltNode& node) { return wrapped<Arg, T>(node.output(0)); }
};
template <class T, class First, class Second, class... Rest>
struct Wrap<T, Out<First, Second, Rest...>> {
  template <std::size_t... I>
  static auto of(const BuiltNode& node, std::index_sequence<I...>) {
    return std::tuple{wrapped<First, T>(node.output(0)), wrapped<Second, T>(node.output(1)),
                      wrapped<Rest, T>(node.output(static_cast<int>(I) + 2))...};
  }
  static auto of(const BuiltNode& node) { return of(node, std::index_sequence_for<Rest...>{}); }
};

/// The element type of an output of an op with the type parameters Ts.
template <class Arg, class... Ts>
struct Bound {
  using type = Arg;
};
template <std::uint8_t I, class... Ts>
struct Bound<TypeParam<I>, Ts...> {
  using type = element_t<I, TypeList<Ts...>>;
};

template <class Signature, class... Ts>
struct BoundOutputs;
template <class... Args, class... Ts>
struct BoundOutputs<Out<Args...>, Ts...> {
  using type = Out<typename Bound<Args, Ts...>::type...>;
};

template <class O, class... Ts>
inline constexpr bool allows = false;
template <class O, class... Ts>
  requires(sizeof...(Ts) == O::TypeParams::size)
inline constexpr bool allows<O, Ts...> = []<std::size_t... I>(std::index_sequence<I...>) {
  return (AllowedForParam<Ts, O, I> && ...);
}(std::index_sequence_for<Ts...>{});

template <OpType O, class... Edges>
auto apply_to(typename O::Attrs&& attrs, const At& at, const Edges&... edges) {
  using T = typename Bind0<InputsOf<O>, Edges...>::type;
  return Wrap<T, OutputsOf<O>>::of(build<O>({static_cast<const AnyOutput&>(edges)...}, std::move(attrs), at));
}

}  // namespace detail

/// The op's signature accepts the edges; each is an `Output` of an element type that the op allows.
template <class O, class... Edges>
concept Accepts = OpType<O> && detail::accepts<O, InputsOf<O>, Edges...>;

/// The op has no inputs, and its type parameters may be the element types Ts.
template <class O, class... Ts>
concept SourceOf = OpType<O> && std::same_as<InputsOf<O>, In<>> && detail::allows<O, Ts...>;

/// Applies an op to typed edges: the builder of every user-defined op without lists among its inputs and outputs.
///
/// ```cpp
/// auto y = df::apply<Swish>(x);
/// auto z = df::apply<RowNorm>(x, {.epsilon = 1e-3f});
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
  using Outputs = typename detail::BoundOutputs<OutputsOf<O>, Ts...>::type;
  return detail::Wrap<void, Outputs>::of(build<O>(*graph.store(), {}, std::move(attrs), at, type_args<Ts...>()));
}

}  // namespace dflow
