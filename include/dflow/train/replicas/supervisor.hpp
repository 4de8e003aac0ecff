#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/termination_signal.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/saving/saver.hpp>

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

class NonFiniteVariables;

/// Arguments of `SupervisorOptions::lead`.
struct Leading {
  Session& session;
  const std::stop_token& stop;
  /// `Supervisor::save_what_is_new`: call it before others are told of progress, so that a lost task cannot undo the
  /// progress.
  const std::function<void()>& save;
  /// Writes a line to `SupervisorOptions::log`, if the same line was not written lately.
  const std::function<void(std::string_view)>& say;
  /// Stop is requested here before `stop` if the training is to end, and not only this session.
  const std::stop_token& ends;
};

/// How a Supervisor keeps a model ready.
struct SupervisorOptions {
  /// Options of each session; its target is the cluster's. The supervisor sets their `stop`.
  SessionOptions session = {};
  /// Whether this replica is the chief, which initialises, restores and saves; the others wait for it.
  bool is_chief = true;
  /// Directory where the chief saves, and from which it restores the latest checkpoint; "": it saves nothing. Needs a
  /// `global_step`. The chief saves the first checkpoint before the first step, so that a chief that is started anew
  /// can always go back. If the first checkpoint cannot be saved, training does not begin.
  std::string checkpoint_dir = {};
  /// Checkpoints are "DIR/NAME-STEP".
  std::string checkpoint_name = "model";
  /// Saves and restores; null: a saver of all variables and random streams that the graph has now.
  std::shared_ptr<Saver> saver = nullptr;
  /// Options of the saver that is made for null. Without `files` it takes those of `session`, or of its target.
  SaverOptions saver_options = {};
  /// The number of the step; checkpoints are named after it.
  std::optional<Variable<std::int64_t>> global_step = {};
  /// Saves after a body if this much time has passed since the last save began.
  std::optional<Duration> save_every = {};
  /// Saves after a body if the global step has grown by this many since the last save; reads the step after each
  /// body. 0: never.
  std::int64_t save_every_steps = 0;
  /// Saves no variables that are not finite (`NonFiniteVariables`): the error names them, and the checkpoints before
  /// stay. Looks at each variable, on its device, before each save.
  bool only_finite = true;
  /// Writer of the chief's events for TensorBoard: the graph, each start, each checkpoint, and `summary`; null: none.
  /// Needs a `global_step`, which numbers the events. A failed write, also because the writer is gone, is a line in
  /// `log`, once while the error is the same, and training goes on.
  EventWriter* events = nullptr;
  /// Computed after a body, in a step of its own without feeds; none: the summaries in the graph's collection now, if
  /// there are any. The supervisor also writes "global_step/sec". A body itself fetches and adds summaries that need
  /// feeds.
  Output<std::string> summary = {};
  /// Summarises after a body if this much time has passed since the last summary, or if the global step has grown by
  /// this many. 0: never.
  std::optional<Duration> summary_every = {};
  std::int64_t summary_every_steps = 0;
  /// Notes SIGTERM instead of ending the process. The running body is then the last. The supervisor ends `lead`, and
  /// saves after the body. If the signal comes between two bodies, `should_stop` saves.
  bool save_on_sigterm = false;
  /// Ends training as SIGTERM does. Both also end each wait for the model to be ready.
  std::stop_token stop = {};
  /// Gets the error of a failed save, after which training goes on; null: a line in `log`. Called by the thread that
  /// saves, which may be the thread of `lead`.
  std::function<void(const Status&)> on_save_error = nullptr;
  /// Gets a line for each notable event: how the model began, which task was lost, and, now and then during a wait,
  /// its reason; null: standard error. Called by the same threads as `on_save_error`. No two calls of these functions
  /// overlap, so neither function may use the supervisor.
  std::function<void(std::string_view)> log = nullptr;
  /// Sets variables to their last saved values, and returns whether there were any; instead of, or beside, a
  /// `checkpoint_dir`. Called by the chief, when it begins and whenever variables were lost.
  std::function<bool(Session&)> restore = nullptr;
  /// Called in replicas other than the chief while the model is not ready; null: nothing. Blocks until the chief has
  /// made it ready, or as `begin` does. An exception says that no chief will.
  std::function<void(Session&, const std::stop_token&)> await_chief = nullptr;
  /// Called in each replica with every session that has become ready, before it is used; null: nothing. It may block
  /// until stop is requested: because `lead` has failed, SIGTERM has come, `stop` was requested, or `ready_timeout` has
  /// passed.
  std::function<void(Session&, const std::stop_token&)> begin = nullptr;
  /// Work of the chief beside training, in a thread of its own, with every session that has become ready. It runs
  /// until stop is requested or the work is done; null: nothing. Its exception also ends the next `run`.
  std::function<void(const Leading&)> lead = nullptr;
  /// Called in replicas other than the chief when SIGTERM or a stop has come while a body runs, every 100 ms until the
  /// body ends; null: nothing. Tells the others not to wait for this replica, and ends the body's wait for them. Called
  /// by a thread of the supervisor; must not block.
  std::function<void(Session&)> leave = nullptr;
  /// How long to wait until the model is ready: for tasks that have not been started, for the chief, and for `begin`.
  Duration ready_timeout = std::chrono::minutes(5);
  /// Time between two checks whether the model is ready.
  Duration poll_interval = std::chrono::milliseconds(100);
  /// Null: the machine's clock.
  std::shared_ptr<Clock> clock = nullptr;
  /// Runs `lead`, and up to two waits beside a body, each of which blocks a thread; a supervisor waits for them here.
  /// Null: threads of its own.
  std::shared_ptr<ThreadPool> threads = nullptr;
};

/// Keeps a session on a cluster ready for training: makes it, and has the chief initialise or restore the variables
/// while the other replicas wait. Repeats this when a task was lost, so that a training loop goes on by itself.
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
/// An interrupted body is called again from its beginning; it is not known whether its steps took effect.
///
/// Each replica gives local variables (`VariableOptions::local`) their initial values, if they have none. They are not
/// saved.
///
/// The chief restores the latest checkpoint when it begins and whenever variables were lost. If the supervisor made
/// the saver itself, other replicas see the variables only when all have been restored.
///
/// Thread safety: one thread at a time. All functions block.
/// Errors: as of the body, except lost tasks (Unavailable, Aborted). DeadlineExceeded when the model is not ready in
/// `ready_timeout`, with the last error, and the names of variables without a value if they are the reason. Cancelled
/// when SIGTERM or a stop comes before the model is ready. Errors of `Saver::restore`, and of `Saver::save` for the
/// first checkpoint.
class Supervisor {
 public:
  /// Takes the variables that the graph has now, and adds nodes that check, initialise, save and restore them.
  /// Errors: InvalidArgument for a `checkpoint_dir` or `events` without a `global_step`, and for a negative number of
  /// steps.
  explicit Supervisor(Graph& graph, SupervisorOptions options = {},
                      std::source_location where = std::source_location::current());
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// A session in which all variables have values.
  Session& session();
  /// Calls `body(session)`, again if a task was lost meanwhile, then saves if a save is due, and returns the body's
  /// result.
  template <class Body>
  auto run(Body&& body) {
    for (;;) {
      Session& ready = session();
      has_trained_ = false;
      try {
        const InBody here(*this, ready);
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
  /// Blocks until the chief's `SupervisorOptions::lead` has no more to do, with as many sessions as that takes; calls
  /// `body(session)` with each session first. In other replicas, and without a `lead`, it only calls the body.
  /// Returns false as soon as the body does: nobody needs to wait any more. Also returns false if SIGTERM or a stop
  /// comes before; this ends `lead`, and saves the steps that `lead` has made.
  bool wait_for_lead(const std::function<bool(Session&)>& body = nullptr);
  /// For a replica that was told to stop, also before the model was ready: calls `body(session, left)` with the last
  /// session, or with a new session, in which variables may have no values. If a task is lost, calls it again while
  /// time is `left` of `within`. Errors: as of the body; Unavailable if a task is missing for that time.
  void run_stopped(Duration within, const std::function<void(Session&, Duration left)>& body);
  /// Saves now, in the chief, and returns the path. Errors: as of `Saver::save`; FailedPrecondition in other replicas
  /// and without a `checkpoint_dir`; InvalidArgument for variables that are not finite.
  std::string save();
  /// In a body: saves the steps so far, unless they were saved before; does nothing if this supervisor does not save.
  /// Precondition: no step runs. Errors: Unavailable and Aborted for lost tasks, and the error of a `lead` that has
  /// failed; other errors are reported like the errors of any save.
  void save_what_is_new(Session& session);
  bool is_chief() const noexcept { return options_.is_chief; }
  /// Whether SIGTERM (`save_on_sigterm`) or a stop (`SupervisorOptions::stop`) has come: the loop should end. If it
  /// came when no body ran, the chief first saves the steps of the last body.
  bool should_stop() noexcept;
  /// Stop is requested when SIGTERM or a stop has come, at the latest after 100 ms: for waits of a body.
  std::stop_token stop_token() const noexcept { return ends_.get_token(); }
  /// How often a session was made anew because a task was lost.
  int num_recoveries() const noexcept { return num_recoveries_; }
  /// Writes a line to `SupervisorOptions::log`.
  void say(std::string_view line) const noexcept;

 private:
  /// A body runs as long as this object lives.
  struct InBody {
    Supervisor& supervisor;
    InBody(Supervisor& of, Session& session) : supervisor(of) { supervisor.set_body_session(&session); }
    InBody(const InBody&) = delete;
    InBody& operator=(const InBody&) = delete;
    ~InBody() { supervisor.set_body_session(nullptr); }
  };
  void set_body_session(Session* session);
  /// Sees SIGTERM, and then calls `leave` while a body runs.
  void watch(const std::stop_token& is_gone);
  /// Throws the error unless it is the loss of a task.
  void lose_session(const Error& error);
  SessionOptions next_session();
  bool make_ready(Session& session);
  /// Gives their initial values to local variables that have none.
  void initialize_local(Session& session) const;
  void initialize_or_restore(Session& session, bool is_ready);
  bool saves() const noexcept { return options_.is_chief && !options_.checkpoint_dir.empty(); }
  bool is_stopped() const noexcept;
  /// For states that last long or come again: says each line every `line_interval`, and at most `most_lines` lines in
  /// it.
  void say_still(std::string line);
  void report_save_error(const Status& status) const noexcept;
  void end_body() noexcept;
  /// Never throws: the body's result counts.
  void save_if_due() noexcept;
  bool is_save_due(Session& session);
  /// Calls `write` in the chief, if there are events. Never throws, unless a task was lost.
  void with_events(const std::function<void()>& write);
  /// Calls `write(events)`, if there are events; its exception says nothing about a task.
  void write_events(const std::function<void(EventWriter&)>& write) const noexcept;
  /// Reports an error once while it stays the same: a writer that has failed fails each time.
  void report_events_error(const Status& status) const noexcept;
  void begin_events(Session& session);
  void summarize_if_due() noexcept;
  void summarize(Session& session, std::int64_t step);
  void drop_session(const Status& lost) noexcept;
  std::string save_to(Session& session, std::int64_t step);
  void pause() const;
  /// The names of variables without value.
  std::string uninitialized(Session& session) const;
  /// Calls `wait`, and ends it at `deadline`; false if it was ended so.
  bool waits_until(Clock::time_point deadline, Session& session,
                   const std::function<void(Session&, const std::stop_token&)>& wait);
  void start_lead();
  void stop_lead();
  void end_lead_thread() noexcept;
  bool await_lead();
  void end_lead() noexcept;
  Status lead_status() const;

  class Helper;
  class Turns;

  std::shared_ptr<const GraphStore> graph_;
  SupervisorOptions options_;
  Reference<EventWriter> events_;  ///< `SupervisorOptions::events`
  Output<bool> is_initialized_;
  std::vector<std::pair<std::string, Output<bool>>> are_initialized_;  ///< by the variables' names
  Operation initialize_, rewind_;
  std::vector<AnyOutput> are_local_initialized_;
  std::vector<Operation> local_initializers_;
  bool has_own_saver_ = false;
  std::shared_ptr<const NonFiniteVariables> non_finite_;  ///< none: it saves whatever the variables hold
  std::stop_source ends_;                                 ///< by SIGTERM or a stop
  std::unique_ptr<TerminationSignal> termination_;
  std::unique_ptr<Session> session_;
  struct Lead;
  std::unique_ptr<Lead> lead_;
  bool has_begun_ = false;
  std::atomic<bool> has_trained_{false};  ///< a body has ended, and nothing has been saved since
  bool has_saved_last_ = false;           ///< after the signal
  std::unique_ptr<Turns> saving_;         ///< guards the saver and the three members below
  Clock::time_point last_save_{};
  std::int64_t last_saved_step_ = 0;           ///< also if that save failed
  std::optional<std::int64_t> checkpoint_of_;  ///< the step of the last checkpoint
  Clock::time_point last_summary_{};
  std::int64_t last_summary_step_ = 0;
  bool has_written_graph_ = false;
  mutable std::string events_error_;  ///< reported last; under the log's mutex
  int num_recoveries_ = 0;
  std::uint64_t num_sessions_ = 0;
  std::map<std::string, Clock::time_point> said_;  ///< lines of `say_still`, and until when not to repeat each
  Clock::time_point next_look_{};                  ///< when to check again for uninitialised variables
  mutable std::mutex log_mutex_;                   ///< held while `log` or `on_save_error` is called
  std::mutex said_mutex_;                          ///< guards `said_`
  std::mutex body_mutex_;                          ///< guards `body_session_`, also while `leave` is called
  Session* body_session_ = nullptr;
  std::optional<std::stop_callback<std::function<void()>>> when_stopped_;
  std::unique_ptr<Helper> watch_;
};

}  // namespace dflow::train
