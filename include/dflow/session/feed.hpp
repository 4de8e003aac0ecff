#pragma once

#include <dflow/core/sparse_tensor.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/ops/sparse_output.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// A value that cannot be fed to an edge of element type T.
template <class V, class T>
concept NoTensorOf = !std::is_convertible_v<const V&, Tensor<T>>;

/// Always false, but only when instantiated with a type.
template <class...>
inline constexpr bool never = false;

}  // namespace detail

/// An edge and the tensor that a step puts on it instead of computing it: `{images, x}`. Feeding another element type
/// than the edge's does not compile. A sparse tensor is fed as a SparseTensor: `{ids, sparse}`.
struct Feed {
  AnyOutput output;
  AnyTensor tensor;
  /// The values and the dense shape, if this is the feed of a sparse tensor, whose indices are `tensor`.
  std::vector<Feed> more = {};

  template <Element T>
  Feed(const Output<T>& edge, const std::type_identity_t<Tensor<T>>& value) : output(edge), tensor(value) {}
  /// States the error, because a list of overloads that do not fit would hide it.
  template <Element T, detail::NoTensorOf<T> V>
  Feed(const Output<T>&, const V&) {
    static_assert(
        detail::never<V>,
        "what is fed has another element type than the edge: an Output<T> is fed a Tensor<T>, or a T for a scalar; an "
        "AnyTensor becomes one by value.as<T>(), a std::vector<T> by df::borrow(values, shape)");
  }
  template <Element T>
  Feed(const SparseOutput<T>& edges, const std::type_identity_t<SparseTensor<T>>& value)
      : Feed(edges.indices, value.indices()) {
    more.reserve(2);
    more.emplace_back(edges.values, value.values());
    more.emplace_back(edges.dense_shape, value.dense_shape());
  }
  /// The erased form; element types are compared when the step runs.
  template <std::same_as<AnyOutput> O>
  Feed(const O& edge, const AnyTensor& value) : output(edge), tensor(value) {}
};

/// The feeds of an asynchronous call: up to 16 in braces, {{images, x}, {labels, y}}, or a vector of any number. It is
/// no std::initializer_list, because g++ 12 compiles none inside of a `co_await`.
///
/// Thread safety: a value type.
class BracedFeeds {
 public:
  BracedFeeds() = default;
  BracedFeeds(std::vector<Feed> feeds) : feeds_(std::move(feeds)) {}
  BracedFeeds(const Feed& f0, const Feed& f1 = none(), const Feed& f2 = none(), const Feed& f3 = none(),
              const Feed& f4 = none(), const Feed& f5 = none(), const Feed& f6 = none(), const Feed& f7 = none(),
              const Feed& f8 = none(), const Feed& f9 = none(), const Feed& f10 = none(), const Feed& f11 = none(),
              const Feed& f12 = none(), const Feed& f13 = none(), const Feed& f14 = none(), const Feed& f15 = none()) {
    const std::array<const Feed*, 16> given{&f0, &f1, &f2,  &f3,  &f4,  &f5,  &f6,  &f7,
                                            &f8, &f9, &f10, &f11, &f12, &f13, &f14, &f15};
    std::size_t count = 1;
    while (count < given.size() && given[count] != &none()) ++count;
    feeds_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) feeds_.push_back(*given[i]);
  }

  const std::vector<Feed>& feeds() const& noexcept { return feeds_; }
  std::vector<Feed> feeds() && noexcept { return std::move(feeds_); }

 private:
  static const Feed& none() {
    static const Feed feed(AnyOutput{}, AnyTensor{});
    return feed;
  }

  std::vector<Feed> feeds_;
};

namespace detail {

/// How a thing named among the fetches is run and what `run` returns for it.
struct TargetFetch {
  Operation operation;
};
template <class Result>
struct EdgeFetch {
  using result_type = Result;
  AnyOutput output;
};
/// The edges of a result that is made of several.
template <class T>
struct SparseFetch {
  using result_type = SparseTensor<T>;
  std::array<AnyOutput, 3> edges;
};

/// How many edges a result is made of, and how.
template <class Result>
struct ResultOf {
  static constexpr std::size_t num_edges = 1;
  static Result of(AnyTensor* tensors) { return Result(std::move(*tensors)); }
};
template <class T>
struct ResultOf<SparseTensor<T>> {
  static constexpr std::size_t num_edges = 3;
  static SparseTensor<T> of(AnyTensor* tensors) { return SparseTensor<T>::unchecked(tensors); }
};

template <Element T>
EdgeFetch<Tensor<T>> as_fetch(const Output<T>& output) {
  return {output};
}
inline EdgeFetch<AnyTensor> as_fetch(const AnyOutput& output) { return {output}; }
inline TargetFetch as_fetch(const Operation& operation) { return {operation}; }
template <Element T>
SparseFetch<T> as_fetch(const SparseOutput<T>& sparse) {
  return {{sparse.indices, sparse.values, sparse.dense_shape}};
}

}  // namespace detail

/// A thing that may be fetched: an Output<T> or AnyOutput (its tensor is returned), a SparseOutput<T> (a
/// SparseTensor<T> is returned), or an Operation (it runs; nothing is returned). A thing that `as_fetch` converts to
/// one of them, like a Variable, may be fetched too.
template <class F>
concept Fetchable =
    requires(const F& fetch) { as_fetch(fetch); } || requires(const F& fetch) { detail::as_fetch(fetch); };

namespace detail {

template <Fetchable F>
auto fetch_of(const F& fetch) {
  if constexpr (requires { as_fetch(fetch); }) {
    return as_fetch(fetch);
  } else {
    return detail::as_fetch(fetch);
  }
}

template <Fetchable F>
using FetchOf = decltype(fetch_of(std::declval<const F&>()));

template <class F>
inline constexpr bool is_edge = !std::same_as<FetchOf<F>, TargetFetch>;

template <class F, bool edge = is_edge<F>>
struct ResultTuple {
  using type = std::tuple<>;
};
template <class F>
struct ResultTuple<F, true> {
  using type = std::tuple<typename FetchOf<F>::result_type>;
};

template <class Tuple>
struct Unpacked {
  using type = Tuple;
};
template <>
struct Unpacked<std::tuple<>> {
  using type = void;
};
template <class T>
struct Unpacked<std::tuple<T>> {
  using type = T;
};

/// All results of the fetches in order: std::tuple<Tensor<float>, ...>.
template <class... Fs>
using Results = decltype(std::tuple_cat(std::declval<typename ResultTuple<Fs>::type>()...));

/// The result of `run`: nothing, one tensor, or a tuple. Constrained, for a compiler may look at the result of an
/// overload before its constraints.
template <Fetchable... Fs>
using RunResult = typename Unpacked<Results<Fs...>>::type;

template <class F>
constexpr std::size_t num_edges_of() {
  if constexpr (is_edge<F>) {
    return ResultOf<typename FetchOf<F>::result_type>::num_edges;
  } else {
    return 0;
  }
}
template <class... Fs>
inline constexpr std::size_t num_edges = (num_edges_of<Fs>() + ... + 0);
template <class... Fs>
inline constexpr std::size_t num_targets = (std::size_t{!is_edge<Fs>} + ... + 0);

/// Fetches split into edges and targets, each in order.
template <class... Fs>
struct FetchLists {
  std::array<AnyOutput, num_edges<Fs...>> edges;
  std::array<Operation, num_targets<Fs...>> targets;

  explicit FetchLists(const Fs&... fetches) {
    std::size_t e = 0, t = 0;
    [[maybe_unused]] const auto add = [&](const auto& fetch) {
      if constexpr (requires { fetch.operation; }) {
        targets[t++] = fetch.operation;
      } else if constexpr (requires { fetch.edges; }) {
        for (const AnyOutput& edge : fetch.edges) edges[e++] = edge;
      } else {
        edges[e++] = fetch.output;
      }
    };
    (add(fetch_of(fetches)), ...);
  }
  /// From edges alone, without targets.
  explicit FetchLists(const std::array<AnyOutput, num_edges<Fs...>>& fetched)
    requires(num_targets<Fs...> == 0)
      : edges(fetched) {}
};

/// How many edges the first `count` results of a tuple are made of.
template <class Tuple>
struct EdgesOfResults;
template <class... Rs>
struct EdgesOfResults<std::tuple<Rs...>> {
  static constexpr std::size_t before(std::size_t count) {
    std::size_t edges = 0, i = 0;
    ((edges += i++ < count ? ResultOf<Rs>::num_edges : 0), ...);
    return edges;
  }
  static constexpr std::size_t all = (ResultOf<Rs>::num_edges + ... + 0);
};

/// Result I of the tuple, from the tensors of all edges.
template <class Tuple, std::size_t I>
std::tuple_element_t<I, Tuple> typed_result(AnyTensor* tensors) {
  constexpr std::size_t first = EdgesOfResults<Tuple>::before(I);
  return ResultOf<std::tuple_element_t<I, Tuple>>::of(tensors + first);
}

template <class Tuple, std::size_t... I>
Tuple typed_results(AnyTensor* tensors, std::index_sequence<I...>) {
  return Tuple{typed_result<Tuple, I>(tensors)...};
}

template <class... Fs>
RunResult<Fs...> unpack(AnyTensor* tensors) {
  using Tuple = Results<Fs...>;
  if constexpr (std::tuple_size_v<Tuple> == 1) {
    return typed_result<Tuple, 0>(tensors);
  } else if constexpr (std::tuple_size_v<Tuple> > 1) {
    return typed_results<Tuple>(tensors, std::make_index_sequence<std::tuple_size_v<Tuple>>{});
  }
}

}  // namespace detail

}  // namespace dflow
