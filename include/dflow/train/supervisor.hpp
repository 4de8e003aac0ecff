#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/session/session.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace dflow::train {

/// How a Supervisor keeps a model ready.
struct SupervisorOptions {
  /// What each session is made with; its target is the cluster's.
  SessionOptions session = {};
  /// The one replica that initialises and restores; the others wait until it has.
  bool is_chief = true;
  /// Sets variables to what was saved last, and says whether there was something; null: nothing is ever saved. Called
  /// by the chief, when it begins and whenever variables were lost.
  std::function<bool(Session&)> restore = nullptr;
  /// Called in each replica with every session that has become ready, before it is used; null: nothing. It may block.
  std::function<void(Session&)> begin = nullptr;
  /// What the chief does beside training, in a thread of its own, with every session that has become ready, until stop
  /// is requested or it has no more to do; null: nothing. What it throws ends the next `run` too.
  std::function<void(Session&, const std::stop_token&)> lead = nullptr;
  /// How long to wait until the model is ready: for tasks that have not been started, and for the chief.
  Duration ready_timeout = std::chrono::minutes(5);
  /// Between two looks at whether it is.
  Duration poll_interval = std::chrono::milliseconds(100);
  /// Null: the machine's.
  std::shared_ptr<Clock> clock = nullptr;
};

/// Keeps a session on a cluster ready for training: makes it, has the chief initialise or restore the variables, waits
/// for that elsewhere, and does so again when a task was lost, so that a training loop goes on by itself.
///
/// ```cpp
/// df::train::Supervisor supervisor(graph, {.session = {.target = server.target()}, .is_chief = cluster.is_chief()});
/// while (step_number < steps)
///   loss = supervisor.run([&](df::Session& session) { return session.run(next_batch(), loss, train).scalar(); });
/// ```
/// A body that was interrupted is called again from its beginning: whether what it ran took effect is not known.
///
/// Thread safety: one thread at a time. All functions block.
/// Errors: those of the body but for lost tasks (Unavailable, Aborted); DeadlineExceeded when the model is not ready in
/// `ready_timeout`, with what was wrong last.
class Supervisor {
 public:
  /// Takes the variables that the graph has now: it adds the nodes that tell and initialise them.
  explicit Supervisor(Graph& graph, SupervisorOptions options = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// One in which all variables have values.
  Session& session();
  /// Calls `body(session)`, until no task is lost meanwhile, and returns what it returns.
  template <class Body>
  auto run(Body&& body) {
    for (;;) {
      Session& ready = session();
      try {
        return body(ready);
      } catch (const Error& error) {
        lose_session(error);
      }
    }
  }
  /// Blocks until what the chief does beside has no more to do, with whatever sessions that takes. Elsewhere, and where
  /// there is no such thing, it returns at once.
  void wait_for_lead();
  /// How often a session was made anew because a task was lost.
  int num_recoveries() const noexcept { return num_recoveries_; }

 private:
  /// Throws what is no loss of a task.
  void lose_session(const Error& error);
  bool make_ready(Session& session);
  void pause() const;
  void start_lead();
  void stop_lead();
  Status lead_status() const;

  Graph& graph_;
  SupervisorOptions options_;
  Output<bool> is_initialized_;
  Operation initialize_;
  std::unique_ptr<Session> session_;
  struct Lead;
  std::unique_ptr<Lead> lead_;
  bool has_begun_ = false;
  int num_recoveries_ = 0;
};

}  // namespace dflow::train

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/train/supervisor.ipp>
#endif
