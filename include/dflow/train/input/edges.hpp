#pragma once

#include <dflow/graph/output.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Functions that take edges, work on them in erased form, and return edges of the same types.
namespace dflow::train::detail {

/// An edge (an Output, a Variable) as an Output.
template <Element T>
Output<T> as_output(const Output<T>& edge) {
  return edge;
}
template <class Edge>
using OutputOf = decltype(as_output(std::declval<const Edge&>()));

template <class T>
struct EdgesOf {
  static constexpr bool are = requires { typename OutputOf<T>; };
};
template <class... Edges>
struct EdgesOf<std::tuple<Edges...>> {
  static constexpr bool are = sizeof...(Edges) > 0 && (EdgesOf<Edges>::are && ...);
};

/// An edge, or a tuple of edges, at least one.
template <class T>
concept EdgeTuple = EdgesOf<T>::are;

template <Element T>
std::vector<AnyOutput> erased(const Output<T>& edge) {
  return {edge};
}
template <class... Edges>
std::vector<AnyOutput> erased(const std::tuple<Edges...>& edges) {
  return std::apply([](const Edges&... each) { return std::vector<AnyOutput>{each...}; }, edges);
}

/// Edges from `first` on, with the form and element types of `model`.
template <Element T>
Output<T> like(const Output<T>&, const std::vector<AnyOutput>& edges, std::size_t first = 0) {
  return Output<T>::unchecked(edges[first]);
}
template <class... Edges>
auto like(const std::tuple<Edges...>&, const std::vector<AnyOutput>& edges, std::size_t first = 0) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple{OutputOf<Edges>::unchecked(edges[first + I])...};
  }(std::index_sequence_for<Edges...>{});
}

/// Throws InvalidArgument for a builder called `function`.
[[noreturn]] void reject_input(std::string_view function, std::string message, const At& at);
/// The graph that x belongs to. Errors: InvalidArgument if x is empty.
GraphStore& graph_of_input(const AnyOutput& x, std::string_view function, const At& at);
Output<std::int32_t> int_constant(GraphStore& graph, std::int32_t value);
/// The number of rows of x, a scalar: a constant if the number is known.
Output<std::int32_t> num_rows(const AnyOutput& x);

}  // namespace dflow::train::detail
