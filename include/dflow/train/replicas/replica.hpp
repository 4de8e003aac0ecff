#pragma once

#include <dflow/base/duration.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/optimizer.hpp>
#include <dflow/train/replicas/supervisor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train::detail {

// Shared by replicas that train in step and replicas that train with bounded staleness.

/// The global step that all replicas count: the step of the options, or a new variable "global_step".
Variable<std::int64_t> shared_global_step(GraphStore& graph, const MinimizeOptions& options);

/// A variable for a number of replica `rank`, on the device of `loss`: "NAME_RANK", at first -1.
AnyVariable number_of_replica(const AnyOutput& loss, std::string_view name, std::int64_t rank);

/// The ranks that have left, as far as the leader knows, also after the task where replicas meet has forgotten them.
///
/// Thread safety: all functions may be called from any thread.
class RememberedRanks {
 public:
  Tensor<std::int32_t> get() const {
    const std::lock_guard lock(mutex_);
    return ranks_;
  }
  /// Whether `ranks` has a rank that is not known yet.
  bool lacks(const Tensor<std::int32_t>& ranks) const {
    const Tensor<std::int32_t> known = get();
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](std::int32_t rank) { return std::find(known.begin(), known.end(), rank) == known.end(); });
  }
  void set(Tensor<std::int32_t> ranks) {
    const std::lock_guard lock(mutex_);
    ranks_ = std::move(ranks);
  }
  /// Forgets all ranks: the next training begins anew.
  void clear() { set(Tensor<std::int32_t>(Shape{0})); }

 private:
  mutable std::mutex mutex_;
  Tensor<std::int32_t> ranks_{Shape{0}};
};

/// How long a replica that was told to stop tries to leave, and a chief waits before it names others, if there is no
/// patience.
inline constexpr Duration usual_end_patience = std::chrono::seconds(30);

/// Calls `end`, by which a replica that was told to stop leaves. Its errors do not count if they say that the leader,
/// or the task where replicas meet, is lost: nobody waits for the replica then.
void unless_lost(const std::function<void()>& end);

/// Begins the step `leave`, and does not wait for its end.
void leave_at_once(Session& session, const Operation& leave);

/// Operations that each wait, on one of the tasks with variables, until their step ends: a step with them fails when
/// one of these tasks is lost, also if it needs nothing of the task.
std::vector<Operation> waits_of_tasks(GraphStore& graph);

/// Ends a step that runs as long as this object lives, and holds a place where replicas meet.
struct Lease {
  std::stop_source ends;

  Lease() = default;
  Lease(Session& session, std::span<const Operation> hold);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { ends.request_stop(); }
};

/// The options of a Supervisor with `begin` and `lead` of `replicas`, whose steps `leave` and `await_chief` are; with
/// their global step if the options have none.
template <class Replicas>
SupervisorOptions supervised_by(const Replicas& replicas, SupervisorOptions options, const Operation& leave,
                                const Operation& await_chief) {
  if (!options.global_step) options.global_step = replicas.global_step();
  options.begin = [replicas](Session& session, const std::stop_token& stop) { replicas.begin(session, stop); };
  options.lead = [replicas](const Leading& with) { replicas.lead(with); };
  options.leave = [leave](Session& session) { leave_at_once(session, leave); };
  options.await_chief = [await_chief](Session& session, const std::stop_token& stop) {
    session.run(RunOptions{.stop = stop}, {}, await_chief);
  };
  return options;
}

}  // namespace dflow::train::detail
