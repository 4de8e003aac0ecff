#pragma once

#include <dflow/base/threads/pool_event.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/train/supervisor.hpp>

#include <mutex>
#include <thread>
#include <vector>

namespace dflow::train {

namespace detail {

DFLOW_INLINE bool is_lost_task(const Status& status) noexcept {
  return status.code() == Code::unavailable || status.code() == Code::aborted;
}

}  // namespace detail

DFLOW_INLINE Supervisor::Supervisor(Graph& graph, SupervisorOptions options)
    : graph_(graph), options_(std::move(options)) {
  if (options_.clock == nullptr) options_.clock = std::make_shared<RealClock>();
  GraphStore& store = *graph.store();
  const ScopeGuard names = enter_name_scope(store, "supervisor");
  AnyOutput all;
  for (const AnyVariable& variable : global_variables(graph)) {
    const AnyOutput one = variable.is_initialized();
    all = all.is_valid() ? build<LogicalAnd>({all, one}) : one;
  }
  if (all.is_valid()) is_initialized_ = Output<bool>::unchecked(all);
  initialize_ = initialize_variables(graph);
}

/// The thread of `SupervisorOptions::lead`. It uses the session, which goes later.
struct Supervisor::Lead {
  std::mutex mutex;
  Status status;  ///< what it ended with
  bool has_ended = false;
  PoolEvent ended;
  std::jthread thread;
};

DFLOW_INLINE Supervisor::~Supervisor() { stop_lead(); }

DFLOW_INLINE void Supervisor::start_lead() {
  if (!options_.lead || !options_.is_chief) return;
  lead_ = std::make_unique<Lead>();
  lead_->thread = std::jthread([this, lead = lead_.get(), session = session_.get()](const std::stop_token& stop) {
    Status status;
    try {
      options_.lead(*session, stop);
    } catch (...) {
      status = status_of_current_exception();
    }
    {
      const std::lock_guard lock(lead->mutex);
      lead->status = std::move(status);
      lead->has_ended = true;
    }
    lead->ended.set();
  });
}

DFLOW_INLINE void Supervisor::stop_lead() { lead_ = nullptr; }

DFLOW_INLINE Status Supervisor::lead_status() const {
  if (lead_ == nullptr) return {};
  const std::lock_guard lock(lead_->mutex);
  return lead_->status;
}

DFLOW_INLINE void Supervisor::wait_for_lead() {
  if (!options_.lead || !options_.is_chief) return;
  for (;;) {
    static_cast<void>(session());
    lead_->ended.wait_blocking();
    const Status status = lead_status();
    if (status.ok()) return;
    lose_session(Error(status));
  }
}

DFLOW_INLINE void Supervisor::pause() const {
  PoolEvent passed;
  options_.clock->schedule_after(options_.poll_interval, [&] { passed.set(); });
  passed.wait_blocking();
}

/// False if somebody else is to do it, and has not yet.
DFLOW_INLINE bool Supervisor::make_ready(Session& session) {
  const bool is_ready = !is_initialized_.is_valid() || session.run(is_initialized_).scalar();
  if (!options_.is_chief) return is_ready;
  if (!is_ready) session.run(initialize_);  // what was saved may not name all of them
  if ((!is_ready || !has_begun_) && options_.restore) options_.restore(session);
  return true;
}

DFLOW_INLINE Session& Supervisor::session() {
  if (const Status failed = lead_status(); !failed.ok()) lose_session(Error(failed));
  if (session_ != nullptr) return *session_;
  const Clock::time_point deadline = options_.clock->after(options_.ready_timeout);
  Status last = unavailable("the variables have not been initialised");
  for (; options_.clock->now() < deadline; pause()) {
    try {
      auto made = std::make_unique<Session>(graph_, options_.session);
      while (!make_ready(*made)) {
        if (options_.clock->now() >= deadline) throw_error(unavailable("the chief has not initialised the variables"));
        pause();
      }
      session_ = std::move(made);
      start_lead();
      if (options_.begin) options_.begin(*session_);
      has_begun_ = true;
      return *session_;
    } catch (const Error& error) {
      stop_lead();
      session_ = nullptr;
      if (!detail::is_lost_task(error.status())) throw;
      last = error.status();
    }
  }
  throw_error(deadline_exceeded(str_cat("the model is not ready: ", last.to_string())));
}

DFLOW_INLINE void Supervisor::lose_session(const Error& error) {
  if (!detail::is_lost_task(error.status())) throw_error(error.status());
  stop_lead();
  session_ = nullptr;
  ++num_recoveries_;
}

}  // namespace dflow::train
