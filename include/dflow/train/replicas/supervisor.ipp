#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/wait_until.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/ops/summary/summary.hpp>
#include <dflow/session/target.hpp>
#include <dflow/trace/events/event_file.hpp>
#include <dflow/train/finite.hpp>
#include <dflow/train/replicas/supervisor.hpp>
#include <dflow/train/saving/random_streams.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

namespace dflow::train {

namespace detail {

/// The time between two checks for a signal, because a signal's handler can wake no thread.
inline constexpr Duration signal_interval = std::chrono::milliseconds(100);

/// An error of a file on disk, and of what a Saver does in this process, does not mean that a task is lost.
bool is_lost_task(const Status& status) noexcept {
  const std::string_view op = status.op();
  if (op == SaveV2::name || op == RestoreV2::name || op == MergeV2Checkpoints::name) return false;
  return status.code() == Code::unavailable || status.code() == Code::aborted;
}

/// The time between two equal log lines.
inline constexpr Duration line_interval = std::chrono::seconds(10);
/// The most lines in that time.
inline constexpr std::size_t most_lines = 16;

}  // namespace detail

/// Work in a thread of a pool. The destructor requests stop, and waits until the work has returned.
class Supervisor::Helper {
 public:
  Helper(std::shared_ptr<ThreadPool> threads, std::function<void(const std::stop_token&)> work)
      : threads_(std::move(threads)) {
    threads_->schedule([this, work = std::move(work)] {
      work(stop_.get_token());
      ended_.set();
    });
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    request_stop();
    threads_->wait(ended_);
  }
  void request_stop() noexcept { stop_.request_stop(); }

 private:
  const std::shared_ptr<ThreadPool> threads_;
  std::stop_source stop_;
  PoolEvent ended_;
};

/// A mutex whose threads wait in a pool, because its owner waits there too.
class Supervisor::Turns {
 public:
  explicit Turns(std::shared_ptr<ThreadPool> threads) : threads_(std::move(threads)) {}
  void lock() {
    PoolEvent turn;
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(is_taken_, true)) return;
      waiting_.push_back(&turn);
    }
    threads_->wait(turn);
  }
  void unlock() noexcept {
    const std::lock_guard lock(mutex_);
    is_taken_ = !waiting_.empty();
    if (!is_taken_) return;
    waiting_.front()->set();
    waiting_.pop_front();
  }

 private:
  const std::shared_ptr<ThreadPool> threads_;
  std::mutex mutex_;
  bool is_taken_ = false;
  std::deque<PoolEvent*> waiting_;
};

Supervisor::Supervisor(Graph& graph, SupervisorOptions options, std::source_location where)
    : graph_(graph.store()->shared_from_this()), options_(std::move(options)) {
  if (options_.clock == nullptr) options_.clock = std::make_shared<RealClock>();
  if (options_.threads == nullptr) {
    options_.threads = std::make_shared<ElasticPool>(ElasticPoolOptions{.name = "dflow-train"});
  }
  saving_ = std::make_unique<Turns>(options_.threads);
  if (options_.save_every_steps < 0) {
    throw_error(Status::invalid_argument(str_cat("Supervisor: to save every ", options_.save_every_steps, " steps")));
  }
  if (!options_.checkpoint_dir.empty() && !options_.global_step) {
    throw_error(Status::invalid_argument("Supervisor: checkpoints are named after the global step, and there is none"));
  }
  if (options_.events != nullptr && !options_.global_step) {
    throw_error(Status::invalid_argument("Supervisor: events are numbered by the global step, and there is none"));
  }
  if (options_.events != nullptr) events_ = options_.events->reference();
  if (options_.summary_every_steps < 0) {
    throw_error(
        Status::invalid_argument(str_cat("Supervisor: summaries every ", options_.summary_every_steps, " steps")));
  }
  GraphStore& store = *graph.store();
  {
    const ScopeGuard names = enter_name_scope(store, "supervisor");
    AnyOutput all;
    for (const AnyVariable& variable : global_variables(graph)) {
      const AnyOutput one = variable.is_initialized({.where = where});
      all = all.is_valid() ? build<LogicalAnd>({all, one}, {}, {.where = where}) : one;
      are_initialized_.emplace_back(variable.name(), Output<bool>::unchecked(one));
    }
    if (all.is_valid()) is_initialized_ = Output<bool>::unchecked(all);
    initialize_ = initialize_variables(graph, {.where = where});
    for (const AnyVariable& variable : local_variables(graph)) {
      are_local_initialized_.push_back(variable.is_initialized({.where = where}));
      local_initializers_.push_back(variable.initializer());
    }
    rewind_ = rewind_random_streams(store);
    if (options_.events != nullptr && !options_.summary.is_valid() && has_summaries(store)) {
      options_.summary = merge_all_summaries(store, summaries_collection, {.where = where});
    }
  }
  std::shared_ptr<FileSystem>& files = options_.saver_options.files;
  if (files == nullptr) files = options_.session.files;
  if (files == nullptr && options_.session.target != nullptr) files = options_.session.target->files();
  has_own_saver_ = saves() && options_.saver == nullptr;
  if (has_own_saver_) options_.saver = std::make_shared<Saver>(graph, options_.saver_options, where);
  if (saves() && options_.only_finite) non_finite_ = std::make_shared<NonFiniteVariables>(store);
  last_save_ = options_.clock->now();
  when_stopped_.emplace(options_.stop, [this] { ends_.request_stop(); });
  if (options_.save_on_sigterm) termination_ = std::make_unique<TerminationSignal>();
  if (termination_ == nullptr && (options_.is_chief || !options_.leave)) return;
  watch_ = std::make_unique<Helper>(options_.threads, [this](const std::stop_token& is_gone) { watch(is_gone); });
}

void Supervisor::watch(const std::stop_token& is_gone) {
  // A signal comes by the machine's clock.
  const auto clock = termination_ == nullptr ? options_.clock : std::make_shared<RealClock>();
  const auto wait = [&](const std::stop_token& stop) {
    dflow::detail::wait_until(*options_.threads, *clock, clock->after(detail::signal_interval), stop);
  };
  while (!is_gone.stop_requested() && !is_stopped()) wait(is_gone);
  if (is_stopped()) ends_.request_stop();
  while (!is_gone.stop_requested() && options_.leave && !options_.is_chief) {
    {
      const std::lock_guard one_at_a_time(body_mutex_);
      try {
        if (body_session_ != nullptr) options_.leave(*body_session_);
      } catch (...) {
        say_still(str_cat("this replica could not leave: ", status_of_current_exception().to_string()));
      }
    }
    wait(is_gone);
  }
}

void Supervisor::set_body_session(Session* session) {
  const std::lock_guard lock(body_mutex_);
  body_session_ = session;
}

/// The thread of `SupervisorOptions::lead`. It uses the session, which is destroyed later.
struct Supervisor::Lead {
  std::mutex mutex;             ///< guards the next two members
  Status status;                ///< the status of its end
  bool was_stopped = false;     ///< before it had ended by itself
  std::stop_source has_ended;   ///< when the two are set
  std::stop_source has_failed;  ///< or `begin` is to end for another reason
  std::unique_ptr<Helper> thread;
  std::optional<std::stop_callback<std::function<void()>>> when_stopped;
};

Supervisor::~Supervisor() {
  watch_ = nullptr;
  stop_lead();
}

void Supervisor::start_lead() {
  if (!options_.lead || !options_.is_chief) return;
  lead_ = std::make_unique<Lead>();
  const auto work = [this, lead = lead_.get(), session = session_.get()](const std::stop_token& stop) {
    Status status;
    try {
      const std::function<void()> save = [&] { save_what_is_new(*session); };
      const std::function<void(std::string_view)> tell = [&](std::string_view line) { say_still(std::string(line)); };
      const std::stop_token ends = ends_.get_token();
      options_.lead({*session, stop, save, tell, ends});
    } catch (...) {
      status = status_of_current_exception();
    }
    const bool has_failed = !status.ok();
    {
      const std::lock_guard lock(lead->mutex);
      lead->status = std::move(status);
      lead->was_stopped = stop.stop_requested();
    }
    if (has_failed) lead->has_failed.request_stop();
    lead->has_ended.request_stop();
  };
  lead_->thread = std::make_unique<Helper>(options_.threads, work);
  lead_->when_stopped.emplace(ends_.get_token(), [thread = lead_->thread.get()] { thread->request_stop(); });
}

/// Requests stop and waits for the end of the lead, which keeps its status.
void Supervisor::end_lead_thread() noexcept {
  if (lead_ == nullptr) return;
  lead_->when_stopped.reset();
  lead_->thread = nullptr;
}

/// A lead that has failed may have left an update half done: the last save counts then.
void Supervisor::stop_lead() {
  if (lead_ == nullptr) return;
  end_lead_thread();
  if (!lead_status().ok()) has_begun_ = false;
  lead_ = nullptr;
}

Status Supervisor::lead_status() const {
  if (lead_ == nullptr) return {};
  const std::lock_guard lock(lead_->mutex);
  return lead_->status;
}

/// Blocks until the lead has ended or the supervisor is stopped; false if the supervisor was stopped first.
bool Supervisor::await_lead() {
  dflow::detail::FirstOfSeveral over;
  {
    const std::stop_callback ended(lead_->has_ended.get_token(), [&] { over.come(); });
    const std::stop_callback stopped(ends_.get_token(), [&] { over.come(); });
    options_.threads->wait(over.event);
  }
  const std::lock_guard lock(lead_->mutex);
  return lead_->has_ended.stop_requested() && !lead_->was_stopped;
}

/// Stops the lead, and saves its progress since the last save, like the progress of a body.
void Supervisor::end_lead() noexcept {
  end_lead_thread();
  const std::unique_ptr<Lead> ended = std::move(lead_);
  if (!ended->status.ok()) {
    has_begun_ = false;
    session_ = nullptr;  // nobody saves what it has left half done
    return;
  }
  try {
    save_what_is_new(*session_);
  } catch (...) {
    report_save_error(status_of_current_exception());
  }
}

bool Supervisor::wait_for_lead(const std::function<bool(Session&)>& body) {
  const bool leads = options_.lead && options_.is_chief;
  if (!leads && !body) return true;
  for (;;) {
    if (!run([&](Session& ready) { return !body || body(ready); })) return false;
    if (!leads) return true;
    if (lead_ == nullptr && is_stopped()) return false;
    if (lead_ == nullptr) continue;  // the session was lost when the body had been run
    if (!await_lead()) {
      end_lead();
      return false;
    }
    const Status status = lead_status();
    if (status.ok()) return true;
    lose_session(Error(status));
  }
}

void Supervisor::run_stopped(Duration within, const std::function<void(Session&, Duration left)>& body) {
  Clock& clock = *options_.clock;
  const Clock::time_point deadline = clock.after(within);
  std::unique_ptr<Session> made;
  for (;;) {
    const Duration left = std::max(deadline - clock.now(), Duration::zero());
    try {
      if (session_ == nullptr && made == nullptr) {
        SessionOptions making = next_session();
        making.startup_timeout = left;
        made = std::make_unique<Session>(*graph_, making);
        continue;
      }
      return body(session_ == nullptr ? *made : *session_, left);
    } catch (const Error& error) {
      if (!detail::is_lost_task(error.status()) || clock.now() >= deadline) throw;
      stop_lead();  // it uses the session
      session_ = nullptr;
      made = nullptr;
    }
    const Clock::time_point next = std::min(deadline, clock.after(options_.poll_interval));
    dflow::detail::wait_until(*options_.threads, clock, next, {});
  }
}

/// Says now and then that it waits.
bool Supervisor::waits_until(Clock::time_point deadline, Session& session,
                             const std::function<void(Session&, const std::stop_token&)>& wait) {
  if (!wait) return true;
  std::stop_source ends = lead_ == nullptr ? std::stop_source() : lead_->has_failed;
  std::atomic<bool> is_late{false};
  const auto pass_time = [&, ends](const std::stop_token& has_begun) mutable {
    Clock& clock = *options_.clock;
    while (!has_begun.stop_requested() && clock.now() < deadline) {
      const Clock::time_point next = std::min(deadline, clock.after(detail::line_interval));
      dflow::detail::wait_until(*options_.threads, clock, next, has_begun);
      if (!has_begun.stop_requested()) say_still("waits for the chief, and for the other replicas, to begin");
    }
    if (has_begun.stop_requested()) return;
    is_late = true;
    ends.request_stop();
  };
  const std::stop_callback stopped(ends_.get_token(), [ends]() mutable { ends.request_stop(); });
  auto waits = std::make_unique<Helper>(options_.threads, pass_time);
  try {
    wait(session, ends.get_token());
  } catch (const Error& error) {
    waits = nullptr;
    if (!is_late || error.status().code() != Code::cancelled) throw;
    return false;
  }
  return true;
}

/// Waits for a while, or until stopped.
void Supervisor::pause() const {
  Clock& clock = *options_.clock;
  dflow::detail::wait_until(*options_.threads, clock, clock.after(options_.poll_interval), ends_.get_token());
}

bool Supervisor::is_stopped() const noexcept {
  return ends_.stop_requested() || (termination_ != nullptr && termination_->has_come());
}

/// An error of the log callback must not fail the training.
void Supervisor::say(std::string_view line) const noexcept {
  try {
    const std::lock_guard one_at_a_time(log_mutex_);
    if (options_.log) return options_.log(line);
    std::fputs(str_cat("dflow: ", printable(line), "\n").c_str(), stderr);
  } catch (...) {
  }
}

void Supervisor::say_still(std::string line) {
  const std::lock_guard lock(said_mutex_);
  const Clock::time_point now = options_.clock->now();
  std::erase_if(said_, [&](const auto& said) { return said.second <= now; });
  if (said_.size() >= detail::most_lines || said_.contains(line)) return;
  say(line);
  said_.emplace(std::move(line), options_.clock->after(detail::line_interval));
}

void Supervisor::report_save_error(const Status& status) const noexcept {
  try {
    if (options_.on_save_error) {
      const std::lock_guard one_at_a_time(log_mutex_);
      return options_.on_save_error(status);
    }
    say(str_cat("a checkpoint could not be saved: ", status.to_string()));
  } catch (...) {
  }
}

bool Supervisor::should_stop() noexcept {
  const bool is_over = is_stopped();
  if (is_over) ends_.request_stop();
  if (is_over && has_trained_) save_if_due();
  return is_over;
}

void Supervisor::end_body() noexcept {
  has_trained_ = true;
  summarize_if_due();
  save_if_due();
}

void Supervisor::with_events(const std::function<void()>& write) {
  if (events_.is_empty() || !options_.is_chief) return;
  try {
    write();
  } catch (...) {
    const Status status = status_of_current_exception();
    if (detail::is_lost_task(status)) throw_error(status);
    report_events_error(status);
  }
}

void Supervisor::write_events(const std::function<void(EventWriter&)>& write) const noexcept {
  if (events_.is_empty() || !options_.is_chief) return;
  try {
    Status status = Status::failed_precondition("the event writer is gone");
    // The thread of `lead` writes too, while the writer's owner may destroy it.
    events_.with([&](EventWriter& events) noexcept {
      try {
        write(events);
        status = {};
      } catch (...) {
        status = status_of_current_exception();
      }
    });
    throw_if_error(status);
  } catch (...) {
    report_events_error(status_of_current_exception());
  }
}

void Supervisor::report_events_error(const Status& status) const noexcept {
  try {
    std::string line = str_cat("no summary could be written: ", status.to_string());
    {
      const std::lock_guard one_at_a_time(log_mutex_);
      if (line == events_error_) return;
      events_error_ = line;
    }
    say(line);
  } catch (...) {
  }
}

void Supervisor::begin_events(Session& session) {
  with_events([&] {
    const std::int64_t step = session.run(*options_.global_step).scalar();
    last_summary_ = options_.clock->now();
    last_summary_step_ = step;
    write_events([&](EventWriter& events) {
      events.add_start(step + 1);
      if (!std::exchange(has_written_graph_, true)) events.add_graph(*graph_, step);
    });
  });
}

void Supervisor::summarize(Session& session, std::int64_t step) {
  const Clock::time_point now = options_.clock->now();
  const double seconds = std::chrono::duration<double>(now - last_summary_).count();
  const auto steps = static_cast<double>(step - last_summary_step_);
  last_summary_ = now;
  last_summary_step_ = step;
  write_events([&](EventWriter& events) {
    if (seconds > 0) events.add_scalar("global_step/sec", steps / seconds, step);
  });
  if (!options_.summary.is_valid()) return;
  const Tensor<std::string> summary = session.run(options_.summary);
  write_events([&](EventWriter& events) { events.add_summary(summary, step); });
}

void Supervisor::summarize_if_due() noexcept {
  if (session_ == nullptr || (!options_.summary_every && options_.summary_every_steps == 0)) return;
  try {
    with_events([&] {
      const bool is_time = options_.summary_every && options_.clock->now() - last_summary_ >= *options_.summary_every;
      if (!is_time && options_.summary_every_steps == 0) return;
      const std::int64_t step = session_->run(*options_.global_step).scalar();
      const std::int64_t every = options_.summary_every_steps;
      if (is_time || (every > 0 && step - last_summary_step_ >= every)) summarize(*session_, step);
    });
  } catch (const Error& error) {
    drop_session(error.status());
  } catch (...) {
  }
}

/// After a body: the next body gets another session.
void Supervisor::drop_session(const Status& lost) noexcept {
  stop_lead();
  say_still(str_cat("a task was lost, and the session with it: ", lost.to_string()));
  session_ = nullptr;
  ++num_recoveries_;
}

void Supervisor::initialize_or_restore(Session& session, bool is_ready) {
  const bool restores = !is_ready || !has_begun_;
  std::optional<std::string> latest;
  if (restores && saves()) latest = options_.saver->latest(options_.checkpoint_dir);
  // A checkpoint of all variables makes them ready at once; any other checkpoint may not name all of them.
  if (!is_ready && !(latest && has_own_saver_)) {
    if (rewind_.is_valid()) session.run(rewind_);  // values drawn again then equal the earlier ones
    session.run(initialize_);
  }
  if (latest) options_.saver->restore(session, *latest);
  const bool is_restored = restores && options_.restore && options_.restore(session);
  if (latest || is_restored) {
    say_still(latest ? str_cat("the variables are restored from '", *latest, "'") : "the variables are restored");
  } else {
    say_still(is_ready ? "the variables are as they were" : "the variables are initialised");
  }
  if (!restores || !saves()) return;
  {
    const std::lock_guard lock(*saving_);
    last_saved_step_ = session.run(*options_.global_step).scalar();
    last_save_ = options_.clock->now();
    checkpoint_of_.reset();
    if (latest && !options_.restore) checkpoint_of_ = last_saved_step_;
  }
  if (latest) return;
  if (has_begun_) return save_what_is_new(session);
  const std::lock_guard lock(*saving_);
  save_to(session, last_saved_step_);
}

/// False if another task is to initialise the model, and has not done so yet.
bool Supervisor::make_ready(Session& session) {
  const bool is_ready = !is_initialized_.is_valid() || session.run(is_initialized_).scalar();
  if (!options_.is_chief) return is_ready;
  initialize_or_restore(session, is_ready);
  begin_events(session);
  return true;
}

void Supervisor::initialize_local(Session& session) const {
  if (local_initializers_.empty()) return;
  std::vector<AnyTensor> have_values(are_local_initialized_.size());
  session.run_erased({}, nullptr, {}, are_local_initialized_, {}, have_values);
  std::vector<Operation> wanted;
  for (std::size_t i = 0; i < have_values.size(); ++i) {
    if (!have_values[i].as<bool>().scalar()) wanted.push_back(local_initializers_[i]);
  }
  if (!wanted.empty()) session.run_erased({}, nullptr, {}, {}, wanted, {});
}

std::string Supervisor::uninitialized(Session& session) const {
  constexpr int most = 10;
  std::string names;
  int count = 0;
  for (const auto& [name, is_initialized] : are_initialized_) {
    if (session.run(is_initialized).scalar() || ++count > most) continue;
    names += str_cat(names.empty() ? "" : ", ", "'", name, "'");
  }
  if (names.empty()) return "the variables";  // they have been initialised by now
  return count > most ? str_cat(names, " and ", count - most, " other variables") : names;
}

/// The options of a session. Steps are numbered by its incarnation, which no other session has.
SessionOptions Supervisor::next_session() {
  SessionOptions options = options_.session;
  if (options.incarnation != 0) options.incarnation += num_sessions_++;
  return options;
}

Session& Supervisor::session() {
  if (const Status failed = lead_status(); !failed.ok()) lose_session(Error(failed));
  if (session_ != nullptr) return *session_;
  const Clock::time_point deadline = options_.clock->after(options_.ready_timeout);
  const auto require_going_on = [this] {
    if (!is_stopped()) return;
    throw_error(Status::cancelled(str_cat(options_.stop.stop_requested() ? "stop was requested" : "SIGTERM has come",
                                          " before the model was ready")));
  };
  Status last = Status::unavailable("the variables have not been initialised");
  for (; options_.clock->now() < deadline; pause()) {
    require_going_on();
    try {
      const Duration left = deadline - options_.clock->now();
      SessionOptions making = next_session();
      making.stop = ends_.get_token();
      making.startup_timeout = std::min(options_.session.startup_timeout.value_or(left), left);
      auto made = std::make_unique<Session>(*graph_, making);
      while (!make_ready(*made)) {
        if (options_.clock->now() >= deadline) {
          throw_error(Status::unavailable(str_cat("the chief has not initialised ", uninitialized(*made))));
        }
        require_going_on();
        if (options_.clock->now() >= next_look_) {
          say_still(str_cat("waits for the chief to initialise ", uninitialized(*made)));
          next_look_ = options_.clock->after(detail::line_interval);
        }
        if (!options_.is_chief) waits_until(deadline, *made, options_.await_chief);
        pause();
      }
      initialize_local(*made);
      session_ = std::move(made);
      has_begun_ = true;
      start_lead();
      if (!waits_until(deadline, *session_, options_.begin)) {
        throw_error(Status::deadline_exceeded("no chief has led this replica into the training"));
      }
      return *session_;
    } catch (...) {
      const Status lead = lead_status();  // a failed lead has ended `begin` too
      last = lead.ok() ? status_of_current_exception() : lead;
      if (is_stopped() && lead_ != nullptr) end_lead();  // saves what it has made
      stop_lead();
      session_ = nullptr;
      require_going_on();
      if (!lead.ok() && !detail::is_lost_task(lead)) throw_error(lead);
      if (!detail::is_lost_task(last)) throw;
      say_still(str_cat("the model is not ready: ", last.to_string()));
    }
  }
  throw_error(Status::deadline_exceeded(str_cat("the model is not ready: ", last.to_string())));
}

void Supervisor::lose_session(const Error& error) {
  if (!detail::is_lost_task(error.status())) throw_error(error.status());
  stop_lead();
  say_still(str_cat("a task was lost, and the session with it: ", error.status().to_string()));
  session_ = nullptr;
  ++num_recoveries_;
}

/// Called with the lock.
std::string Supervisor::save_to(Session& session, std::int64_t step) {
  last_save_ = options_.clock->now();
  has_trained_ = false;
  last_saved_step_ = step;
  checkpoint_of_.reset();
  if (non_finite_ != nullptr) {
    const std::vector<std::string> names = non_finite_->find(session);
    if (!names.empty()) {
      throw_error(Status::invalid_argument(str_cat(
          "Supervisor: not saved at step ", step, detail::say_not_finite(names), " (SupervisorOptions::only_finite)")));
    }
  }
  std::string path = options_.saver->save(session, join_path(options_.checkpoint_dir, options_.checkpoint_name), step);
  checkpoint_of_ = step;
  write_events([&](EventWriter& events) { events.add_checkpoint(path, step); });
  return path;
}

std::string Supervisor::save() {
  if (!saves())
    throw_error(Status::failed_precondition("Supervisor: only the chief saves, where it has a checkpoint_dir"));
  Session& ready = session();
  const std::lock_guard lock(*saving_);
  return save_to(ready, ready.run(*options_.global_step).scalar());
}

void Supervisor::save_what_is_new(Session& session) {
  if (!saves()) return;
  throw_if_error(lead_status());
  try {
    const std::lock_guard lock(*saving_);
    const std::int64_t step = session.run(*options_.global_step).scalar();
    if (checkpoint_of_ != step) save_to(session, step);
  } catch (...) {
    const Status status = status_of_current_exception();
    if (detail::is_lost_task(status)) throw_error(status);
    report_save_error(status);
  }
}

bool Supervisor::is_save_due(Session& session) {
  if (is_stopped()) return !std::exchange(has_saved_last_, true);
  if (options_.save_every && options_.clock->now() - last_save_ >= *options_.save_every) return true;
  return options_.save_every_steps > 0 &&
         session.run(*options_.global_step).scalar() - last_saved_step_ >= options_.save_every_steps;
}

void Supervisor::save_if_due() noexcept {
  if (!saves() || session_ == nullptr) return;
  if (is_stopped()) {  // nobody makes steps any more
    ends_.request_stop();
    end_lead_thread();
  }
  if (!lead_status().ok()) return;  // its last step may be half made
  try {
    const std::lock_guard lock(*saving_);
    if (is_save_due(*session_)) save_to(*session_, session_->run(*options_.global_step).scalar());
  } catch (...) {
    const Status status = status_of_current_exception();
    report_save_error(status);
    if (detail::is_lost_task(status)) drop_session(status);
  }
}

}  // namespace dflow::train
