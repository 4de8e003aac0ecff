#pragma once

/// Public: a graph as a C++ function from tensors to tensors.

#include <dflow/op/merge.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/session.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// The input edges of a compiled function, in the order of its arguments.
template <Element... Ts>
FeedList<Ts...> inputs(const Output<Ts>&... edges) {
  return {{static_cast<const AnyOutput&>(edges)...}};
}

/// The results of a compiled function, in order: an edge returns its tensor, an operation runs and returns nothing.
template <Fetchable... Fs>
FetchList<Fs...> outputs(const Fs&... fetches) {
  return {detail::FetchLists<Fs...>(fetches...)};
}

/// Variables and the edges of their new values. Each call of a compiled function assigns the new values at its end.
///
/// ```cpp
/// df::Updates updates;
/// for (const auto& [w, gradient] : trained) updates.add(w, w - gradient * 0.1f);
/// ```
/// Thread safety: a value type.
class Updates {
 public:
  struct Update {
    AnyVariable variable;
    AnyOutput value;
  };

  /// Element types and shapes are compared when the function is compiled.
  Updates& add(const AnyVariable& variable, const AnyOutput& value);
  template <Element T>
  Updates& add(const Variable<T>& variable, const std::type_identity_t<Output<T>>& value) {
    return add(variable.any_variable(), value);
  }

  const std::vector<Update>& all() const noexcept { return updates_; }

 private:
  std::vector<Update> updates_;
};

/// `updates(w, new_w, b, new_b)`: each variable, followed by the edge of its new value.
template <Element T, class V, class... More>
Updates updates(const Variable<T>& variable, const V& value, const More&... more) {
  static_assert(
      std::derived_from<V, Output<T>>,
      "a variable is updated to an edge of its element type: updates(variable, Output of the same type, ...)");
  static_assert(sizeof...(More) % 2 == 0, "updates(variable, value, ...): each variable is followed by its new value");
  Updates all;
  if constexpr (std::derived_from<V, Output<T>>) all.add(variable, value);
  if constexpr (sizeof...(More) > 0 && sizeof...(More) % 2 == 0) {
    const Updates rest = updates(more...);
    for (const Updates::Update& each : rest.all()) all.add(each.variable, each.value);
  }
  return all;
}

/// No updates.
inline Updates updates() { return {}; }

struct CompileOptions {
  /// Edges that replace others when outputs and new values are computed, as Theano's `givens`: the part of the graph
  /// between them is copied (`substitute`). Inputs and updated variables are not replaced.
  EdgeMap givens = {};
  /// The options of every call without options of its own.
  RunOptions run = {};
  /// The name scope of the update nodes, of the operation that ends the updates, and of the copies for `givens`.
  std::string_view name = "function";
};

namespace detail {

/// An edge; its tensor is returned as a Result.
template <class Result>
struct EdgeAs {
  AnyOutput output;
};
template <class Result>
EdgeFetch<Result> as_fetch(const EdgeAs<Result>& edge) {
  return {edge.output};
}

/// The fetch list of a step that returns a Result: nothing, one edge, or an edge for each element of a tuple.
template <class Result>
struct FetchesOf {
  using type = FetchList<EdgeAs<Result>>;
};
template <>
struct FetchesOf<void> {
  using type = FetchList<>;
};
template <class... Results>
struct FetchesOf<std::tuple<Results...>> {
  using type = FetchList<EdgeAs<Results>...>;
};

/// Applies the givens to the outputs and builds the operation that updates the variables. It runs after all outputs,
/// `operations` and new values. Without updates the function returns an empty Operation. Errors: InvalidArgument for an
/// empty variable or edge, a variable that is updated twice, a node of another graph than the session's, and a value of
/// another element type or shape than the variable's. The graph is unchanged then.
Operation build_function(const Session& session, std::span<const AnyOutput> inputs, std::span<AnyOutput> outputs,
                         std::span<const Operation> operations, const Updates& updates, const CompileOptions& options,
                         std::source_location where);

/// A tensor, or a number for a scalar.
template <class Given, class T>
concept ArgumentFor = std::convertible_to<const Given&, Tensor<T>> || LiteralFor<Given, T>;

template <Element T, ArgumentFor<T> Given>
Tensor<T> argument_tensor(const Given& given) {
  if constexpr (std::convertible_to<const Given&, Tensor<T>>) {
    return given;
  } else {
    return Tensor<T>(convert_literal<T>(given));
  }
}

}  // namespace detail

template <class Signature>
class CompiledFunction;

/// A step as an ordinary C++ callable; `compile` makes it. Its arguments are tensors, or numbers for scalars. It
/// returns nothing, one tensor or a tuple of tensors.
///
/// ```cpp
/// df::CompiledFunction<df::Tensor<float>(float)> square = df::compile(session, df::inputs(x), df::outputs(x * x));
/// float nine = square(3).scalar();
/// ```
/// It holds a prepared step: a call looks nothing up, and the parts of the session that it needs stay alive.
///
/// Thread safety: a value type; copies are the same step. Calls may run in several threads at once, as for
/// `Session::run`. Two calls at once may both read the values before the updates of either: callers that must not lose
/// an update take turns.
/// Errors: as for `Session`; FailedPrecondition if the function was moved from. After an error no variable has been
/// updated, unless an update itself failed.
template <class Result, Element... Ts>
class CompiledFunction<Result(Ts...)> {
 public:
  using Step = PreparedStep<FeedList<Ts...>, typename detail::FetchesOf<Result>::type>;

  CompiledFunction(Step step, RunOptions options) : step_(std::move(step)), options_(std::move(options)) {}

  /// Blocks until the step has ended, updates included.
  Result operator()(const Tensor<Ts>&... tensors) const { return step_.run(options_, nullptr, tensors...); }

  template <class... Given>
    requires(sizeof...(Given) == sizeof...(Ts) && sizeof...(Ts) > 0)
  Result operator()(const Given&... arguments) const {
    static_assert((detail::ArgumentFor<Given, Ts> && ...),
                  "a compiled function is called with tensors of the element types of its inputs, or numbers for "
                  "scalars");
    if constexpr ((detail::ArgumentFor<Given, Ts> && ...)) {
      return step_.run(options_, nullptr, detail::argument_tensor<Ts>(arguments)...);
    }
  }

  /// The same with a deadline, a stop token or a trace of its own.
  Result run(const RunOptions& options, RunMetadata* metadata, const Tensor<Ts>&... tensors) const {
    return step_.run(options, metadata, tensors...);
  }
  /// `run_async(tensors..., done)` starts the step and returns, as in `PreparedStep`.
  template <class Token>
  auto run_async(const Tensor<Ts>&... tensors, Token&& done) const {
    return step_.run_async(options_, nullptr, tensors..., std::forward<Token>(done));
  }

 private:
  Step step_;
  RunOptions options_;
};

/// Makes a function of a part of the graph, as Theano's `function(inputs, outputs, updates)`: each call is one step.
/// The step takes tensors for `inputs`, returns the tensors of `outputs`, and then changes the variables of `updates`.
/// All results and all new values are computed from the variables' values before the call.
///
/// ```cpp
/// auto train = df::compile(session, df::inputs(x, y), df::outputs(loss), df::updates(w, w - gw * 0.1f, n, n + 1));
/// float value = train(batch_x, batch_y).scalar();
/// ```
/// `compile` builds nodes for the `updates` in the graph and compiles the step. Operations among the outputs run before
/// the updates; their changes are not ordered with the reads of the new values.
///
/// Thread safety: builds, see Graph.
/// Errors: a new value of another element type than its variable's does not compile. InvalidArgument for a node of
/// another graph than the session's, for a variable that is updated twice and for a new value of another shape; the
/// graph is unchanged then. Else the errors of `Session::prepare`.
template <Element... Ts, Fetchable... Fs>
auto compile(Session& session, const FeedList<Ts...>& input_list, const FetchList<Fs...>& output_list,
             const Updates& update_list = {}, const CompileOptions& options = {},
             std::source_location where = std::source_location::current()) {
  using Function = CompiledFunction<detail::RunResult<Fs...>(Ts...)>;
  using Fetches = typename detail::FetchesOf<detail::RunResult<Fs...>>::type;
  Fetches fetches{typename Fetches::Lists(output_list.lists.edges)};
  std::vector<Operation> targets(output_list.lists.targets.begin(), output_list.lists.targets.end());
  const Operation updated =
      detail::build_function(session, input_list.edges, fetches.lists.edges, targets, update_list, options, where);
  if (updated.is_valid()) targets.assign(1, updated);
  return Function(session.prepare(input_list, fetches, targets), options.run);
}

/// The same for a function that returns nothing.
template <Element... Ts>
auto compile(Session& session, const FeedList<Ts...>& input_list, const Updates& update_list,
             const CompileOptions& options = {}, std::source_location where = std::source_location::current()) {
  return compile(session, input_list, outputs(), update_list, options, where);
}

namespace detail {

/// Errors: InvalidArgument unless there are `wanted` shapes.
void require_shape_of_each(std::size_t given, std::size_t wanted, std::source_location where);

template <Fetchable F>
FetchList<F> outputs_of(const F& fetch) {
  return outputs(fetch);
}
template <Fetchable... Fs>
FetchList<Fs...> outputs_of(const std::tuple<Fs...>& fetches) {
  return std::apply([](const Fs&... each) { return outputs(each...); }, fetches);
}

template <Element... Ts, class Build, std::size_t... Is>
auto plain_function(std::index_sequence<Is...>, std::span<const PartialShape> shapes, const Build& build,
                    const SessionOptions& options, std::source_location where) {
  Graph graph;
  const std::tuple<Output<Ts>...> edges{placeholder<Ts>(graph, shapes[Is], {.where = where})...};
  const auto built = std::apply(build, edges);
  Session session(graph, options);
  return compile(session, inputs(std::get<Is>(edges)...), outputs_of(built), {}, {}, where);
}

}  // namespace detail

/// Makes a function of tensors from a function of edges, in a graph and a session of its own. Every builder becomes a
/// plain function this way, with the kernels and the errors of its ops. Use it in the `map` of a dataset:
///
/// ```cpp
/// const auto prepare = df::plain_function<std::uint8_t>({{df::dynamic, df::dynamic, 3}}, [](auto pixels) {
///   return df::resize_images(df::random_flip_left_right(pixels), {64, 64});
/// });
/// auto images = files.map(prepare, {.threads = 4});
/// ```
/// `build` is called once, with a placeholder for each element type. `shapes` has the shape of each argument, in which
/// `dynamic` stands for an extent that differs from call to call. The function returns the tensor of the edge that
/// `build` returns, or the tensors of a `std::tuple` of edges. Random ops draw anew in each call.
///
/// Thread safety: safe. Copies of the function share a session, and calls in several threads run side by side.
/// Errors: InvalidArgument for another number of shapes, and the errors of `build`. A call has the errors of its step,
/// and InvalidArgument for a tensor that does not fit in its shape.
template <Element... Ts, class Build>
  requires(sizeof...(Ts) > 0)
auto plain_function(std::initializer_list<PartialShape> shapes, const Build& build, const SessionOptions& options = {},
                    std::source_location where = std::source_location::current()) {
  detail::require_shape_of_each(shapes.size(), sizeof...(Ts), where);
  return detail::plain_function<Ts...>(std::index_sequence_for<Ts...>(), {shapes.begin(), shapes.size()}, build,
                                       options, where);
}

}  // namespace dflow
