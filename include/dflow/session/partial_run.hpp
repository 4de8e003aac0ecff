#pragma once

#include <dflow/session/async_token.hpp>
#include <dflow/session/feed.hpp>

#include <array>
#include <concepts>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// One step that is fed and fetched call by call: its computed tensors wait for the next feeds. `Session::partial_run`
/// makes it, with all edges that may be fed or fetched and all operations to run.
///
/// ```cpp
/// auto run = session.partial_run(df::feeds(observation, reward), df::fetches(action, loss));
/// auto act = run.feed(observation, seen).fetch(action);  // the rest of the step waits
/// auto l = run.feed(reward, got).fetch(loss);
/// ```
///
/// Each edge is fed once and fetched once, in any order. The step begins when it is made; each node runs once, as soon
/// as its inputs are there. The step is ended by the call that takes the last fetch, if all feeds have been fed. That
/// call returns when all operations have run, and throws their error if there was one.
///
/// A tensor handed in is taken if nobody else holds it (`std::move(value)`), else copied, so the caller may write its
/// own tensor. A tensor handed out is the caller's.
///
/// Thread safety: all functions but moving may be called from several threads at once.
/// Errors: `Error` with InvalidArgument for an edge that is none of the run's, or is fed or fetched twice, for a
/// tensor that does not fit, and for a fetch that needs a missing feed. The run goes on after InvalidArgument. An
/// error that ends the step (an error of a kernel, the deadline, a stop; at a remote master, its loss) is thrown by
/// every call from then on. FailedPrecondition if the run was moved from.
class PartialRun {
 public:
  PartialRun(PartialRun&&) noexcept;
  PartialRun& operator=(PartialRun&&) noexcept;
  /// Waits for nothing. If all feeds have been fed, the step goes on to its end; else it is cancelled.
  ~PartialRun();

  /// Puts a tensor on an edge: `run.feed(x, value)`.
  template <Element T>
  PartialRun& feed(const Output<T>& edge, std::type_identity_t<Tensor<T>> value) {
    feed_erased(edge, std::move(value));
    return *this;
  }
  template <Element T>
  PartialRun& feed(const SparseOutput<T>& edges, const std::type_identity_t<SparseTensor<T>>& value) {
    feed_erased(
        {{edges.indices, value.indices()}, {edges.values, value.values()}, {edges.dense_shape, value.dense_shape()}});
    return *this;
  }
  template <std::same_as<AnyOutput> O>
  PartialRun& feed(const O& edge, AnyTensor value) {
    feed_erased(edge, std::move(value));
    return *this;
  }

  /// Returns the fetches: nothing, one `Tensor<T>`, or a tuple. Blocks until they have been made. An operation is
  /// known to have run when the step has ended, so all feeds must have been fed.
  template <Fetchable F, Fetchable... Fs>
  detail::RunResult<F, Fs...> fetch(const F& first, const Fs&... more) {
    const detail::FetchLists<F, Fs...> lists(first, more...);
    std::array<AnyTensor, detail::num_edges<F, Fs...>> results;
    fetch_erased(lists.edges, lists.targets, results);
    return detail::unpack<F, Fs...>(results.data());
  }

  /// Blocks until the step has ended. Remaining fetches can be taken afterwards. Errors: InvalidArgument, and the run
  /// goes on, if a feed is missing.
  void finish();

  /// The erased forms. Errors: InvalidArgument also unless `results` has one element per edge.
  void feed_erased(const AnyOutput& edge, AnyTensor value);
  /// Puts all tensors on their edges, or none if one is wrong.
  void feed_erased(std::vector<std::pair<AnyOutput, AnyTensor>> values);
  void fetch_erased(std::span<const AnyOutput> edges, std::span<const Operation> targets, std::span<AnyTensor> results);
  /// Feeds all of `values`, or none if one of them or of `edges` is wrong, and returns at once. `done` is called once,
  /// on a thread that is made for callbacks, with the status and one tensor per edge. It is called when the tensors
  /// have been made or, with `until_end`, when the step has ended; `until_end` is allowed before all feeds have been
  /// fed. Takes the last fetch without waiting for the end. Errors, also of the call, are given to `done`.
  void fetch_async_erased(std::vector<std::pair<AnyOutput, AnyTensor>> values, std::span<const AnyOutput> edges,
                          bool until_end, detail::AnyDone done);

 private:
  friend class Session;
  struct State;

  explicit PartialRun(std::shared_ptr<State> state) noexcept;
  /// The state, kept while another thread lets go of the run. Throws FailedPrecondition when it was moved from.
  std::shared_ptr<State> held() const;

  std::shared_ptr<State> state_;
};

}  // namespace dflow
