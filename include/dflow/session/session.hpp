#pragma once

/// Public: sessions, which run steps of a graph.

#include <dflow/graph/graph.hpp>
#include <dflow/session/async_token.hpp>
#include <dflow/session/device_graph.hpp>
#include <dflow/session/feed.hpp>
#include <dflow/session/options.hpp>
#include <dflow/session/partial_run.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
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

/// The edges that a prepared step fetches, and the operations that it runs.
template <Fetchable... Fs>
struct FetchList {
  using Lists = detail::FetchLists<Fs...>;
  Lists lists;
};
template <Fetchable... Fs>
FetchList<Fs...> fetches(const Fs&... fetches) {
  return {detail::FetchLists<Fs...>(fetches...)};
}

template <class Feeds, class Fetches>
class PreparedStep;
class AnyPreparedStep;

/// Runs steps of a graph. A session prunes, optimises, places and compiles the nodes of each kind of step once. It
/// keeps variables and other state between steps.
///
/// ```cpp
/// df::Session session(graph);
/// session.run(df::initialize_variables(graph));
/// float value = session.run({{images, x}, {labels, y}}, loss, train).scalar();
/// ```
///
/// The caller owns a returned tensor: it shares memory with no variable, constant, feed or other result. The session
/// only reads the tensors of feeds, and keeps none beyond the step.
///
/// A session keeps the nodes of its graph, its devices and its pools alive, and so do its prepared steps, its partial
/// runs and its asynchronous runs. So graph, session and these may be destroyed in any order.
///
/// Thread safety: all functions but moving may be called from several threads at once, also from callbacks; steps then
/// run concurrently. The graph may grow meanwhile.
/// Errors: `Error` with InvalidArgument if feeds or fetches do not fit the graph, or a step has neither fetch nor
/// target; FailedPrecondition if the session was moved from; Cancelled; DeadlineExceeded. Errors of a kernel come with
/// op, node, device and source line added. The session stays usable after an error.
class Session {
 public:
  explicit Session(const Graph& graph, SessionOptions options = {});
  /// The same for code without a Graph at hand. Precondition: the store belongs to a Graph, or did.
  explicit Session(const GraphStore& graph, SessionOptions options = {});
  /// Waits for nothing and cancels nothing. Running steps go on, prepared steps can still be run, and callbacks are
  /// still called: a step keeps the parts of the session that it needs. To end a step early, stop it
  /// (`RunOptions::stop`).
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Runs one step and returns the fetched values: nothing, one `Tensor<T>`, or a tuple. Blocks until the step has
  /// ended.
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> run(std::initializer_list<Feed> feed_list, const F& first, const Fs&... more) {
    return run(RunOptions{}, feed_list, first, more...);
  }
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> run(const F& first, const Fs&... more) {
    return run(RunOptions{}, {}, first, more...);
  }
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> run(const RunOptions& options, std::initializer_list<Feed> feed_list, const F& first,
                                  const Fs&... more) {
    return run(options, nullptr, feed_list, first, more...);
  }
  /// The same, with statistics of the step if `options.trace` asks for them; otherwise the metadata is emptied.
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> run(const RunOptions& options, RunMetadata* metadata,
                                  std::initializer_list<Feed> feed_list, const F& first, const Fs&... more) {
    const detail::FetchLists<F, Fs...> lists(first, more...);
    std::array<AnyTensor, detail::num_edges<F, Fs...>> results;
    run_erased(options, metadata, std::span(feed_list.begin(), feed_list.size()), lists.edges, lists.targets, results);
    return detail::unpack<F, Fs...>(results.data());
  }
  /// Reports that there is nothing to run. The result type is deduced, so this error comes before errors in the use of
  /// the result.
  template <class Nothing = void>
  auto run(std::initializer_list<Feed>) {
    static_assert(
        detail::never<Nothing>,
        "this step fetches and runs nothing: say after the feeds what to compute, run({{x, value}}, loss, train)");
  }
  template <class Nothing = void>
  auto run(const RunOptions&, std::initializer_list<Feed> feed_list) {
    return run<Nothing>(feed_list);
  }
  template <class Nothing = void>
  auto run(const RunOptions&, RunMetadata*, std::initializer_list<Feed> feed_list) {
    return run<Nothing>(feed_list);
  }

  /// The erased form of `run`. Errors: InvalidArgument also unless `results` has one element per fetched edge.
  void run_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                  std::span<const AnyOutput> edges, std::span<const Operation> targets, std::span<AnyTensor> results);

  using AnyDone = detail::AnyDone;

  /// Starts a step and returns; `done` is called once with the status and one tensor per fetched edge. The function
  /// never throws: `done` gets the errors of the call and of the step. `metadata`, if given, is filled before `done` is
  /// called, unless it was destroyed by then.
  ///
  /// `done` runs on a thread for callbacks (`SessionOptions::callbacks`), never on a thread of a clock, a canceller or
  /// a kernel. If the session was moved from, `done` runs at once. `done` may block, run steps and destroy the session.
  /// Its exceptions go to `SessionOptions::on_callback_error`. It may be empty.
  void run_async_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                        std::span<const AnyOutput> edges, std::span<const Operation> targets, AnyDone done);
  void run_async_erased(const RunOptions& options, std::span<const Feed> feed_list, std::span<const AnyOutput> edges,
                        std::span<const Operation> targets, AnyDone done) {
    run_async_erased(options, nullptr, feed_list, edges, targets, std::move(done));
  }

  /// `run_async(feeds, fetches..., done)` starts a step and returns; `done(Status, results...)` gets a `Tensor<T>` for
  /// each fetched edge, empty after an error. The contract is as for `run_async_erased`.
  ///
  /// ```cpp
  /// session.run_async({{x, value}}, loss, [](df::Status status, df::Tensor<float> loss) { ... });
  /// ```
  ///
  /// With <dflow/net/asio.hpp> `done` may be any completion token, and the token decides the return type. If a step
  /// starts later (`co_await`), its deadline counts from that start. Graph and session may be gone by then.
  template <class... FetchesAndDone>
    requires(sizeof...(FetchesAndDone) > 0)
  auto run_async(const RunOptions& options, RunMetadata* metadata, BracedFeeds feed_list,
                 FetchesAndDone&&... fetches_and_done) {
    return detail::last_first(
        [&]<class Token, class... Fs>(Token&& token, const Fs&... fetch_list) {
          static_assert((Fetchable<Fs> && ...),
                        "run_async(feeds, fetches..., done): what stands between the feeds and the callback is fetched "
                        "or run, and the callback comes last");
          return start_async(options, metadata, std::move(feed_list).feeds(), std::forward<Token>(token),
                             fetch_list...);
        },
        std::forward<FetchesAndDone>(fetches_and_done)...);
  }
  template <class... FetchesAndDone>
    requires(sizeof...(FetchesAndDone) > 0)
  auto run_async(const RunOptions& options, BracedFeeds feed_list, FetchesAndDone&&... fetches_and_done) {
    return run_async(options, nullptr, std::move(feed_list), std::forward<FetchesAndDone>(fetches_and_done)...);
  }
  template <class... FetchesAndDone>
    requires(sizeof...(FetchesAndDone) > 0)
  auto run_async(BracedFeeds feed_list, FetchesAndDone&&... fetches_and_done) {
    return run_async(RunOptions{}, nullptr, std::move(feed_list), std::forward<FetchesAndDone>(fetches_and_done)...);
  }
  template <Fetchable F, class... FetchesAndDone>
    requires(sizeof...(FetchesAndDone) > 0)
  auto run_async(const F& first, FetchesAndDone&&... fetches_and_done) {
    return run_async(RunOptions{}, nullptr, {}, first, std::forward<FetchesAndDone>(fetches_and_done)...);
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
    return {state_, compile(feed_list.edges, fetch_list.lists.edges, fetch_list.lists.targets)};
  }
  /// The same with more operations to run; their number is known at run time.
  template <Element... Ts, Fetchable... Fs>
  PreparedStep<FeedList<Ts...>, FetchList<Fs...>> prepare(const FeedList<Ts...>& feed_list,
                                                          const FetchList<Fs...>& fetch_list,
                                                          std::span<const Operation> more_targets) {
    return {state_, compile(feed_list.edges, fetch_list.lists.edges, fetch_list.lists.targets, more_targets)};
  }

  /// The erased form of `prepare`: edges are known at run time only.
  AnyPreparedStep prepare_erased(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                 std::span<const Operation> targets);

  /// Begins a step that is fed and fetched call by call (`session/partial_run.hpp`). Deadline, stop token and trace
  /// belong to the whole step. Metadata, if given, is filled when the step ends, unless it or the run was destroyed by
  /// then.
  template <Element... Ts, Fetchable... Fs>
  PartialRun partial_run(const RunOptions& options, RunMetadata* metadata, const FeedList<Ts...>& feed_list,
                         const FetchList<Fs...>& fetch_list) {
    return partial_run_erased(options, metadata, feed_list.edges, fetch_list.lists.edges, fetch_list.lists.targets);
  }
  template <Element... Ts, Fetchable... Fs>
  PartialRun partial_run(const FeedList<Ts...>& feed_list, const FetchList<Fs...>& fetch_list) {
    return partial_run(RunOptions{}, nullptr, feed_list, fetch_list);
  }
  PartialRun partial_run_erased(const RunOptions& options, RunMetadata* metadata, std::span<const AnyOutput> feed_edges,
                                std::span<const AnyOutput> edges, std::span<const Operation> targets);

  const std::vector<std::shared_ptr<Device>>& devices() const;
  const OpTable& ops() const;
  /// The ops with their kernels, for another session with the same ops.
  const OpSet& op_set() const;
  /// The graph of the session, which lives as long as the session.
  const GraphStore* graph() const;
  /// A number that no other call and no other session gives. It follows from `SessionOptions::incarnation`.
  std::uint64_t new_number() const;
  /// Where each node of the last compiled step was placed: lines "node: Op -> device". Empty if the session has one
  /// device.
  std::string placement_log() const;
  /// The full name of the device that runs a node in each step that needs it; empty for constants and placeholders
  /// without a constraint: they are on the devices that read them. Errors: InvalidArgument for a node of another graph;
  /// FailedPrecondition if a master in another process places the nodes; the errors of placement (`Placement`).
  std::string device_of(const Operation& operation) const;
  /// Frees memory that is kept only for speed: the memory of idle steps and the caches of the devices' allocators.
  void release_memory();

 private:
  template <class Feeds, class Fetches>
  friend class PreparedStep;
  friend class AnyPreparedStep;
  friend class PartialRun;
  struct State;
  struct Owner;

  State& state() const;
  /// The state, kept alive if another thread destroys the session. Throws FailedPrecondition if it was moved from.
  std::shared_ptr<State> held() const;
  std::shared_ptr<CompiledStep> compile(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                        std::span<const Operation> targets,
                                        std::span<const Operation> more_targets = {});
  static std::vector<DeviceGraph> device_graphs_of(const CompiledStep* step);
  /// Runs a prepared step; `state` is null if that step was moved from.
  static void run_compiled(State* state, CompiledStep* step, const RunOptions& options, RunMetadata* metadata,
                           std::span<AnyTensor> feed_tensors, std::span<AnyTensor> results);
  static void run_compiled_async(State* state, std::shared_ptr<CompiledStep> step, const RunOptions& options,
                                 RunMetadata* metadata, std::vector<AnyTensor> feeds, std::size_t num_results,
                                 AnyDone done);
  static void run_shared_async(const std::shared_ptr<State>& state, const RunOptions& options, RunMetadata* metadata,
                               std::span<const Feed> feed_list, std::span<const AnyOutput> edges,
                               std::span<const Operation> targets, AnyDone done);

  template <class Token, Fetchable... Fs>
  auto start_async(const RunOptions& options, RunMetadata* metadata, std::vector<Feed> feed_list, Token&& token,
                   const Fs&... fetch_list) {
    using Results = detail::Results<Fs...>;
    using Done = std::decay_t<Token>;
    const detail::FetchLists<Fs...> lists(fetch_list...);
    if constexpr (detail::AsyncCallback<Done, Results>) {
      run_shared_async(state_, options, metadata, feed_list, lists.edges, lists.targets,
                       detail::typed_done<Results>(Done(std::forward<Token>(token))));
    } else {
      return detail::AsyncToken<Done, Results>::initiate(
          Done(std::forward<Token>(token)), options.stop,
          [state = state_, options, metadata = detail::reference_to(metadata), feed_list = std::move(feed_list), lists](
              const std::stop_token& stop, AnyDone done) {
            RunOptions with_stop = options;
            with_stop.stop = stop;
            run_shared_async(state, with_stop, metadata.get(), feed_list, lists.edges, lists.targets, std::move(done));
          });
    }
  }

  std::shared_ptr<State> state_;  ///< shares an `Owner`
};

/// A step compiled by `Session::prepare`. It keeps the parts of the session that it needs, so the session may be moved
/// or destroyed.
///
/// Thread safety: may be called from several threads at once.
/// Errors: as for `Session`; FailedPrecondition if the step was moved from.
template <Element... Ts, Fetchable... Fs>
class PreparedStep<FeedList<Ts...>, FetchList<Fs...>> {
 public:
  detail::RunResult<Fs...> operator()(const Tensor<Ts>&... tensors) const {
    return run(RunOptions{}, nullptr, tensors...);
  }

  /// The graph that each device of this process runs; empty if a master in another process runs the step.
  std::vector<DeviceGraph> device_graphs() const { return Session::device_graphs_of(step_.get()); }

  /// The same with a deadline, a stop token or a trace.
  detail::RunResult<Fs...> run(const RunOptions& options, RunMetadata* metadata, const Tensor<Ts>&... tensors) const {
    std::array<AnyTensor, sizeof...(Ts)> feed_tensors{static_cast<const AnyTensor&>(tensors)...};
    std::array<AnyTensor, detail::num_edges<Fs...>> results;
    Session::run_compiled(session_.get(), step_.get(), options, metadata, feed_tensors, results);
    return detail::unpack<Fs...>(results.data());
  }

  /// `run_async(tensors..., done)` starts the step and returns; `done` is as for `Session::run_async`.
  template <class Token>
  auto run_async(const Tensor<Ts>&... tensors, Token&& done) const {
    return run_async(RunOptions{}, nullptr, tensors..., std::forward<Token>(done));
  }
  template <class Token>
  auto run_async(const RunOptions& options, RunMetadata* metadata, const Tensor<Ts>&... tensors, Token&& token) const {
    using Results = detail::Results<Fs...>;
    using Done = std::decay_t<Token>;
    if constexpr (detail::AsyncCallback<Done, Results>) {
      Session::run_compiled_async(session_.get(), step_, options, metadata, {static_cast<const AnyTensor&>(tensors)...},
                                  detail::EdgesOfResults<Results>::all,
                                  detail::typed_done<Results>(Done(std::forward<Token>(token))));
    } else {
      return detail::AsyncToken<Done, Results>::initiate(
          Done(std::forward<Token>(token)), options.stop,
          [session = session_, step = step_, options, metadata = detail::reference_to(metadata),
           feeds = std::vector<AnyTensor>{static_cast<const AnyTensor&>(tensors)...}](const std::stop_token& stop,
                                                                                      Session::AnyDone done) {
            RunOptions with_stop = options;
            with_stop.stop = stop;
            Session::run_compiled_async(session.get(), step, with_stop, metadata.get(), feeds,
                                        detail::EdgesOfResults<Results>::all, std::move(done));
          });
    }
  }

 private:
  friend class Session;
  PreparedStep(std::shared_ptr<Session::State> session, std::shared_ptr<CompiledStep> step)
      : session_(std::move(session)), step_(std::move(step)) {}

  std::shared_ptr<Session::State> session_;
  std::shared_ptr<CompiledStep> step_;
};

/// A step compiled by `Session::prepare_erased`. It keeps the parts of the session that it needs.
///
/// Thread safety: may be called from several threads at once.
/// Errors: as for `Session`; InvalidArgument also for another number of tensors than edges; FailedPrecondition if the
/// step is empty or was moved from.
class AnyPreparedStep {
 public:
  AnyPreparedStep() = default;

  /// `feeds` has a tensor for each fed edge, and may be moved from. `results` has room for each fetched edge. Blocks.
  void run(const RunOptions& options, RunMetadata* metadata, std::span<AnyTensor> feeds,
           std::span<AnyTensor> results) const;
  /// The contract is as for `Session::run_async_erased`.
  void run_async(const RunOptions& options, RunMetadata* metadata, std::vector<AnyTensor> feeds,
                 Session::AnyDone done) const;
  /// Starts nothing: `done` gets `why`, in the same way as the errors of `run_async`.
  void refuse_async(const Status& why, Session::AnyDone done) const;

 private:
  friend class Session;
  AnyPreparedStep(std::shared_ptr<Session::State> session, std::shared_ptr<CompiledStep> step, std::size_t num_feeds,
                  std::size_t num_results)
      : session_(std::move(session)), step_(std::move(step)), num_feeds_(num_feeds), num_results_(num_results) {}

  std::shared_ptr<Session::State> session_;
  std::shared_ptr<CompiledStep> step_;
  std::size_t num_feeds_ = 0, num_results_ = 0;
};

}  // namespace dflow
