#pragma once

#include <dflow/session/session.hpp>
#include <dflow/session/session_state.hpp>

#include <utility>

namespace dflow {

Session::Session(const Graph& graph, SessionOptions options) : Session(*graph.store(), std::move(options)) {}
Session::Session(const GraphStore& graph, SessionOptions options) {
  const auto owner =
      std::make_shared<Owner>(Owner{graph.shared_from_this(), std::make_shared<State>(graph, std::move(options))});
  state_ = std::shared_ptr<State>(owner, owner->state.get());
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Session::State& Session::state() const {
  if (state_ == nullptr) throw_error(Status::failed_precondition("the session was moved from"));
  return *state_;
}

std::shared_ptr<Session::State> Session::held() const {
  std::shared_ptr<State> kept = state_;
  if (kept == nullptr) throw_error(Status::failed_precondition("the session was moved from"));
  return kept;
}

const std::vector<std::shared_ptr<Device>>& Session::devices() const { return state().devices; }
const OpTable& Session::ops() const { return state().options.ops.ops(); }
const OpSet& Session::op_set() const { return state().options.ops; }
const GraphStore* Session::graph() const { return state().graph; }
std::uint64_t Session::new_number() const { return state().new_step_id(); }
std::string Session::placement_log() const {
  std::shared_ptr<const StepGraph> placed;
  {
    const std::lock_guard lock(state().log_mutex);
    placed = state().last_placed;
  }
  return placed == nullptr ? std::string() : placement_text(*placed, state().placement->devices());
}
std::string Session::device_of(const Operation& operation) const {
  State& of = state();
  if (!operation.is_of(of.graph)) {
    throw_error(Status::invalid_argument("device_of: the node is not one of the session's graph"));
  }
  if (of.placement == nullptr) {
    throw_error(Status::failed_precondition("device_of: a master in another process places this session's nodes"));
  }
  of.placement->extend(*of.graph);
  const std::size_t device = of.placement->device_of(operation.node_id());
  const std::span<const DeviceInfo> devices = of.placement->devices();
  return device < devices.size() ? devices[device].name : std::string();
}
std::vector<DeviceGraph> Session::device_graphs_of(const CompiledStep* step) {
  if (step == nullptr) throw_error(Status::failed_precondition("the prepared step was moved from"));
  std::vector<DeviceGraph> parts;
  parts.reserve(step->parts.size());
  for (const CompiledStep::Part& part : step->parts) {
    parts.push_back({part.device->name(), std::shared_ptr<const StepGraph>(part.plan, &part.plan->graph())});
  }
  return parts;
}
void Session::release_memory() {
  state().cache.release_idle_memory();
  for (const std::shared_ptr<Device>& device : state().devices) device->release_cached_memory();
}

std::shared_ptr<CompiledStep> Session::compile(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                               std::span<const Operation> targets,
                                               std::span<const Operation> more_targets) {
  if (more_targets.empty()) return held()->compile(feed_edges, edges, targets, {});
  std::vector<Operation> all(targets.begin(), targets.end());
  all.insert(all.end(), more_targets.begin(), more_targets.end());
  return held()->compile(feed_edges, edges, all, {});
}

void Session::run_compiled(State* state, CompiledStep* step, const RunOptions& options, RunMetadata* metadata,
                           std::span<AnyTensor> feed_tensors, std::span<AnyTensor> results) {
  if (state == nullptr) throw_error(Status::failed_precondition("the prepared step was moved from"));
  if (metadata != nullptr || options.trace) detail::begin_metadata(options, metadata);
  static const StepLimits none;
  if (!options.deadline && !options.stop.stop_possible()) [[likely]] {
    return state->run(*step, none, options, metadata, feed_tensors, results);
  }
  state->run(*step, state->limits_of(options), options, metadata, feed_tensors, results);
}

void Session::run_compiled_async(State* state, std::shared_ptr<CompiledStep> step, const RunOptions& options,
                                 RunMetadata* metadata, std::vector<AnyTensor> feeds, std::size_t num_results,
                                 AnyDone done) {
  if (state == nullptr)
    return detail::refuse(std::move(done), Status::failed_precondition("the prepared step was moved from"));
  state->run_async(std::move(step), options, metadata, std::move(feeds), num_results, std::move(done));
}

AnyPreparedStep Session::prepare_erased(std::span<const AnyOutput> feed_edges, std::span<const AnyOutput> edges,
                                        std::span<const Operation> targets) {
  return {state_, compile(feed_edges, edges, targets), feed_edges.size(), edges.size()};
}

namespace detail {

Status wrong_number_of(std::string_view what, std::size_t given, std::size_t wanted) {
  return Status::invalid_argument(str_cat("a prepared step takes ", wanted, " ", what, ", and is given ", given));
}

}  // namespace detail

void AnyPreparedStep::run(const RunOptions& options, RunMetadata* metadata, std::span<AnyTensor> feeds,
                          std::span<AnyTensor> results) const {
  if (step_ != nullptr && feeds.size() != num_feeds_) {
    throw_error(detail::wrong_number_of("tensors", feeds.size(), num_feeds_));
  }
  if (step_ != nullptr && results.size() != num_results_) {
    throw_error(detail::wrong_number_of("places for results", results.size(), num_results_));
  }
  Session::run_compiled(session_.get(), step_.get(), options, metadata, feeds, results);
}

void AnyPreparedStep::run_async(const RunOptions& options, RunMetadata* metadata, std::vector<AnyTensor> feeds,
                                Session::AnyDone done) const {
  if (step_ != nullptr && feeds.size() != num_feeds_) {
    return refuse_async(detail::wrong_number_of("tensors", feeds.size(), num_feeds_), std::move(done));
  }
  Session::run_compiled_async(session_.get(), step_, options, metadata, std::move(feeds), num_results_,
                              std::move(done));
}

void AnyPreparedStep::refuse_async(const Status& why, Session::AnyDone done) const {
  if (session_ == nullptr) return detail::refuse(std::move(done), why);
  session_->refuse_async(why, std::move(done));
}

void Session::run_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                         std::span<const AnyOutput> edges, std::span<const Operation> targets,
                         std::span<AnyTensor> results) {
  const std::shared_ptr<State> kept = held();
  detail::begin_metadata(options, metadata);
  if (results.size() != edges.size()) {
    throw_error(
        Status::invalid_argument(str_cat("room for ", results.size(), " results of ", edges.size(), " fetched edges")));
  }
  const StepLimits limits = kept->limits_of(options);
  std::vector<Feed> flat;
  feed_list = detail::flattened(feed_list, flat);
  const std::shared_ptr<CompiledStep> step = kept->compile(FedEdges(feed_list), edges, targets, limits);
  kept->run(*step, limits, options, metadata, FedTensors(feed_list), results);
}

void Session::run_async_erased(const RunOptions& options, RunMetadata* metadata, std::span<const Feed> feed_list,
                               std::span<const AnyOutput> edges, std::span<const Operation> targets, AnyDone done) {
  run_shared_async(state_, options, metadata, feed_list, edges, targets, std::move(done));
}

void Session::run_shared_async(const std::shared_ptr<State>& state, const RunOptions& options, RunMetadata* metadata,
                               std::span<const Feed> feed_list, std::span<const AnyOutput> edges,
                               std::span<const Operation> targets, AnyDone done) {
  if (state == nullptr)
    return detail::refuse(std::move(done), Status::failed_precondition("the session was moved from"));
  state->run_async(options, metadata, feed_list, edges, targets, std::move(done));
}

}  // namespace dflow
