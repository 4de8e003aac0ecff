#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/session/feed.hpp>
#include <dflow/session/options.hpp>

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

class CompiledStep;
class Device;

/// Edges that a prepared step is fed, in the order of its arguments.
template <Element... Ts>
struct FeedList {
  std::array<AnyOutput, sizeof...(Ts)> edges;
};
template <Element... Ts>
FeedList<Ts...> feeds(const Output<Ts>&... edges) {
  return {{static_cast<const AnyOutput&>(edges)...}};
}

/// What a prepared step fetches and runs.
template <Fetchable... Fs>
struct FetchList {
  detail::FetchLists<Fs...> lists;
};
template <Fetchable... Fs>
FetchList<Fs...> fetches(const Fs&... fetches) {
  return {detail::FetchLists<Fs...>(fetches...)};
}

template <class Feeds, class Fetches>
class PreparedStep;

/// Runs steps of a graph: prunes, optimises, places and compiles what each kind of step needs once, and keeps variables and
/// other state between steps.
///
/// ```cpp
/// df::Session session(graph);
/// session.run(df::initialize_variables(graph));
/// float value = session.run({{images, x}, {labels, y}}, loss, train).scalar();
/// ```
///
/// Thread safety: all functions may be called from several threads at once; steps then run concurrently. The graph may
/// grow meanwhile and must outlive the session.
/// Errors: `Error` with InvalidArgument for feeds and fetches that do not fit the graph, whatever a kernel throws
/// with op, node, device and source line added, Cancelled, DeadlineExceeded. After an error the session goes on.
class Session {
 public:
  explicit Session(const Graph& graph, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Runs one step and returns what was fetched: nothing, one `Tensor<T>`, or a tuple. Blocks until the step has ended.
  template <Fetchable... Fs>
  detail::RunResult<Fs...> run(std::initializer_list<Feed> feed_list, const Fs&... fetch_list) {
    return run(RunOptions{}, feed_list, fetch_list...);
  }
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> run(const F& first, const Fs&... more) {
    return run(RunOptions{}, {}, first, more...);
  }
  template <Fetchable... Fs>
  detail::RunResult<Fs...> run(const RunOptions& options, std::initializer_list<Feed> feed_list, const Fs&... fetch_list) {
    return run(options, nullptr, feed_list, fetch_list...);
  }
  /// The same, with statistics of the step if `options.trace` asks for them.
  template <Fetchable... Fs>
  detail::RunResult<Fs...> run(const RunOptions& options, RunMetadata* metadata, std::initializer_list<Feed> feed_list,
                               const Fs&... fetch_list) {
    const detail::FetchLists<Fs...> lists(fetch_list...);
    std::array<AnyTensor, detail::num_edges<Fs...>> results;
    run_erased(options, metadata, std::span(feed_list.begin(), feed_list.size()), lists.edges, lists.targets, results);
    return detail::unpack<Fs...>(results.data());
  }

  /// The erased form of `run`: `results` has one element per fetched edge.
  void run_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                  std::span<const AnyOutput> edges, std::span<const Operation> targets, std::span<AnyTensor> results);

  using AnyDone = UniqueFunction<void(Status, std::vector<AnyTensor>)>;

  /// Starts a step and returns at once; `done` gets the status and one tensor per fetched edge, from another thread
  /// (or from this one, before the call returns, on a pool without threads).
  void run_async_erased(const RunOptions& options, std::span<const Feed> feed_list, std::span<const AnyOutput> edges,
                        std::span<const Operation> targets, AnyDone done);

  /// `done(Status, results...)`: one `Tensor<T>` per fetched edge, empty after an error.
  template <class Done, Fetchable... Fs>
  void run_async(std::initializer_list<Feed> feed_list, Done done, const Fs&... fetch_list) {
    const detail::FetchLists<Fs...> lists(fetch_list...);
    run_async_erased({}, std::span(feed_list.begin(), feed_list.size()), lists.edges, lists.targets,
                     [done = std::move(done)](Status status, std::vector<AnyTensor> tensors) mutable {
                       tensors.resize(detail::num_edges<Fs...>);
                       deliver<detail::Results<Fs...>>(done, std::move(status), tensors,
                                                       std::make_index_sequence<detail::num_edges<Fs...>>{});
                     });
  }

  /// Compiles a step now; calling the result costs a function call and the kernels.
  ///
  /// ```cpp
  /// auto step = session.prepare(df::feeds(images, labels), df::fetches(loss, train));
  /// float value = step(x, y).scalar();
  /// ```
  template <Element... Ts, Fetchable... Fs>
  PreparedStep<FeedList<Ts...>, FetchList<Fs...>> prepare(const FeedList<Ts...>& feed_list,
                                                          const FetchList<Fs...>& fetch_list) {
    return {*this, compile(feed_list.edges, fetch_list.lists.edges, fetch_list.lists.targets)};
  }

  const std::vector<std::shared_ptr<Device>>& devices() const noexcept;
  const OpTable& ops() const noexcept;
  /// Where each node of the last compiled step was placed: "node -> device" lines.
  std::string placement_log() const;

 private:
  template <class Feeds, class Fetches>
  friend class PreparedStep;
  struct State;

  std::shared_ptr<CompiledStep> compile(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                        std::span<const Operation> targets);
  void run_compiled(CompiledStep& step, std::span<AnyTensor> feed_tensors, std::span<AnyTensor> results);

  template <class Tuple, class Done, std::size_t... I>
  static void deliver(Done& done, Status status, std::vector<AnyTensor>& tensors, std::index_sequence<I...>) {
    if (status.ok()) {
      done(std::move(status), std::tuple_element_t<I, Tuple>(std::move(tensors[I]))...);
    } else {
      done(std::move(status), std::tuple_element_t<I, Tuple>()...);
    }
  }

  std::shared_ptr<State> state_;
};

/// A step compiled by `Session::prepare`.
///
/// Thread safety: may be called from several threads at once. Must not outlive its session.
template <Element... Ts, Fetchable... Fs>
class PreparedStep<FeedList<Ts...>, FetchList<Fs...>> {
 public:
  PreparedStep(Session& session, std::shared_ptr<CompiledStep> step) : session_(&session), step_(std::move(step)) {}

  detail::RunResult<Fs...> operator()(const Tensor<Ts>&... tensors) const {
    std::array<AnyTensor, sizeof...(Ts)> feed_tensors{static_cast<const AnyTensor&>(tensors)...};
    std::array<AnyTensor, detail::num_edges<Fs...>> results;
    session_->run_compiled(*step_, feed_tensors, results);
    return detail::unpack<Fs...>(results.data());
  }

 private:
  Session* session_;
  std::shared_ptr<CompiledStep> step_;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/session/session.ipp>
#endif
