#pragma once

#include <dflow/ops/control/body_value.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

struct MapOptions {
  std::int64_t parallel_iterations = 10;  ///< as in WhileOptions
  std::int64_t max_kept_bytes = -1;       ///< as in WhileOptions
};

struct FoldOptions {
  /// The shape that each state has in all iterations, if this is not the shape of its first value. None, or one for
  /// each.
  std::vector<PartialShape> shapes = {};
  std::int64_t parallel_iterations = 10;  ///< as in WhileOptions
  std::int64_t max_kept_bytes = -1;       ///< as in WhileOptions
};

struct ScanOptions {
  std::vector<PartialShape> shapes = {};  ///< as in FoldOptions
  bool reverse = false;                   ///< from the last row to the first
  std::int64_t parallel_iterations = 10;  ///< as in WhileOptions
  std::int64_t max_kept_bytes = -1;       ///< as in WhileOptions
};

namespace detail {

/// A loop over the rows of tensors.
struct RowLoop {
  std::span<const AnyOutput> elems;         ///< [n, ...] each
  std::span<const AnyOutput> initial = {};  ///< states
  std::span<const PartialShape> shapes = {};
  bool is_reverse = false;
  std::size_t num_gathered = 0;  ///< edges that an iteration gives for rows of the results
  /// int32 [1]: the first extent of a gathered row, if the graph does not know it. A result of no rows gets its shape
  /// by it.
  AnyOutput first_extent = {};
  std::int64_t parallel_iterations = 10;
  std::int64_t max_kept_bytes = -1;
  std::string_view name = {};
};

/// The results of an iteration: the next states, and the gathered edges.
struct RowResults {
  std::vector<AnyOutput> states;
  std::vector<AnyOutput> gathered;
};
/// Builds an iteration from the states, and a row of each of `elems`.
using BuildRow = FunctionRef<RowResults(std::span<const AnyOutput> states, std::span<const AnyOutput> rows)>;

/// The last states, and the results of all iterations stacked. Errors: InvalidArgument unless there are `elems`, and
/// all have a leading dimension, of one size as far as it is known; else as `any_loop`.
RowResults any_row_loop(const RowLoop& loop, BuildRow build, const At& at);

/// Edges of a value: an edge, or a tuple of edges.
template <class V>
std::vector<AnyOutput> edges_of(const V& value) {
  BodyResults results;
  BodyValue<V>::add(value, results);
  return std::move(results.edges);
}

/// The value that consists of edges, one after the other.
template <class V>
struct FromEdges;
template <class V>
  requires std::derived_from<V, AnyOutput>
struct FromEdges<V> {
  static V of(std::span<const AnyOutput> edges, std::size_t& next) { return V::unchecked(edges[next++]); }
};
template <class... Vs>
struct FromEdges<std::tuple<Vs...>> {
  static std::tuple<Vs...> of(std::span<const AnyOutput> edges, std::size_t& next) {
    return {FromEdges<Vs>::of(edges, next)...};
  }
};

template <class V>
V from_edges(std::span<const AnyOutput> edges) {
  std::size_t next = 0;
  return FromEdges<V>::of(edges, next);
}

template <class V>
using EdgesOf = typename BodyValue<V>::Type;

template <class V>
inline constexpr std::size_t num_value_edges = 1;
template <class... Vs>
inline constexpr std::size_t num_value_edges<std::tuple<Vs...>> = (num_value_edges<Vs> + ... + 0);

/// The results of f for values of the given types, as edges.
template <class F, class... Values>
auto result_edges() {
  static_assert(std::invocable<F&, const EdgesOf<Values>&...>,
                "the function is called with a row, an edge or a tuple as the elems are; that of a fold or a scan with "
                "the state before it");
  using Result = std::remove_cvref_t<std::invoke_result_t<F&, const EdgesOf<Values>&...>>;
  static_assert(IsBodyValue<Result>, "the function returns an edge or a std::tuple of edges");
  return EdgesOf<Result>();
}

template <class F, class State, class Elems>
RowResults fold_rows(F& f, const Elems& elems, const State& initial, RowLoop loop, const At& at) {
  using Result = decltype(result_edges<F, State, Elems>());
  static_assert(std::same_as<Result, EdgesOf<State>>, "the function returns the next state, of its element types");
  const std::vector<AnyOutput> rows = edges_of(elems), states = edges_of(initial);
  loop.elems = rows;
  loop.initial = states;
  return any_row_loop(
      loop,
      [&](std::span<const AnyOutput> state, std::span<const AnyOutput> row) {
        RowResults next{edges_of(f(from_edges<EdgesOf<State>>(state), from_edges<EdgesOf<Elems>>(row))), {}};
        if (loop.num_gathered > 0) next.gathered = next.states;
        return next;
      },
      at);
}

}  // namespace detail

/// Applies f to each row, and stacks the results. elems: [n, ...], or a tuple of edges with one n; f then gets a row
/// of each. f returns an edge, or a tuple of edges, of one shape in all iterations.
///
/// ```cpp
/// auto y = df::map([](auto row) { return df::reduce_sum(row * row); }, x);  // [n, m] -> [n]
/// ```
/// Thread safety: builds; see Graph. Differentiable any number of times.
/// Errors: InvalidArgument for elems without a leading dimension, or with different ones. When the step runs:
/// InvalidArgument if results differ in shape, and if there are no rows and the result's shape is not known.
template <class F, class Elems>
auto map(F&& f, const Elems& elems, const MapOptions& options = {}, const At& at = {}) {
  using Result = decltype(detail::result_edges<F, Elems>());
  const std::vector<AnyOutput> rows = detail::edges_of(elems);
  const detail::RowResults all = detail::any_row_loop(
      {.elems = rows,
       .num_gathered = detail::num_value_edges<Result>,
       .parallel_iterations = options.parallel_iterations,
       .max_kept_bytes = options.max_kept_bytes,
       .name = "map"},
      [&](std::span<const AnyOutput>, std::span<const AnyOutput> row) {
        return detail::RowResults{{}, detail::edges_of(f(detail::from_edges<detail::EdgesOf<Elems>>(row)))};
      },
      at);
  return detail::from_edges<Result>(all.gathered);
}

/// The last state of `state = f(state, row)` over the rows of elems, from the first to the last. State and elems: an
/// edge, or a tuple of edges each.
///
/// ```cpp
/// auto sum = df::foldl([](auto sum, auto row) { return sum + row; }, x, zero);
/// ```
/// Thread safety: builds; see Graph. Differentiable any number of times.
/// Errors: InvalidArgument as `map` and `while_loop`.
template <class F, class Elems, class State>
detail::EdgesOf<State> foldl(F&& f, const Elems& elems, const State& initial, const FoldOptions& options = {},
                             const At& at = {}) {
  detail::RowLoop loop;
  loop.shapes = options.shapes;
  loop.parallel_iterations = options.parallel_iterations;
  loop.max_kept_bytes = options.max_kept_bytes;
  loop.name = "foldl";
  return detail::from_edges<detail::EdgesOf<State>>(detail::fold_rows(f, elems, initial, loop, at).states);
}
/// The same from the last row to the first.
template <class F, class Elems, class State>
detail::EdgesOf<State> foldr(F&& f, const Elems& elems, const State& initial, const FoldOptions& options = {},
                             const At& at = {}) {
  detail::RowLoop loop;
  loop.shapes = options.shapes;
  loop.is_reverse = true;
  loop.parallel_iterations = options.parallel_iterations;
  loop.max_kept_bytes = options.max_kept_bytes;
  loop.name = "foldr";
  return detail::from_edges<detail::EdgesOf<State>>(detail::fold_rows(f, elems, initial, loop, at).states);
}

/// All states of a fold except the first: [n, ...] each. With `reverse`, row i is the state that the fold from the
/// last row has after row i.
///
/// ```cpp
/// auto sums = df::scan([](auto sum, auto row) { return sum + row; }, x, zero);  // cumulative
/// ```
/// Thread safety: builds; see Graph. Differentiable any number of times.
/// Errors: InvalidArgument as `map` and `while_loop`.
template <class F, class Elems, class State>
detail::EdgesOf<State> scan(F&& f, const Elems& elems, const State& initial, const ScanOptions& options = {},
                            const At& at = {}) {
  detail::RowLoop loop;
  loop.shapes = options.shapes;
  loop.is_reverse = options.reverse;
  loop.num_gathered = detail::num_value_edges<detail::EdgesOf<State>>;
  loop.parallel_iterations = options.parallel_iterations;
  loop.max_kept_bytes = options.max_kept_bytes;
  loop.name = "scan";
  return detail::from_edges<detail::EdgesOf<State>>(detail::fold_rows(f, elems, initial, loop, at).gathered);
}

}  // namespace dflow
