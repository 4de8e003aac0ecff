#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/data_flow/staleness_clock.hpp>
#include <dflow/train/replicas/replica.hpp>
#include <dflow/train/replicas/stale_sync_replicas.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

/// The nodes that `minimize` has built.
struct StaleSyncReplicas::Built {
  Variable<std::int64_t> global_step;
  Operation await_chief, begin;
  std::vector<Operation> lead;  ///< last as long as this replica leads, and all tasks with variables live
  Operation leave, end_all;     ///< the end of this replica, and that of a chief that was told to stop and has not led
  Output<std::int32_t> known;   ///< fed
  Output<std::int32_t> gone;
  Output<std::int64_t> since;  ///< fed
  Output<std::int64_t> dropped, named;
  mutable detail::RememberedRanks remembered;  ///< replicas that have left or were given up
  mutable std::atomic<bool> has_led{false};
};

StaleSyncReplicas::StaleSyncReplicas(std::shared_ptr<const Optimizer> optimizer,
                                     const StaleSyncReplicasOptions& options)
    : optimizer_(std::move(optimizer)), options_(options) {
  if (optimizer_ == nullptr) throw_error(Status::invalid_argument("StaleSyncReplicas: of no optimizer"));
  const auto& [staleness, replicas, rank, patience, late] = options_;
  if (staleness < 0 || rank < 0 || rank >= replicas) {
    throw_error(Status::invalid_argument(str_cat("StaleSyncReplicas: staleness ", staleness, " and rank ", rank, " of ",
                                                 replicas, " replicas: wanted 0 <= staleness, 0 <= rank < replicas")));
  }
}

const StaleSyncReplicas::Built& StaleSyncReplicas::built() const {
  if (built_ == nullptr) throw_error(Status::failed_precondition("StaleSyncReplicas: call minimize first"));
  return *built_;
}

const Variable<std::int64_t>& StaleSyncReplicas::global_step() const { return built().global_step; }

Operation StaleSyncReplicas::minimize(const AnyOutput& loss, const MinimizeOptions& options, const At& at) {
  if (built_ != nullptr) {
    throw_error(Status::failed_precondition("StaleSyncReplicas: minimize was called already").with_location(at.where));
  }
  const std::vector<GradientAndVariable> gradients = detail::changed(
      optimizer_->compute_gradients(loss, options.variables, options.differentiation(), at.where), options);
  GraphStore& graph = *loss.graph();
  const Composite place(graph, at.where);
  auto built = std::make_shared<Built>();
  built->global_step = detail::shared_global_step(graph, options);
  const auto beside_step = [&, step = built->global_step.handle().operation()] {
    return enter_colocation(graph, step);
  };
  std::optional<ScopeGuard> names(enter_name_scope(graph, "stale_sync_replicas"));

  // The member number of this replica is kept on its own device.
  const AnyVariable member = detail::number_of_replica(loss, "member", options_.rank);
  const AnyOutput clock = [&] {
    const ScopeGuard there = beside_step();
    return AnyOutput(build<StalenessClock>(graph, {}, {.replicas = options_.replicas, .staleness = options_.staleness},
                                           {.name = "clock"}));
  }();
  const auto wait = [&] {
    const ScopeGuard there = beside_step();
    return Operation(build<StalenessClockWait>({clock, member.read_edge()}));
  };

  // The computed gradients count only if this step may begin. The end of the step before has waited for that.
  const Operation may_begin = wait();
  const Operation updated = [&] {
    const ScopeGuard after = enter_control_dependencies(graph, {&may_begin, 1});
    return optimizer_->apply_gradients(gradients, built->global_step, {.where = at.where});
  }();
  const Operation finished = [&] {
    std::vector<Operation> all = detail::update_operations_of(loss, options);
    all.push_back(updated);
    const ScopeGuard after = enter_control_dependencies(graph, all);
    const ScopeGuard there = beside_step();
    return Operation(build<StalenessClockTick>({clock, member.read_edge()}));
  }();
  const Operation next_may_begin = [&] {
    const ScopeGuard after = enter_control_dependencies(graph, {&finished, 1});
    return wait();
  }();

  const ScopeGuard there = beside_step();
  const std::int64_t own = options_.rank;
  built->await_chief = build<StalenessClockJoin>({clock}, {.rank = own, .only_awaits = true}, {.name = "await_chief"});
  built->begin = member.assign(AnyOutput(build<StalenessClockJoin>({clock}, {.rank = own})), {.name = "begin"});
  built->lead = detail::waits_of_tasks(graph);
  built->lead.emplace_back(build<StalenessClockLead>({clock}, {.rank = own}, {.name = "lead"}));
  built->leave = build<StalenessClockLeave>({clock}, {.rank = own}, {.name = "leave"});
  built->end_all = build<StalenessClockLeave>({clock}, {.rank = own, .ends_all = true}, {.name = "end_all"});
  built->known = Output<std::int32_t>::unchecked(
      dflow::detail::any_placeholder(graph, DType::int32, {dynamic}, {.name = "known"}));
  built->gone = Output<std::int32_t>::unchecked(build<StalenessClockWatch>({clock, built->known}));
  built->since =
      Output<std::int64_t>::unchecked(dflow::detail::any_placeholder(graph, DType::int64, Shape{}, {.name = "since"}));
  built->dropped = Output<std::int64_t>::unchecked(
      build<StalenessClockDropLate>({clock, built->since}, {.fails = options_.late == LateReplicas::fail}));
  built->named =
      Output<std::int64_t>::unchecked(build<StalenessClockDropLate>({clock, built->since}, {.only_names = true}));
  built_ = std::move(built);
  if (!at.name.empty()) names.reset();
  return group(std::vector<Operation>{next_may_begin}, at);
}

void StaleSyncReplicas::begin(Session& session, const std::stop_token& stop) const {
  session.run(RunOptions{.stop = stop}, {}, built().begin);
}
void StaleSyncReplicas::leave(Session& session, const RunOptions& options) const {
  session.run(options, {}, built().leave);
}

void StaleSyncReplicas::lead(Session& session, const std::stop_token& stop, const std::function<void()>& save) const {
  const std::function<void(std::string_view)> say;
  const std::stop_token ends;
  lead({session, stop, save, say, ends});
}

void StaleSyncReplicas::lead(const Leading& with) const {
  const auto& [session, stop, save, say, ends] = with;
  const Built& nodes = built();
  const Duration patience = options_.patience.value_or(detail::usual_end_patience);
  std::int64_t since = -1;
  const auto look = [&, &in = session](const Output<std::int64_t>& how) {
    return in.run({{nodes.since, Tensor<std::int64_t>(since)}}, how).scalar();
  };
  const auto watch = [&, &in = session](const Tensor<std::int32_t>& known, const std::stop_token& ended) {
    return in.run(RunOptions{.deadline = patience, .stop = ended}, {{nodes.known, known}}, nodes.gone);
  };
  const auto leave_first = [&] {  // a leader that has not left is lost when its place is
    detail::leave_at_once(session, nodes.leave);
    Tensor<std::int32_t> gone = nodes.remembered.get();
    while (std::find(gone.begin(), gone.end(), options_.rank) == gone.end()) gone = watch(gone, {});
  };
  const detail::Lease place(session, nodes.lead);
  for (bool leads = false;;) {
    try {
      if (!std::exchange(leads, true)) session.run(RunOptions{.stop = stop}, {}, nodes.await_chief);
      nodes.has_led = true;
      const Tensor<std::int32_t> before = nodes.remembered.get();
      const Tensor<std::int32_t> gone = watch(before, stop);
      if (gone.num_elements() == options_.replicas && before.num_elements() == options_.replicas) {
        return nodes.remembered.clear();
      }
      if (save && nodes.remembered.lacks(gone)) save();
      nodes.remembered.set(gone);
    } catch (const Error& error) {
      const Code code = error.status().code();
      if (code == Code::cancelled && stop.stop_requested()) {
        if (!ends.stop_requested()) return;
        if (save) save();
        return detail::unless_lost(leave_first);
      }
      if (code != Code::deadline_exceeded) throw;
      std::int64_t now = since;
      try {
        now = look(nodes.named);
      } catch (const Error& late) {
        if (late.status().code() != Code::deadline_exceeded) throw;
        if (say) say(str_cat("others wait: ", late.status().message()));
      }
      since = options_.patience ? look(nodes.dropped) : now;
    }
  }
}

SupervisorOptions StaleSyncReplicas::supervised(SupervisorOptions options) const {
  return detail::supervised_by(*this, std::move(options), built().leave, built().await_chief);
}

void StaleSyncReplicas::finish(Supervisor& supervisor) const {
  try {
    supervisor.wait_for_lead([&](Session& session) {
      leave(session, {.stop = supervisor.stop_token()});
      return true;
    });
  } catch (const Error& error) {
    if (error.status().code() != Code::cancelled || !supervisor.should_stop()) throw;
  }
  const Built& nodes = built();
  if (!supervisor.should_stop()) return;
  if (supervisor.is_chief()) detail::unless_lost([&] { supervisor.wait_for_lead(); });  // saves
  const Operation end = supervisor.is_chief() && !nodes.has_led.exchange(false) ? nodes.end_all : nodes.leave;
  detail::unless_lost([&] {
    supervisor.run_stopped(
        options_.patience.value_or(detail::usual_end_patience),
        [&](Session& session, Duration left) { session.run(RunOptions{.deadline = left}, {}, end); });
  });
}

}  // namespace dflow::train
