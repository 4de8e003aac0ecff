#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/saving/saver.hpp>
#include <dflow/train/saving/termination_signal.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {
class EventWriter;
}

namespace dflow::train {

/// What `SupervisorOptions::lead` works with.
struct Leading {
  Session& session;
  const std::stop_token& stop;
  /// `Supervisor::save_what_is_new`: what others are told after that is not undone when tasks are lost.
  const std::function<void()>& save;
};

/// How a Supervisor keeps a model ready.
struct SupervisorOptions {
  /// What each session is made with; its target is the cluster's.
  SessionOptions session = {};
  /// The one replica that initialises, restores and saves; the others wait until it has.
  bool is_chief = true;
  /// Where the chief saves, and restores the latest checkpoint from; "": nothing is saved. It needs a `global_step`.
  /// The first checkpoint is made before the first step: a chief that is started anew can always go back. Where that
  /// one cannot be saved, training does not begin.
  std::string checkpoint_dir = {};
  /// Checkpoints are "DIR/NAME-STEP".
  std::string checkpoint_name = "model";
  /// What saves and restores; null: one of all variables and random streams that the graph has now.
  std::shared_ptr<Saver> saver = nullptr;
  /// How that one does.
  SaverOptions saver_options = {};
  /// The number of the step, that checkpoints are named after.
  std::optional<Variable<std::int64_t>> global_step = {};
  /// Saves after a body that ends when so much time has passed since the last save began.
  std::optional<Duration> save_every = {};
  /// Saves after a body that takes the global step so far since the last save; reads it after each body. 0: never.
  std::int64_t save_every_steps = 0;
  /// Where the chief says, for TensorBoard, how it goes: the graph, where it begins, each checkpoint, and `summary`;
  /// null: nowhere. It needs a `global_step`, which numbers what is written, and outlives the supervisor. What cannot
  /// be written is a line in `log`, one as long as the error is the same, and training goes on.
  EventWriter* events = nullptr;
  /// Computed after a body, in a step of its own without feeds; none: what the graph's collection of summaries has now,
  /// if anything. With it comes "global_step/sec". Summaries that need feeds are fetched and added by the body.
  Output<std::string> summary = {};
  /// After a body that ends when so much time has passed since the last one, or that takes the global step so far.
  /// 0: never.
  std::optional<Duration> summary_every = {};
  std::int64_t summary_every_steps = 0;
  /// Notes SIGTERM instead of ending the process: the body that runs is the last, and what it has trained is saved. So
  /// it is where the signal comes between two bodies: by `should_stop`.
  bool save_on_sigterm = false;
  /// Ends it as SIGTERM would, and at once where it waits for the model to be ready.
  std::stop_token stop = {};
  /// Told why a save did not succeed, after which training goes on; null: a line in `log`. Called by the thread that
  /// saves, which may be that of `lead`.
  std::function<void(const Status&)> on_save_error = nullptr;
  /// Gets a line for each thing that is worth one: what the model began with, which task was lost, what is waited for,
  /// now and then as long as it lasts; null: standard error. Called as `on_save_error` is;
  /// neither is called while the other, or another call of it, is under way, so neither may use the supervisor.
  std::function<void(std::string_view)> log = nullptr;
  /// Sets variables to what was saved last, and says whether there was something; instead of, or beside, a
  /// `checkpoint_dir`. Called by the chief, when it begins and whenever variables were lost.
  std::function<bool(Session&)> restore = nullptr;
  /// Called in each replica with every session that has become ready, before it is used; null: nothing. It may block
  /// until stop is requested: `lead` has failed, SIGTERM has come, or `stop` says so.
  std::function<void(Session&, const std::stop_token&)> begin = nullptr;
  /// What the chief does beside training, in a thread of its own, with every session that has become ready, until stop
  /// is requested or it has no more to do; null: nothing. What it throws ends the next `run` too.
  std::function<void(const Leading&)> lead = nullptr;
  /// How long to wait until the model is ready: for tasks that have not been started, and for the chief.
  Duration ready_timeout = std::chrono::minutes(5);
  /// Between two looks at whether it is; SIGTERM is looked for every 100 ms in between.
  Duration poll_interval = std::chrono::milliseconds(100);
  /// Null: the machine's.
  std::shared_ptr<Clock> clock = nullptr;
};

/// Keeps a session on a cluster ready for training: makes it, has the chief initialise or restore the variables, waits
/// for that elsewhere, and does so again when a task was lost, so that a training loop goes on by itself.
///
/// ```cpp
/// df::train::Supervisor supervisor(graph, {.session = {.target = server.target()},
///                                          .is_chief = cluster.is_chief(),
///                                          .checkpoint_dir = "/models/digits",
///                                          .global_step = step,
///                                          .save_every = std::chrono::minutes(10),
///                                          .save_on_sigterm = true});
/// while (!supervisor.should_stop())
///   loss = supervisor.run([&](df::Session& session) { return session.run(next_batch(), loss, train).scalar(); });
/// ```
/// A body that was interrupted is called again from its beginning: whether what it ran took effect is not known.
///
/// The latest checkpoint is restored when the chief begins and whenever variables were lost. Other replicas see the
/// variables only when all have been restored, if the supervisor made the saver itself.
///
/// Thread safety: one thread at a time. All functions block.
/// Errors: those of the body but for lost tasks (Unavailable, Aborted); DeadlineExceeded when the model is not ready in
/// `ready_timeout`, with what was wrong last, and which variables have no value if that is it; those of
/// `Saver::restore`, and of `Saver::save` for the first checkpoint; Cancelled when SIGTERM or a stop comes before it is
/// ready.
class Supervisor {
 public:
  /// Takes the variables that the graph has now: it adds the nodes that tell, initialise, save and restore them.
  /// Errors: InvalidArgument for a `checkpoint_dir` or `events` without a `global_step`, and for fewer than no steps.
  explicit Supervisor(Graph& graph, SupervisorOptions options = {},
                      std::source_location where = std::source_location::current());
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// One in which all variables have values.
  Session& session();
  /// Calls `body(session)`, until no task is lost meanwhile, and returns what it returns. Then saves, if that is due.
  template <class Body>
  auto run(Body&& body) {
    for (;;) {
      Session& ready = session();
      has_trained_ = false;
      try {
        if constexpr (std::is_void_v<decltype(body(ready))>) {
          body(ready);
          return end_body();
        } else {
          auto result = body(ready);
          end_body();
          return result;
        }
      } catch (const Error& error) {
        lose_session(error);
      }
    }
  }
  /// Blocks until what the chief does beside has no more to do, with whatever sessions that takes; calls
  /// `body(session)` with each of them first. Elsewhere, and where there is no such thing, it does that alone. False as
  /// soon as the body is: nobody is to wait any more; and where SIGTERM or a stop comes before: that ends what the
  /// chief does, and saves what it has made.
  bool wait_for_lead(const std::function<bool(Session&)>& body = nullptr);
  /// Saves now, in the chief, and returns the path. Errors: those of `Saver::save`; FailedPrecondition without a
  /// `checkpoint_dir` and in another replica.
  std::string save();
  /// In a body: saves what the steps so far have made, unless that was saved before; nothing where this one does not
  /// save. Precondition: no step is being made. Errors: Unavailable and Aborted for lost tasks; others are reported as
  /// those of any save.
  void save_what_is_new(Session& session);
  bool is_chief() const noexcept { return options_.is_chief; }
  /// SIGTERM has come (`save_on_sigterm`), or a stop (`SupervisorOptions::stop`): the loop is to end. If that came when
  /// no body ran, what the last one has trained is saved first, in the chief.
  bool should_stop() noexcept;
  /// How often a session was made anew because a task was lost.
  int num_recoveries() const noexcept { return num_recoveries_; }

 private:
  /// Throws what is no loss of a task.
  void lose_session(const Error& error);
  bool make_ready(Session& session);
  void initialize_or_restore(Session& session, bool is_ready);
  bool saves() const noexcept { return options_.is_chief && !options_.checkpoint_dir.empty(); }
  bool is_stopped() const noexcept;
  void say(std::string_view line) const noexcept;
  /// What may go on for long, or come again and again: each line every `line_interval`, and so many in that time.
  void say_still(std::string line);
  void report_save_error(const Status& status) const noexcept;
  void end_body() noexcept;
  /// Never throws: the body's result counts.
  void save_if_due() noexcept;
  bool is_save_due(Session& session);
  /// Calls `write` in the chief, if there are events. Never throws, unless a task was lost.
  void with_events(const std::function<void()>& write);
  /// Calls `write(events)`, where there are events; whatever it throws is no word about a task.
  void write_events(const std::function<void(EventWriter&)>& write) const noexcept;
  /// Once as long as it is the same: a writer that has failed fails each time.
  void report_events_error(const Status& status) const noexcept;
  void begin_events(Session& session);
  void summarize_if_due() noexcept;
  void summarize(Session& session, std::int64_t step);
  void drop_session(const Status& lost) noexcept;
  std::string save_to(Session& session, std::int64_t step);
  void pause() const;
  /// The names of variables without value.
  std::string uninitialized(Session& session) const;
  void begin();
  void start_lead();
  void stop_lead();
  bool await_lead();
  void end_lead() noexcept;
  Status lead_status() const;

  Graph& graph_;
  SupervisorOptions options_;
  Output<bool> is_initialized_;
  std::vector<std::pair<std::string, Output<bool>>> are_initialized_;  ///< by the variables' names
  Operation initialize_, rewind_;
  bool has_own_saver_ = false;
  std::unique_ptr<TerminationSignal> termination_;
  std::unique_ptr<Session> session_;
  struct Lead;
  std::unique_ptr<Lead> lead_;
  bool has_begun_ = false;
  std::atomic<bool> has_trained_{false};  ///< a body has ended, and nothing has been saved since
  bool has_saved_last_ = false;           ///< after the signal
  std::mutex save_mutex_;                 ///< of what follows, and of the saver
  Clock::time_point last_save_{};
  std::int64_t last_saved_step_ = 0;           ///< tried to
  std::optional<std::int64_t> checkpoint_of_;  ///< the step of the last one
  Clock::time_point last_summary_{};
  std::int64_t last_summary_step_ = 0;
  bool has_written_graph_ = false;
  mutable std::string events_error_;  ///< reported last; under the log's mutex
  int num_recoveries_ = 0;
  std::map<std::string, Clock::time_point> said_;  ///< by `say_still`, and until when that need not be said again
  Clock::time_point next_look_{};                  ///< at which variables the chief has not initialised
  mutable std::mutex log_mutex_;                   ///< held while `log` or `on_save_error` is called
};

}  // namespace dflow::train
