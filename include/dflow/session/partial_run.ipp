#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/session/partial_run.hpp>
#include <dflow/session/session_state.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

/// The completion of its step holds it, so it lives as long as anything runs.
struct PartialRun::State : std::enable_shared_from_this<PartialRun::State> {
  enum class FetchState { pending, made, taken };

  /// A call that waits for fetches, or for the end of the step, which wakes all waiters.
  struct Waiter {
    std::vector<std::size_t> fetches;
    bool for_end = false;
    PoolEvent event;
    bool is_told = false;
  };

  /// A call that has returned.
  struct LateFetch {
    std::vector<std::size_t> wanted;
    std::vector<std::size_t> pending;  ///< of `wanted`
    bool until_end = false;
    Status wrong;  ///< an error of the call
    detail::AnyDone done;
  };
  using LateFetches = std::vector<std::shared_ptr<LateFetch>>;
  using Values = std::vector<std::pair<AnyOutput, AnyTensor>>;
  /// The run's own tensor to feed, and the number of its feed.
  struct Fed {
    std::size_t number;
    AnyTensor value;
  };

  std::shared_ptr<Session::State> session;
  std::shared_ptr<CompiledStep> step;
  std::vector<AnyOutput> feeds;
  std::vector<AnyOutput> fetches;
  std::vector<Operation> targets;
  std::shared_ptr<StepHandle> handle;
  std::vector<std::shared_ptr<LocalPart>> parts;  ///< like the step's
  std::shared_ptr<RemotePartialRun> remote;       ///< all of the step, if a master in another process runs it
  PoolEvent remote_begun;                         ///< or failed to begin
  std::unique_ptr<CompiledStep::Memory> memory;

  std::mutex mutex;                 ///< guards the following members, `parts` and `remote`
  Reference<RunMetadata> metadata;  ///< empty unless the step is traced
  std::vector<bool> is_fed;
  std::vector<FetchState> fetch_states;
  std::vector<AnyTensor> made;  ///< by fetch
  std::vector<Waiter*> waiters;
  LateFetches late_fetches;
  bool has_remote_begun = false;
  bool has_ended = false;
  Status outcome;

  static std::shared_ptr<State> start(std::shared_ptr<Session::State> session, const RunOptions& run_options,
                                      RunMetadata* metadata, std::span<const AnyOutput> feed_edges,
                                      std::span<const AnyOutput> edges, std::span<const Operation> targets);

  void feed(const AnyOutput& edge, AnyTensor value);
  void feed(Values values);
  void fetch(std::span<const AnyOutput> edges, std::span<const Operation> targets, std::span<AnyTensor> results);
  void fetch_async(Values values, std::span<const AnyOutput> edges, bool until_end, detail::AnyDone done);
  void finish();
  void let_go();

 private:
  /// Throws unless the tensor may be fed, by its edge and type.
  Fed to_fed(const AnyOutput& edge, AnyTensor value) const;
  std::vector<Fed> to_fed(Values values) const;
  void feed(std::span<const Fed> fed);
  /// With the mutex held. Throws, and notes nothing, if one of the edges was fed before or appears twice.
  void note_fed(std::span<const Fed> fed);
  /// With the mutex held, after `note_fed`: notes the feeds that are fetched themselves.
  [[nodiscard]] LateFetches note_fetched(std::span<const Fed> fed);
  /// Gives the feeds to the step. Precondition: the step is held.
  void hand_on(std::span<const Fed> fed);
  void add_remote_part();
  void await_remote();
  void make(std::size_t fetch, AnyTensor tensor);
  /// With the mutex held. Returns the calls that wait for nothing more.
  [[nodiscard]] LateFetches note_made(std::size_t fetch, AnyTensor tensor);
  void make_from_part(std::size_t part, std::size_t fetch);
  void end(const Status& status);
  void wait(Waiter& waiter);
  std::vector<std::size_t> numbers_of(std::span<const AnyOutput> edges) const;
  /// With the mutex held. Throws unless the fetches can be made and have not been taken.
  void check_wanted(std::span<const std::size_t> wanted, std::span<const AnyOutput> edges) const;
  /// With the mutex held, when the fetches have been made. Throws if another call has been quicker.
  std::vector<AnyTensor> take(std::span<const std::size_t> wanted);
  void deliver(const LateFetches& ready) noexcept;
  void hand_out(LateFetch& late) noexcept;
  bool is_all_fed() const { return std::find(is_fed.begin(), is_fed.end(), false) == is_fed.end(); }
  /// Throws unless all feeds marked in `needed` have been fed; null: all feeds.
  void require_fed(const std::vector<bool>* needed, const std::string& wanted) const;
  std::size_t number_of(const AnyOutput& edge, std::span<const AnyOutput> among, std::string_view what) const;
};

std::shared_ptr<PartialRun::State> PartialRun::State::start(std::shared_ptr<Session::State> session,
                                                            const RunOptions& run_options, RunMetadata* metadata,
                                                            std::span<const AnyOutput> feed_edges,
                                                            std::span<const AnyOutput> edges,
                                                            std::span<const Operation> targets) {
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
  run->metadata = detail::reference_to(traces ? metadata : nullptr);
  const CompiledStep& step = *run->step;
  run->memory = run->step->take_memory();
  run->handle = run->session->make_handle(step, limits, traces);
  StepHandle& handle = *run->handle;
  // The completion of the step keeps the run as long as these callbacks may be called.
  for (const ClientEdge& edge : step.receives) {
    handle.receive_at_client(
        edge, [run = run.get(), fetch = edge.index](AnyTensor tensor) { run->make(fetch, std::move(tensor)); },
        [step = &step, fetch = edge.index] { return step->dead_fetch(fetch); });
  }
  for (std::size_t p = 0; p < step.parts.size(); ++p) {
    run->memory->steps[p]->set_on_fetch([run = run.get(), p](std::size_t f) { run->make_from_part(p, f); });
    run->parts.push_back(std::make_shared<LocalPart>(*step.parts[p].device, run->memory->steps[p], run->memory->queue));
    handle.add_part(run->parts.back());
  }
  for (const std::shared_ptr<RemoteShare>& share : step.shares) handle.add_part(share->make_part());
  if (step.remote != nullptr) run->add_remote_part();
  for (const ClientFetch& fetch : step.known) {
    if (!fetch.feed) run->make(fetch.fetch, fetch.value);
  }
  const bool is_remote = run->remote != nullptr;
  handle.start([run](const Status& status) mutable {
    run->end(status);
    // If the run holds the session last, the session is freed on a thread that is none of its pool's.
    ThreadPool& callbacks = *run->session->options.callbacks;
    try {
      callbacks.schedule([run = std::move(run)] {});
    } catch (...) {  // no thread can be started for it
    }
  });
  if (is_remote) run->await_remote();
  return run;
}

// ---- at a remote master ----

/// The completion of the step keeps the run as long as these callbacks may be called.
void PartialRun::State::add_remote_part() {
  RemotePartialRun::Events events;
  events.begun = [this] {
    {
      const std::lock_guard lock(mutex);
      has_remote_begun = true;
    }
    remote_begun.set();
  };
  events.made = [this](std::size_t fetch, AnyTensor tensor) { make(fetch, std::move(tensor)); };
  remote = step->remote->make_partial_run(step->needed_feeds, std::move(events));
  handle->add_part(remote);
}

/// If the master refuses the step, its error is the error of beginning the run.
void PartialRun::State::await_remote() {
  try {
    session->pool->wait(remote_begun);
  } catch (...) {  // a simulated process crashes
    let_go();
    throw;
  }
  const std::lock_guard lock(mutex);
  if (!has_remote_begun) throw_if_error(outcome);
}

std::size_t PartialRun::State::number_of(const AnyOutput& edge, std::span<const AnyOutput> among,
                                         std::string_view what) const {
  const auto found = std::find(among.begin(), among.end(), edge);
  if (found != among.end()) return static_cast<std::size_t>(found - among.begin());
  throw_error(
      Status::invalid_argument(str_cat(edge.is_valid() ? str_cat("'", edge.name(), "'") : std::string("an empty edge"),
                                       " is none of the edges ", what, " in this partial run")));
}

// ---- fetches that are made ----

void PartialRun::State::make(std::size_t fetch, AnyTensor tensor) {
  LateFetches ready;
  {
    const std::lock_guard lock(mutex);
    ready = note_made(fetch, std::move(tensor));
  }
  deliver(ready);
}

PartialRun::State::LateFetches PartialRun::State::note_made(std::size_t fetch, AnyTensor tensor) {
  if (fetch_states[fetch] != FetchState::pending || !outcome.ok()) return {};
  made[fetch] = std::move(tensor);
  fetch_states[fetch] = FetchState::made;
  for (Waiter* const waiter : waiters) {
    std::erase(waiter->fetches, fetch);
    if (!waiter->fetches.empty() || waiter->for_end || waiter->is_told) continue;
    waiter->is_told = true;
    waiter->event.set();
  }
  LateFetches ready;
  std::erase_if(late_fetches, [&](std::shared_ptr<LateFetch>& late) {
    std::erase(late->pending, fetch);
    if (!late->pending.empty() || late->until_end) return false;
    ready.push_back(std::move(late));
    return true;
  });
  return ready;
}

void PartialRun::State::make_from_part(std::size_t part, std::size_t fetch) {
  Step& from = parts[part]->step();
  const std::size_t number = step->parts[part].fetches[fetch];
  if (from.is_fetch_dead(fetch)) return handle->cancel(step->dead_fetch(number));
  make(number, from.fetch(fetch));
}

void PartialRun::State::end(const Status& status) {
  // A part without a unit to run has not reported its fetches.
  if (status.ok()) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (std::size_t f = 0; f < step->parts[p].fetches.size(); ++f) make_from_part(p, f);
    }
  }
  step->give_back(std::move(memory), !status.ok());
  LateFetches ready;
  std::shared_ptr<RemotePartialRun> ended;
  bool has_not_begun = false;
  {
    const std::lock_guard lock(mutex);
    if (!metadata.is_empty()) {
      StepStats stats = handle->stats()->finish();
      metadata.with([&](RunMetadata& of) { of.stats = std::move(stats); });
    }
    outcome = status.ok() ? status : step->explain(status);
    session->note_end(outcome);
    has_ended = true;
    parts.clear();
    ended.swap(remote);
    has_not_begun = ended != nullptr && !has_remote_begun;
    if (!outcome.ok()) made.clear();
    for (Waiter* const waiter : waiters) {
      if (!std::exchange(waiter->is_told, true)) waiter->event.set();
    }
    ready.swap(late_fetches);
  }
  deliver(ready);
  if (has_not_begun) remote_begun.set();
}

// ---- the caller's side ----

namespace detail {

/// The tensor, or a copy if somebody else has its memory too.
AnyTensor as_own(AnyTensor tensor) {
  const bool is_shared = tensor.buffer() && !tensor.buffer_is_unique();
  return is_shared ? tensor.deep_copy() : std::move(tensor);
}

}  // namespace detail

std::vector<std::size_t> PartialRun::State::numbers_of(std::span<const AnyOutput> edges) const {
  std::vector<std::size_t> numbers;
  for (const AnyOutput& edge : edges) {
    const std::size_t number = number_of(edge, fetches, "that may be fetched");
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) {
      throw_error(Status::invalid_argument(str_cat("'", edge.name(), "' is fetched twice in one call")));
    }
    numbers.push_back(number);
  }
  return numbers;
}

void PartialRun::State::check_wanted(std::span<const std::size_t> wanted, std::span<const AnyOutput> edges) const {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (fetch_states[wanted[i]] == FetchState::taken) {
      throw_error(Status::invalid_argument(str_cat("'", edges[i].name(), "' was fetched before in this partial run")));
    }
    require_fed(&step->needed_feeds[wanted[i]], str_cat("'", edges[i].name(), "'"));
  }
}

std::vector<AnyTensor> PartialRun::State::take(std::span<const std::size_t> wanted) {
  for (const std::size_t number : wanted) {
    if (fetch_states[number] != FetchState::taken) continue;
    throw_error(
        Status::invalid_argument(str_cat("'", fetches[number].name(), "' was fetched before in this partial run")));
  }
  std::vector<AnyTensor> taken;
  for (const std::size_t number : wanted) {
    fetch_states[number] = FetchState::taken;
    taken.push_back(std::move(made[number]));
  }
  return taken;
}

void PartialRun::State::require_fed(const std::vector<bool>* needed, const std::string& wanted) const {
  std::string missing;
  for (std::size_t f = 0; f < feeds.size(); ++f) {
    if (is_fed[f] || (needed != nullptr && !(*needed)[f])) continue;
    missing += str_cat(missing.empty() ? "'" : ", '", step->feeds[f].name(), "'");
  }
  if (!missing.empty()) throw_error(Status::invalid_argument(str_cat(wanted, " needs ", missing, ", not fed yet")));
}

PartialRun::State::Fed PartialRun::State::to_fed(const AnyOutput& edge, AnyTensor value) const {
  const std::size_t number = number_of(edge, feeds, "that may be fed");
  step->check_feed(number, value);
  if (value.buffer() && !value.buffer_is_unique()) value = value.deep_copy(*session->host_allocator);
  return {number, std::move(value)};
}

std::vector<PartialRun::State::Fed> PartialRun::State::to_fed(Values values) const {
  std::vector<Fed> fed;
  fed.reserve(values.size());
  for (auto& [edge, value] : values) fed.push_back(to_fed(edge, std::move(value)));
  return fed;
}

void PartialRun::State::note_fed(std::span<const Fed> fed) {
  std::vector<bool> now = is_fed;
  for (const Fed& one : fed) {
    if (now[one.number]) {
      throw_error(
          Status::invalid_argument(str_cat("'", step->feeds[one.number].name(), "' is fed twice in this partial run")));
    }
    now[one.number] = true;
  }
  is_fed.swap(now);
}

PartialRun::State::LateFetches PartialRun::State::note_fetched(std::span<const Fed> fed) {
  LateFetches ready;
  for (const ClientFetch& fetch : step->known) {
    for (const Fed& one : fed) {
      if (fetch.feed != one.number) continue;
      LateFetches of_this = note_made(fetch.fetch, one.value);
      std::move(of_this.begin(), of_this.end(), std::back_inserter(ready));
    }
  }
  return ready;
}

void PartialRun::State::hand_on(std::span<const Fed> fed) {
  std::vector<std::shared_ptr<LocalPart>> feeding;
  std::shared_ptr<RemotePartialRun> remote_feeding;
  {
    const std::lock_guard lock(mutex);
    feeding = parts;
    remote_feeding = remote;
  }
  for (const auto& [number, value] : fed) {
    if (remote_feeding != nullptr) remote_feeding->feed(number, value);
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
}

void PartialRun::State::feed(const AnyOutput& edge, AnyTensor value) {
  const Fed one = to_fed(edge, std::move(value));
  feed(std::span(&one, 1));
}

void PartialRun::State::feed(Values values) { feed(std::span<const Fed>(to_fed(std::move(values)))); }

void PartialRun::State::feed(std::span<const Fed> fed) {
  // Nothing of the step ends while it is fed.
  const StepHandle::Hold hold(*handle);
  LateFetches ready;
  std::exception_ptr lost;
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    note_fed(fed);
    try {
      ready = note_fetched(fed);
    } catch (...) {
      lost = std::current_exception();
    }
  }
  deliver(ready);
  try {
    if (lost != nullptr) std::rethrow_exception(lost);
    if (hold) hand_on(fed);
  } catch (...) {  // half of the feeds are there, and all count as fed
    handle->cancel(status_of_current_exception());
    throw;
  }
}

void PartialRun::State::wait(Waiter& waiter) {
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

void PartialRun::State::fetch(std::span<const AnyOutput> edges, std::span<const Operation> operations,
                              std::span<AnyTensor> results) {
  if (results.size() != edges.size()) {
    throw_error(
        Status::invalid_argument(str_cat("room for ", results.size(), " results of ", edges.size(), " fetched edges")));
  }
  Waiter waiter;
  const std::vector<std::size_t> wanted = waiter.fetches = numbers_of(edges);
  for (const Operation& operation : operations) {
    if (std::find(targets.begin(), targets.end(), operation) == targets.end()) {
      throw_error(Status::invalid_argument(
          str_cat(operation.is_valid() ? str_cat("'", operation.name(), "'") : std::string("an empty operation"),
                  " is none of the operations that run in this partial run")));
    }
    waiter.for_end = true;
  }
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    if (waiter.for_end) require_fed(nullptr, str_cat("'", operations.front().name(), "'"));
    check_wanted(wanted, edges);
  }
  wait(waiter);
  std::vector<AnyTensor> taken;
  Waiter last;
  {
    const std::lock_guard lock(mutex);
    if (has_ended) throw_if_error(outcome);
    taken = take(wanted);
    last.for_end = is_all_fed() && std::all_of(fetch_states.begin(), fetch_states.end(),
                                               [](FetchState state) { return state == FetchState::taken; });
  }
  if (last.for_end) {
    wait(last);
    const std::lock_guard lock(mutex);
    throw_if_error(outcome);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) results[i] = detail::as_own(std::move(taken[i]));
}

void PartialRun::State::fetch_async(Values values, std::span<const AnyOutput> edges, bool until_end,
                                    detail::AnyDone done) {
  const auto late = std::make_shared<LateFetch>();
  late->until_end = until_end;
  late->done = std::move(done);
  bool counts_as_fed = false;
  try {
    late->wanted = numbers_of(edges);
    const std::vector<Fed> fed = to_fed(std::move(values));
    std::optional<StepHandle::Hold> hold;
    if (!fed.empty()) hold.emplace(*handle);
    LateFetches ready;
    {
      const std::lock_guard lock(mutex);
      if (has_ended) throw_if_error(outcome);
      const std::vector<bool> was_fed = is_fed;
      note_fed(fed);
      try {
        check_wanted(late->wanted, edges);
      } catch (...) {
        is_fed = was_fed;
        throw;
      }
      counts_as_fed = !fed.empty();
      ready = note_fetched(fed);
      std::copy_if(late->wanted.begin(), late->wanted.end(), std::back_inserter(late->pending),
                   [&](std::size_t f) { return fetch_states[f] == FetchState::pending; });
      const bool has_to_wait = !has_ended && (until_end || !late->pending.empty());
      (has_to_wait ? late_fetches : ready).push_back(late);
    }
    deliver(ready);
    if (!hold || !*hold) return;
    try {
      hand_on(fed);
    } catch (...) {  // half of the feeds are there: the end of the step calls `done`
      handle->cancel(status_of_current_exception());
    }
    return;
  } catch (...) {
    late->wrong = status_of_current_exception();
    if (counts_as_fed) handle->cancel(late->wrong);  // counted as fed, but not handed on
  }
  deliver({late});
}

void PartialRun::State::deliver(const LateFetches& ready) noexcept {
  for (const std::shared_ptr<LateFetch>& late : ready) {
    try {
      session->options.callbacks->schedule([self = shared_from_this(), late] { self->hand_out(*late); });
    } catch (...) {  // no thread can be started for it
      hand_out(*late);
    }
  }
}

void PartialRun::State::hand_out(LateFetch& late) noexcept {
  Status status;
  std::vector<AnyTensor> taken;
  try {
    throw_if_error(late.wrong);
    {
      const std::lock_guard lock(mutex);
      if (has_ended) throw_if_error(outcome);
      taken = take(late.wanted);
    }
    for (AnyTensor& tensor : taken) tensor = detail::as_own(std::move(tensor));
  } catch (...) {
    status = status_of_current_exception();
    taken.clear();
  }
  if (!late.done) return;
  try {
    std::exchange(late.done, nullptr)(std::move(status), std::move(taken));
  } catch (...) {
    session->report(status_of_current_exception());
  }
}

void PartialRun::State::finish() {
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

void PartialRun::State::let_go() {
  {
    const std::lock_guard lock(mutex);
    metadata = {};
    if (is_all_fed()) return;
  }
  handle->cancel_for([] { return Status::cancelled("the partial run was let go of before all had been fed"); });
}

// ---- PartialRun ----

PartialRun::PartialRun(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
PartialRun::PartialRun(PartialRun&&) noexcept = default;
PartialRun& PartialRun::operator=(PartialRun&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->let_go();
  state_ = std::move(other.state_);
  return *this;
}
PartialRun::~PartialRun() {
  if (state_ != nullptr) state_->let_go();
}

std::shared_ptr<PartialRun::State> PartialRun::held() const {
  std::shared_ptr<State> kept = state_;
  if (kept == nullptr) throw_error(Status::failed_precondition("the partial run was moved from"));
  return kept;
}

void PartialRun::feed_erased(const AnyOutput& edge, AnyTensor value) { held()->feed(edge, std::move(value)); }
void PartialRun::feed_erased(std::vector<std::pair<AnyOutput, AnyTensor>> values) { held()->feed(std::move(values)); }
void PartialRun::fetch_erased(std::span<const AnyOutput> edges, std::span<const Operation> targets,
                              std::span<AnyTensor> results) {
  held()->fetch(edges, targets, results);
}
void PartialRun::fetch_async_erased(std::vector<std::pair<AnyOutput, AnyTensor>> values,
                                    std::span<const AnyOutput> edges, bool until_end, detail::AnyDone done) {
  const std::shared_ptr<State> kept = state_;
  if (kept == nullptr) {
    return detail::refuse(std::move(done), Status::failed_precondition("the partial run was moved from"));
  }
  kept->fetch_async(std::move(values), edges, until_end, std::move(done));
}
void PartialRun::finish() { held()->finish(); }

PartialRun Session::partial_run_erased(const RunOptions& options, RunMetadata* metadata,
                                       std::span<const AnyOutput> feeds, std::span<const AnyOutput> edges,
                                       std::span<const Operation> targets) {
  const std::shared_ptr<State> owned = held();
  // The step has the session's state, and the PartialRun the graph as well.
  const auto both =
      std::make_shared<std::pair<std::shared_ptr<State>, std::shared_ptr<PartialRun::State>>>(owned, nullptr);
  both->second = PartialRun::State::start(owned->shared_from_this(), options, metadata, feeds, edges, targets);
  return PartialRun(std::shared_ptr<PartialRun::State>(both, both->second.get()));
}

}  // namespace dflow
