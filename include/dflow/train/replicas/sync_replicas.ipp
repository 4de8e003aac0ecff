#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/data_flow/accumulator.hpp>
#include <dflow/ops/data_flow/token_barrier.hpp>
#include <dflow/state/replica_ranks.hpp>
#include <dflow/train/replicas/replica.hpp>
#include <dflow/train/replicas/sync_replicas.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

namespace detail {

/// The place where the gradients of one variable are gathered.
class GatheredGradient {
 public:
  GatheredGradient(const GradientAndVariable& of, const AnyOutput& local_step, std::int64_t rank)
      : of_(of), is_sparse_(of.gradient.slices.has_value()), dtype_(values_of(of.gradient).dtype()) {
    GraphStore& graph = *of_.variable.handle().graph();
    GraphStore::Scope scope = graph.scope();
    scope.colocate(of_.variable.handle().node_id());
    const ScopeGuard beside_it = graph.enter(scope);
    const std::string name = graph.unique_name(str_cat(of_.variable.name(), "/accumulator"));
    const At at{.name = name};
    GraphStore::Scope root = scope;
    root.name_prefix.clear();
    root.control_inputs.clear();
    const AccumulatorAttrs attrs{.shape = of_.variable.shape()};
    const TypeArgs type = dflow::detail::one_type(dtype_);
    {
      const ScopeGuard alone = graph.enter(root);
      handle_ = is_sparse_ ? AnyOutput(build<SparseConditionalAccumulator>(graph, {}, attrs, at, type))
                           : AnyOutput(build<ConditionalAccumulator>(graph, {}, attrs, at, type));
    }
    graph.add_to_collection("not_saved", handle_.node_id());  // a new leader begins without gradients
    if (is_sparse_) {
      const IndexedSlices& rows = *of_.gradient.slices;
      apply_ = build<SparseAccumulatorApplyGradient>({handle_, local_step, rows.indices, rows.values}, {.rank = rank});
    } else {
      apply_ = build<AccumulatorApplyGradient>({handle_, local_step, of_.gradient.dense}, {.rank = rank});
    }
  }

  const Operation& apply() const noexcept { return apply_; }
  /// The mean of the gradients that the replicas `ranks` gave for `step`.
  GradientAndVariable take(const AnyOutput& ranks, const AnyOutput& step) const {
    const ScopeGuard beside_it = enter_colocation(*handle_.graph(), of_.variable.handle().operation());
    GradientAndVariable taken = of_;
    if (!is_sparse_) {
      taken.gradient.dense =
          build<AccumulatorTakeRanks>({handle_, ranks, step}, {}, {}, dflow::detail::one_type(dtype_));
      return taken;
    }
    TypeArgs types = dflow::detail::one_type(dtype_);
    types.push_back(of_.gradient.slices->indices.dtype());
    const BuiltNode rows = build<SparseAccumulatorTakeRanks>({handle_, ranks, step}, {}, {}, types);
    taken.gradient.slices->indices = rows.output(0);
    taken.gradient.slices->values = rows.output(1);
    return taken;
  }
  /// Begins with `step`, and without gradients.
  Operation reset(const AnyOutput& step) const {
    const ScopeGuard beside_it = enter_colocation(*handle_.graph(), of_.variable.handle().operation());
    return build<AccumulatorSetGlobalStep>({handle_, step}, {.drops_waiting = true});
  }

 private:
  GradientAndVariable of_;
  bool is_sparse_;
  DType dtype_;  ///< of the gradient, which may be wider than the variable
  AnyOutput handle_;
  Operation apply_;
};

/// Sets a flag as long as this object lives.
struct Flag {
  std::atomic<bool>& flag;
  Flag(std::atomic<bool>& of, bool is_set) : flag(of) { flag = is_set; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  ~Flag() { flag = false; }
};

/// How much an operation changes a float variable, if it adds to one or subtracts from one.
std::optional<GradientAndVariable> change_by(GraphStore& graph, const Operation& update) {
  const Node& node = update.node();
  const std::string_view op = node.op->name;
  if (op != AssignAdd::name && op != AssignSub::name) return std::nullopt;
  const AnyOutput change(&graph, node.inputs.at(1));
  if (!in_mask(change.dtype(), dtype_mask<FloatTypes>)) return std::nullopt;
  GradientAndVariable by{.gradient = {}, .variable = AnyVariable::of(AnyOutput(&graph, node.inputs.at(0)).operation())};
  by.gradient.dense = change;
  return by;
}

Tensor<std::int32_t> all_ranks(std::int64_t replicas) {
  Tensor<std::int32_t> ranks(Shape{replicas});
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace detail

/// The nodes that `minimize` has built.
struct SyncReplicas::Built {
  Variable<std::int64_t> global_step;
  Output<std::int64_t> local_step;
  Operation await_chief, begin;    ///< wait for a leader; `begin` also sets the local step
  Operation open, advance;         ///< the leader's start and step
  Operation leave, stop;           ///< the end of this replica, and its end when it is told to stop
  Operation end_all;               ///< the chief's end when it is told to stop and does not lead
  Output<std::int64_t> leader;     ///< fed: the leader's number
  Output<std::int32_t> known;      ///< fed: the replicas that have left before
  Output<bool> has_heard;          ///< fed: the leader has got what it collected last
  Output<std::int32_t> collected;  ///< the ranks that have arrived
  Output<std::int32_t> left;       ///< the ranks that have left
  Output<std::int32_t> ranks;      ///< fed: the ranks whose gradients make the step
  Operation hold;                  ///< lasts as long as this replica's process
  std::vector<Operation> lead;     ///< last as long as this replica leads, and all tasks with variables live
  Output<std::int64_t> opened;     ///< the step, when `open` has run
  Output<std::int32_t> missing, dropped, dropped_lost;
  Operation close_late, close_done, close_stopped, close_lost;
  mutable detail::RememberedRanks remembered;  ///< the replicas that have left
  mutable std::atomic<bool> has_left{false};   ///< this replica, at the end of `train`
  mutable std::atomic<bool> is_finishing{false};
  mutable std::atomic<bool> has_ended_all{false};  ///< as the leader, or as the chief that does not lead
  mutable std::mutex place_mutex;
  mutable std::unique_ptr<detail::Lease> place;  ///< of this replica at the barrier

  /// A change that an update operation makes, gathered as gradients are.
  struct Moved {
    detail::GatheredGradient change;
    bool is_added;
  };

  /// This replica's part of a step, when it has given its gradients: it arrives, and gets the number of the next step.
  Operation build_arrival(const AnyOutput& barrier, const AnyVariable& local, std::span<const Operation> given,
                          std::int64_t rank);
  /// The leader's part: it collects the arrivals, then makes the step.
  void build_lead(const AnyOutput& barrier, std::span<const detail::GatheredGradient> gathered,
                  std::span<const Moved> moved, const Optimizer& optimizer, const MinimizeOptions& options,
                  const At& at);
  /// How this replica leaves, and the leader closes the barrier.
  void build_end(const AnyOutput& barrier, std::int64_t rank);

  ScopeGuard enter_beside_step() const {
    return enter_colocation(*local_step.graph(), global_step.handle().operation());
  }
};

SyncReplicas::SyncReplicas(std::shared_ptr<const Optimizer> optimizer, const SyncReplicasOptions& options)
    : optimizer_(std::move(optimizer)), options_(options) {
  if (optimizer_ == nullptr) throw_error(Status::invalid_argument("SyncReplicas: of no optimizer"));
  if (options_.aggregate == 0) options_.aggregate = options_.replicas;
  const std::int64_t aggregate = options_.aggregate, replicas = options_.replicas, rank = options_.rank;
  if (aggregate < 1 || aggregate > replicas || rank < 0 || rank >= replicas) {
    throw_error(
        Status::invalid_argument(str_cat("SyncReplicas: aggregate ", aggregate, " and rank ", rank, " of ", replicas,
                                         " replicas: wanted 1 <= aggregate <= replicas, 0 <= rank < replicas")));
  }
}

const SyncReplicas::Built& SyncReplicas::built() const {
  if (built_ == nullptr) throw_error(Status::failed_precondition("SyncReplicas: call minimize first"));
  return *built_;
}

const Variable<std::int64_t>& SyncReplicas::global_step() const { return built().global_step; }
const Output<std::int64_t>& SyncReplicas::local_step() const { return built().local_step; }

Operation SyncReplicas::minimize(const AnyOutput& loss, const MinimizeOptions& options, const At& at) {
  if (built_ != nullptr) {
    throw_error(Status::failed_precondition("SyncReplicas: minimize was called already").with_location(at.where));
  }
  const std::vector<GradientAndVariable> gradients =
      optimizer_->compute_gradients(loss, options.variables, options.differentiation(), at.where);
  GraphStore& graph = *loss.graph();
  const Composite place(graph, at.where);
  auto built = std::make_shared<Built>();
  built->global_step = detail::shared_global_step(graph, options);
  std::optional<ScopeGuard> names(enter_name_scope(graph, "sync_replicas"));

  // The local step of this replica is kept on its own device, read before all else and written last.
  const AnyVariable local_step = detail::number_of_replica(loss, "local_step", options_.rank);
  built->local_step = Output<std::int64_t>::unchecked(local_step.read_edge());

  std::vector<detail::GatheredGradient> gathered;
  gathered.reserve(gradients.size());
  std::vector<Operation> given;
  given.reserve(gradients.size());
  for (const GradientAndVariable& each : gradients) {
    if (!each.gradient.exists()) continue;
    gathered.emplace_back(each, local_step.read_edge(), options_.rank);
    given.push_back(gathered.back().apply());
  }
  if (gathered.empty()) {
    throw_error(
        Status::invalid_argument("SyncReplicas: the loss depends on none of the variables").with_location(at.where));
  }

  std::vector<Built::Moved> moved;
  for (const Operation& update : detail::update_operations_of(loss, options)) {
    const std::optional<GradientAndVariable> by = detail::change_by(graph, update);
    if (by) {
      moved.push_back({detail::GatheredGradient(*by, local_step.read_edge(), options_.rank),
                       update.node().op->name == std::string_view(AssignAdd::name)});
    }
    given.push_back(by ? moved.back().change.apply() : update);
  }

  const AnyOutput barrier = [&] {
    const ScopeGuard there = built->enter_beside_step();
    return AnyOutput(build<TokenBarrier>(graph, {}, {.replicas = options_.replicas, .aggregate = options_.aggregate},
                                         {.name = "barrier"}));
  }();
  const Operation stepped = built->build_arrival(barrier, local_step, given, options_.rank);
  const ScopeGuard there = built->enter_beside_step();
  built->build_lead(barrier, gathered, moved, *optimizer_, options, at);
  built->build_end(barrier, options_.rank);
  built_ = std::move(built);
  if (!at.name.empty()) names.reset();
  return group(std::vector<Operation>{stepped}, at);
}

Operation SyncReplicas::Built::build_arrival(const AnyOutput& barrier, const AnyVariable& local,
                                             std::span<const Operation> given, std::int64_t rank) {
  GraphStore& graph = *barrier.graph();
  const auto wait_for = [&](const AnyOutput& step) {
    const ScopeGuard there = enter_beside_step();
    return AnyOutput(build<TokenBarrierWait>({barrier, step}, {.rank = rank}));
  };
  const Operation arrived = [&] {
    const ScopeGuard after = enter_control_dependencies(graph, given);
    const ScopeGuard there = enter_beside_step();
    return Operation(build<TokenBarrierArrive>({barrier, local.read_edge()}, {.rank = rank}));
  }();
  const AnyOutput next_step = [&] {
    const ScopeGuard after = enter_control_dependencies(graph, {&arrived, 1});
    return wait_for(local.read_edge());
  }();
  const Operation stepped = local.assign(next_step);
  const AnyOutput none = dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, -1), {});
  const AnyOutput first_step = wait_for(none);
  await_chief = first_step.operation();
  begin = local.assign(first_step, {.name = "begin"});
  return stepped;
}

void SyncReplicas::Built::build_lead(const AnyOutput& barrier, std::span<const detail::GatheredGradient> gathered,
                                     std::span<const Moved> moved, const Optimizer& optimizer,
                                     const MinimizeOptions& options, const At& at) {
  GraphStore& graph = *barrier.graph();
  const AnyVariable& step = global_step.any_variable();
  leader =
      Output<std::int64_t>::unchecked(dflow::detail::any_placeholder(graph, DType::int64, Shape{}, {.name = "leader"}));
  known =
      Output<std::int32_t>::unchecked(dflow::detail::any_placeholder(graph, DType::int32, {dynamic}, {.name = "left"}));
  has_heard =
      Output<bool>::unchecked(dflow::detail::any_placeholder(graph, DType::boolean, Shape{}, {.name = "has_heard"}));
  const BuiltNode collecting = build<TokenBarrierCollect>({barrier, leader, has_heard});
  collected = Output<std::int32_t>::unchecked(collecting.output(0));
  left = Output<std::int32_t>::unchecked(collecting.output(1));
  ranks = Output<std::int32_t>::unchecked(
      dflow::detail::any_placeholder(graph, DType::int32, {dynamic}, {.name = "ranks"}));
  const auto drop = [&](std::string which) {
    return Output<std::int32_t>::unchecked(build<TokenBarrierDropMissing>({barrier, leader}, {std::move(which)}));
  };
  missing = drop("none");
  dropped = drop("missing");
  dropped_lost = drop("lost");
  const AnyOutput now = step.read();
  std::vector<GradientAndVariable> means;
  means.reserve(gathered.size());
  std::vector<Operation> resets;
  resets.reserve(gathered.size());
  for (const detail::GatheredGradient& each : gathered) {
    means.push_back(each.take(ranks, now));
    resets.push_back(each.reset(now));
  }
  // A mean is taken also if it is not applied: its accumulator goes on to the next step.
  std::vector<Operation> updates;
  updates.reserve(means.size());
  for (const GradientAndVariable& mean : means) updates.push_back(detail::values_of(mean.gradient).operation());
  for (const Moved& each : moved) {
    const GradientAndVariable by = each.change.take(ranks, now);
    const ScopeGuard beside_it = enter_colocation(graph, by.variable.handle().operation());
    updates.push_back(each.is_added ? by.variable.assign_add(by.gradient.dense)
                                    : by.variable.assign_sub(by.gradient.dense));
    resets.push_back(each.change.reset(now));
  }
  // Replicas wait for the global step, so a skipped step has to move it as well.
  const Operation updated = [&] {
    updates.push_back(optimizer.apply_gradients(detail::changed(means, options), {}, {.where = at.where}));
    const ScopeGuard after = enter_control_dependencies(graph, updates);
    const AnyOutput one = dflow::detail::any_constant(graph, Tensor<std::int64_t>::full({}, 1), {});
    return step.assign_add(one);
  }();
  {
    const ScopeGuard after = enter_control_dependencies(graph, {&updated, 1});
    advance = build<TokenBarrierAdvance>({barrier, step.read(), leader}, {}, {.name = "advance"});
  }
  const ScopeGuard after = enter_control_dependencies(graph, resets);
  open = build<TokenBarrierOpen>({barrier, now, leader, known}, {}, {.name = "open"});
  const ScopeGuard when_open = enter_control_dependencies(graph, {&open, 1});
  opened = Output<std::int64_t>::unchecked(build<Identity>({now}));
  lead = detail::waits_of_tasks(graph);
  lead.emplace_back(build<TokenBarrierHold>({barrier, leader}, {.rank = -1}, {.name = "hold_lead"}));
}

void SyncReplicas::Built::build_end(const AnyOutput& barrier, std::int64_t rank) {
  leave = build<TokenBarrierLeave>({barrier}, {.rank = rank}, {.name = "leave"});
  stop = build<TokenBarrierLeave>({barrier}, {.rank = rank, .for_good = true}, {.name = "stop"});
  end_all =
      build<TokenBarrierLeave>({barrier}, {.rank = rank, .for_good = true, .ends_all = true}, {.name = "end_all"});
  const AnyOutput none = dflow::detail::any_constant(*barrier.graph(), Tensor<std::int64_t>::full({}, -1), {});
  hold = build<TokenBarrierHold>({barrier, none}, {.rank = rank}, {.name = "hold"});
  close_late = build<TokenBarrierClose>({barrier, leader}, {.reason = "late"});
  close_done = build<TokenBarrierClose>({barrier, leader}, {.reason = "done"});
  close_stopped = build<TokenBarrierClose>({barrier, leader}, {.reason = "stopped"});
  close_lost = build<TokenBarrierClose>({barrier, leader}, {.reason = "lost"});
}

void SyncReplicas::begin(Session& session, const std::stop_token& stop) const {
  const Built& nodes = built();
  session.run(RunOptions{.stop = stop}, {}, nodes.begin);
  auto place = std::make_unique<detail::Lease>(session, std::span(&nodes.hold, 1));
  const std::lock_guard lock(nodes.place_mutex);
  nodes.place = std::move(place);
}

void SyncReplicas::leave(Session& session, const RunOptions& options) const { end(session, options, built().leave); }

void SyncReplicas::end(Session& session, const RunOptions& options, const Operation& how) const {
  const Built& nodes = built();
  session.run(options, {}, how);
  const std::lock_guard lock(nodes.place_mutex);
  nodes.place = nullptr;
}

void SyncReplicas::lead(Session& session, const std::stop_token& stop, const std::function<void()>& save) const {
  const std::function<void(std::string_view)> say;
  const std::stop_token ends;
  lead({session, stop, save, say, ends});
}

void SyncReplicas::lead(const Leading& with) const {
  const auto& [session, stop, save, say, ends] = with;
  const Built& nodes = built();
  const Feed leader(nodes.leader, Tensor<std::int64_t>(static_cast<std::int64_t>(session.new_number())));
  const auto close = [&](const Operation& how) { session.run({leader}, how); };
  const detail::Lease place;
  // Two fetches, of which one is never taken: taking the last one would wait until the leader leads no more.
  const std::array<AnyOutput, 2> fed{nodes.leader, nodes.known};
  const std::array<AnyOutput, 2> fetched{nodes.opened, nodes.global_step.any_variable().read_edge()};
  PartialRun leads =
      session.partial_run_erased(RunOptions{.stop = place.ends.get_token()}, nullptr, fed, fetched, nodes.lead);
  leads.feed_erased({{nodes.leader, leader.tensor}, {nodes.known, nodes.remembered.get()}});
  leads.fetch(nodes.opened);
  nodes.has_ended_all = false;
  bool is_ours_to_close = true, has_heard = false;
  const Duration patience = options_.patience.value_or(options_.end_patience);
  try {
    for (;;) {
      try {
        const Feed heard(nodes.has_heard, Tensor<bool>(std::exchange(has_heard, false)));
        const auto [ranks, left] =
            session.run(RunOptions{.deadline = patience, .stop = stop}, {leader, heard}, nodes.collected, nodes.left);
        if (ranks.num_elements() > 0) session.run({leader, {nodes.ranks, ranks}}, nodes.advance);
        // A replica that leaves may have brought its share of this step before.
        const bool has_made_step = std::any_of(ranks.begin(), ranks.end(), [&, of = left](std::int32_t rank) {
          return std::find(of.begin(), of.end(), rank) != of.end();
        });
        if (save && (has_made_step || nodes.remembered.lacks(left))) save();
        nodes.remembered.set(left);
        has_heard = true;
      } catch (const Error& error) {
        const Code code = error.status().code();
        if (code == Code::cancelled && stop.stop_requested()) {
          if (!ends.stop_requested()) return close(nodes.close_lost);
          close(nodes.close_stopped);
          nodes.has_ended_all = true;
          return nodes.remembered.clear();
        }
        is_ours_to_close = code != Code::already_exists;  // then another leader leads
        if (code == Code::out_of_range) {
          if (save) save();
          nodes.remembered.set(detail::all_ranks(options_.replicas));
          close(nodes.close_done);
          nodes.has_ended_all = true;
          return nodes.remembered.clear();
        }
        if (code != Code::deadline_exceeded) throw;
        if (options_.patience && options_.late == LateReplicas::fail) {
          close(nodes.close_late);
          is_ours_to_close = false;
          throw;
        }
        if (options_.patience) session.run({leader}, nodes.dropped);
        if (nodes.is_finishing) session.run({leader}, nodes.dropped_lost);
        tell_missing(with, leader);
      }
    }
  } catch (...) {
    try {
      if (is_ours_to_close) close(nodes.close_lost);
    } catch (...) {  // the barrier's task is lost too; replicas that wait learn it from their own calls
    }
    throw;
  }
}

SupervisorOptions SyncReplicas::supervised(SupervisorOptions options) const {
  return detail::supervised_by(*this, std::move(options), built().stop, built().await_chief);
}

/// Says which replicas the step has waited for.
void SyncReplicas::tell_missing(const Leading& with, const Feed& leader) const {
  if (!with.say) return;
  const Tensor<std::int32_t> missing = with.session.run({leader}, built().missing);
  if (missing.num_elements() == 0) return;
  const std::vector<std::int32_t> ranks(missing.begin(), missing.end());
  with.say(str_cat("still waits for the gradients of replicas ", dflow::detail::ranks_text(ranks)));
}

void SyncReplicas::make_steps(Supervisor& supervisor, std::int64_t steps,
                              const std::function<bool(Session&, std::int64_t)>& body) const {
  const Built& nodes = built();
  std::int64_t end = steps;  // lower if this replica has less data
  const auto make_one = [&](Session& session) {
    const std::int64_t step = session.run(nodes.local_step).scalar();
    if (step >= end) return false;
    if (body(session, step)) return true;
    end = step;
    return false;
  };
  const auto end_with = [&](Session& session) {
    if (session.run(nodes.local_step).scalar() < end) return false;  // some steps were lost
    if (supervisor.is_chief() && end == steps) {
      supervisor.save_what_is_new(session);
    } else {
      leave(session, {.stop = supervisor.stop_token()});
    }
    return true;
  };
  for (bool has_ended = false; !has_ended && !supervisor.should_stop();) {
    while (!supervisor.should_stop() && supervisor.run(make_one)) {
    }
    if (supervisor.should_stop()) return;
    const detail::Flag finishing(nodes.is_finishing, supervisor.is_chief() && end < steps);
    has_ended = end == steps ? supervisor.run(end_with) : supervisor.wait_for_lead(end_with);
  }
}

/// The chief ends the training of all, and saves it. Another replica leaves. Both do so also before they have begun.
void SyncReplicas::stop_early(Supervisor& supervisor) const {
  const bool is_chief = supervisor.is_chief();
  if (is_chief) detail::unless_lost([&] { supervisor.wait_for_lead(); });
  if (is_chief && (built().has_ended_all.exchange(true) || options_.replicas == 1)) return;
  detail::unless_lost([&] {
    supervisor.run_stopped(options_.patience.value_or(options_.end_patience), [&](Session& session, Duration left) {
      end(session, {.deadline = left}, is_chief ? built().end_all : built().stop);
    });
  });
}

void SyncReplicas::train_until(Supervisor& supervisor, std::int64_t steps,
                               const std::function<bool(Session&, std::int64_t)>& body) const {
  const Built& nodes = built();
  nodes.has_left = nodes.has_ended_all = false;
  try {
    make_steps(supervisor, steps, body);
  } catch (const Error& error) {
    const Status& status = error.status();
    const bool has_ended = status.code() == Code::out_of_range && status.op() == TokenBarrierWait::name;
    if (!has_ended && !(status.code() == Code::cancelled && supervisor.should_stop())) throw;
    if (has_ended) supervisor.say(str_cat("this replica trains no more: ", status.message()));
  }
  if (supervisor.should_stop()) stop_early(supervisor);
  nodes.has_left = !supervisor.is_chief();
}

void SyncReplicas::finish(Supervisor& supervisor) const {
  const Built& nodes = built();
  if (nodes.has_left) return;
  try {
    const detail::Flag finishing(nodes.is_finishing, true);
    supervisor.wait_for_lead([&](Session& session) {
      leave(session, {.stop = supervisor.stop_token()});
      return true;
    });
  } catch (const Error& error) {
    if (error.status().code() != Code::cancelled || !supervisor.should_stop()) throw;
  }
  if (supervisor.should_stop()) stop_early(supervisor);
}

}  // namespace dflow::train
