#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/session/partial_run.hpp>
#include <dflow/session/session_state.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// Its step's completion holds it, so it lives as long as anything runs.
struct PartialRun::State {
  enum class FetchState { pending, made, taken };

  /// A call that waits for fetches, or for the end of the step, which comes to all who wait.
  struct Waiter {
    std::vector<std::size_t> fetches;
    bool for_end = false;
    PoolEvent event;
    bool is_told = false;
  };

  std::shared_ptr<Session::State> session;
  std::shared_ptr<CompiledStep> step;
  std::vector<AnyOutput> feeds;
  std::vector<AnyOutput> fetches;
  std::vector<Operation> targets;
  std::shared_ptr<StepHandle> handle;
  std::vector<std::shared_ptr<LocalPart>> parts;  ///< like the step's
  std::unique_ptr<CompiledStep::Memory> memory;

  std::mutex mutex;  ///< guards what follows, and `parts`
  RunMetadata* metadata = nullptr;
  std::vector<bool> is_fed;
  std::vector<FetchState> fetch_states;
  std::vector<AnyTensor> made;  ///< by fetch
  std::vector<Waiter*> waiters;
  bool has_ended = false;
  Status outcome;

  static std::shared_ptr<State> start(std::shared_ptr<Session::State> session, const RunOptions& run_options,
                                      RunMetadata* metadata, std::span<const AnyOutput> feed_edges,
                                      std::span<const AnyOutput> edges, std::span<const Operation> targets);

  void feed(const AnyOutput& edge, AnyTensor value);
  void fetch(std::span<const AnyOutput> edges, std::span<const Operation> targets, std::span<AnyTensor> results);
  void finish();
  void let_go();

 private:
  void make(std::size_t fetch, AnyTensor tensor);
  /// With the mutex held.
  void note_made(std::size_t fetch, AnyTensor tensor);
  void make_from_part(std::size_t part, std::size_t fetch);
  void end(const Status& status);
  void wait(Waiter& waiter);
  bool is_all_fed() const { return std::find(is_fed.begin(), is_fed.end(), false) == is_fed.end(); }
  /// Throws unless all has been fed of which `needed` says so; null: all.
  void require_fed(const std::vector<bool>* needed, const std::string& wanted) const;
  std::size_t number_of(const AnyOutput& edge, std::span<const AnyOutput> among, std::string_view what) const;
};

DFLOW_INLINE std::shared_ptr<PartialRun::State> PartialRun::State::start(
    std::shared_ptr<Session::State> session, const RunOptions& run_options, RunMetadata* metadata,
    std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges, std::span<const Operation> targets) {
  detail::begin_metadata(run_options, metadata);
  const StepLimits limits = session->limits_of(run_options);
  auto run = std::make_shared<State>();
  run->session = std::move(session);
  run->step = run->session->compile(feed_edges, edges, targets, limits, true);
  run->feeds.assign(feed_edges.begin(), feed_edges.end());
  run->fetches.assign(edges.begin(), edges.end());
  run->targets.assign(targets.begin(), targets.end());
  run->is_fed.resize(feed_edges.size());
  run->fetch_states.resize(edges.size());
  run->made.resize(edges.size());
  const bool traces = run_options.trace && metadata != nullptr;
  run->metadata = traces ? metadata : nullptr;
  const CompiledStep& step = *run->step;
  run->memory = run->step->take_memory();
  run->handle = run->session->make_handle(step, limits, traces);
  StepHandle& handle = *run->handle;
  // The step's completion keeps the run as long as these may be called.
  for (const ClientEdge& edge : step.receives) {
    handle.receive_at_client(
        edge, [run = run.get(), fetch = edge.index](AnyTensor tensor) { run->make(fetch, std::move(tensor)); });
  }
  for (std::size_t p = 0; p < step.parts.size(); ++p) {
    run->memory->steps[p]->set_on_fetch([run = run.get(), p](std::size_t f) { run->make_from_part(p, f); });
    run->parts.push_back(std::make_shared<LocalPart>(*step.parts[p].device, run->memory->steps[p], run->memory->queue));
    handle.add_part(run->parts.back());
  }
  for (const std::shared_ptr<RemoteShare>& share : step.shares) handle.add_part(share->make_part());
  for (const ClientFetch& fetch : step.known) {
    if (!fetch.feed) run->make(fetch.fetch, fetch.value);
  }
  handle.start([run](const Status& status) mutable {
    run->end(status);
    // The session, if this is the last that holds it, goes on a thread that is none of its pool's.
    ThreadPool& callbacks = *run->session->options.callbacks;
    try {
      callbacks.schedule([run = std::move(run)] {});
    } catch (...) {  // no thread can be started for it
    }
  });
  return run;
}

DFLOW_INLINE std::size_t PartialRun::State::number_of(const AnyOutput& edge, std::span<const AnyOutput> among,
                                                      std::string_view what) const {
  const auto found = std::find(among.begin(), among.end(), edge);
  if (found != among.end()) return static_cast<std::size_t>(found - among.begin());
  throw_error(invalid_argument(str_cat(edge.is_valid() ? str_cat("'", edge.name(), "'") : std::string("an empty edge"),
                                       " is none of the edges ", what, " in this partial run")));
}

// ---- what is made ----

DFLOW_INLINE void PartialRun::State::make(std::size_t fetch, AnyTensor tensor) {
  const std::lock_guard lock(mutex);
  note_made(fetch, std::move(tensor));
}

DFLOW_INLINE void PartialRun::State::note_made(std::size_t fetch, AnyTensor tensor) {
  if (fetch_states[fetch] != FetchState::pending || !outcome.ok()) return;
  made[fetch] = std::move(tensor);
  fetch_states[fetch] = FetchState::made;
  for (Waiter* const waiter : waiters) {
    std::erase(waiter->fetches, fetch);
    if (!waiter->fetches.empty() || waiter->for_end || waiter->is_told) continue;
    waiter->is_told = true;
    waiter->event.set();
  }
}

DFLOW_INLINE void PartialRun::State::make_from_part(std::size_t part, std::size_t fetch) {
  Step& from = parts[part]->step();
  const std::size_t number = step->parts[part].fetches[fetch];
  if (from.is_fetch_dead(fetch)) return handle->cancel(step->dead_fetch(number));
  make(number, from.fetch(fetch));
}

DFLOW_INLINE void PartialRun::State::end(const Status& status) {
  // A part without a unit to run has said nothing of its fetches.
  if (status.ok()) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (std::size_t f = 0; f < step->parts[p].fetches.size(); ++f) make_from_part(p, f);
    }
  }
  step->give_back(std::move(memory), !status.ok());
  const std::lock_guard lock(mutex);
  if (metadata != nullptr) metadata->stats = handle->stats()->finish();
  outcome = status.ok() ? status : step->explain(status);
  has_ended = true;
  parts.clear();
  if (!outcome.ok()) made.clear();
  for (Waiter* const waiter : waiters) {
    if (!std::exchange(waiter->is_told, true)) waiter->event.set();
  }
}

// ---- the caller's side ----

DFLOW_INLINE void PartialRun::State::require_fed(const std::vector<bool>* needed, const std::string& wanted) const {
  std::string missing;
  for (std::size_t f = 0; f < feeds.size(); ++f) {
    if (is_fed[f] || (needed != nullptr && !(*needed)[f])) continue;
    missing += str_cat(missing.empty() ? "'" : ", '", step->feeds[f].name(), "'");
  }
  if (!missing.empty()) throw_error(invalid_argument(str_cat(wanted, " needs ", missing, ", not fed yet")));
}

DFLOW_INLINE void PartialRun::State::feed(const AnyOutput& edge, AnyTensor value) {
  const std::size_t number = number_of(edge, feeds, "that may be fed");
  step->check_feed(number, value);
  if (value.buffer() && !value.buffer_is_unique()) value = value.deep_copy(*session->host_allocator);
  // Neither ends while this is fed.
  const StepHandle::Hold hold(*handle);
  std::vector<std::shared_ptr<LocalPart>> feeding;
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    if (is_fed[number]) {
      throw_error(invalid_argument(str_cat("'", step->feeds[number].name(), "' is fed twice in this partial run")));
    }
    is_fed[number] = true;
    for (const ClientFetch& fetch : step->known) {
      if (fetch.feed == number) note_made(fetch.fetch, value);
    }
    if (hold) feeding = parts;
  }
  if (!hold) return;
  for (const ClientEdge& to : step->sends) {
    if (to.index == number) handle->send_from_client(to, value);
  }
  for (std::size_t p = 0; p < feeding.size(); ++p) {
    const std::vector<std::size_t>& wanted = step->parts[p].feeds;
    for (std::size_t f = 0; f < wanted.size(); ++f) {
      if (wanted[f] == number) feeding[p]->feed_late(f, value);
    }
  }
}

DFLOW_INLINE void PartialRun::State::wait(Waiter& waiter) {
  {
    const std::lock_guard lock(mutex);
    std::erase_if(waiter.fetches, [&](std::size_t f) { return fetch_states[f] != FetchState::pending; });
    if (has_ended || (waiter.fetches.empty() && !waiter.for_end)) return;
    waiters.push_back(&waiter);
  }
  const auto go = [&] {
    const std::lock_guard lock(mutex);
    std::erase(waiters, &waiter);
  };
  try {
    session->pool->wait(waiter.event);
  } catch (...) {  // a simulated process crashes
    go();
    throw;
  }
  go();
}

DFLOW_INLINE void PartialRun::State::fetch(std::span<const AnyOutput> edges, std::span<const Operation> operations,
                                           std::span<AnyTensor> results) {
  if (results.size() != edges.size()) {
    throw_error(invalid_argument(str_cat("room for ", results.size(), " results of ", edges.size(), " fetched edges")));
  }
  Waiter waiter;
  for (const AnyOutput& edge : edges) {
    const std::size_t number = number_of(edge, fetches, "that may be fetched");
    if (std::find(waiter.fetches.begin(), waiter.fetches.end(), number) != waiter.fetches.end()) {
      throw_error(invalid_argument(str_cat("'", edge.name(), "' is fetched twice in one call")));
    }
    waiter.fetches.push_back(number);
  }
  const std::vector<std::size_t> wanted = waiter.fetches;
  for (const Operation& operation : operations) {
    if (std::find(targets.begin(), targets.end(), operation) == targets.end()) {
      throw_error(invalid_argument(
          str_cat(operation.is_valid() ? str_cat("'", operation.name(), "'") : std::string("an empty operation"),
                  " is none of the operations that run in this partial run")));
    }
    waiter.for_end = true;
  }
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    if (waiter.for_end) require_fed(nullptr, str_cat("'", operations.front().name(), "'"));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (fetch_states[wanted[i]] == FetchState::taken) {
        throw_error(invalid_argument(str_cat("'", edges[i].name(), "' was fetched before in this partial run")));
      }
      require_fed(&step->needed_feeds[wanted[i]], str_cat("'", edges[i].name(), "'"));
    }
  }
  wait(waiter);
  std::vector<AnyTensor> taken;
  Waiter last;
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Another thread has been quicker.
      if (fetch_states[wanted[i]] == FetchState::taken) {
        throw_error(invalid_argument(str_cat("'", edges[i].name(), "' was fetched before in this partial run")));
      }
    }
    for (const std::size_t number : wanted) {
      fetch_states[number] = FetchState::taken;
      taken.push_back(std::move(made[number]));
    }
    last.for_end = is_all_fed() && std::all_of(fetch_states.begin(), fetch_states.end(),
                                               [](FetchState state) { return state == FetchState::taken; });
  }
  if (last.for_end) {
    wait(last);
    const std::lock_guard lock(mutex);
    throw_if_error(outcome);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const bool is_shared = taken[i].buffer() && !taken[i].buffer_is_unique();
    results[i] = is_shared ? taken[i].deep_copy() : std::move(taken[i]);
  }
}

DFLOW_INLINE void PartialRun::State::finish() {
  Waiter waiter;
  waiter.for_end = true;
  {
    const std::lock_guard lock(mutex);
    throw_if_error(outcome);
    require_fed(nullptr, "the end of the step");
  }
  wait(waiter);
  const std::lock_guard lock(mutex);
  throw_if_error(outcome);
}

DFLOW_INLINE void PartialRun::State::let_go() {
  {
    const std::lock_guard lock(mutex);
    metadata = nullptr;
    if (is_all_fed()) return;
  }
  handle->cancel(cancelled("the partial run was let go of before all had been fed"));
}

// ---- PartialRun ----

DFLOW_INLINE PartialRun::PartialRun(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
DFLOW_INLINE PartialRun::PartialRun(PartialRun&&) noexcept = default;
DFLOW_INLINE PartialRun& PartialRun::operator=(PartialRun&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->let_go();
  state_ = std::move(other.state_);
  return *this;
}
DFLOW_INLINE PartialRun::~PartialRun() {
  if (state_ != nullptr) state_->let_go();
}

DFLOW_INLINE PartialRun::State& PartialRun::state() const {
  if (state_ == nullptr) throw_error(failed_precondition("the partial run was moved from"));
  return *state_;
}

DFLOW_INLINE void PartialRun::feed_erased(const AnyOutput& edge, AnyTensor value) {
  state().feed(edge, std::move(value));
}
DFLOW_INLINE void PartialRun::fetch_erased(std::span<const AnyOutput> edges, std::span<const Operation> targets,
                                           std::span<AnyTensor> results) {
  state().fetch(edges, targets, results);
}
DFLOW_INLINE void PartialRun::finish() { state().finish(); }

DFLOW_INLINE PartialRun Session::partial_run_erased(const RunOptions& options, RunMetadata* metadata,
                                                    std::span<const AnyOutput> feeds, std::span<const AnyOutput> edges,
                                                    std::span<const Operation> targets) {
  static_cast<void>(state());
  return PartialRun(PartialRun::State::start(state_, options, metadata, feeds, edges, targets));
}

}  // namespace dflow
