#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/step_table.hpp>

#include <limits>
#include <utility>

namespace dflow::net {

DFLOW_INLINE TensorSource::~TensorSource() = default;

namespace detail {

DFLOW_INLINE std::string_view task_of(std::string_view device) noexcept {
  return device.substr(0, device.find("/device:"));
}

}  // namespace detail

// ---- GatheredPushes ----

DFLOW_INLINE GatheredPushes*& GatheredPushes::latest() noexcept {
  static constinit thread_local GatheredPushes* latest = nullptr;
  return latest;
}

DFLOW_INLINE GatheredPushes::GatheredPushes(std::uint64_t step, std::string_view task) noexcept
    : step_(step), task_(task), before_(std::exchange(latest(), this)) {}

DFLOW_INLINE GatheredPushes::~GatheredPushes() { latest() = before_; }

DFLOW_INLINE GatheredPushes* GatheredPushes::find(std::uint64_t step, std::string_view task) noexcept {
  GatheredPushes* const found = latest();
  return found != nullptr && found->step_ == step && found->task_ == task ? found : nullptr;
}

DFLOW_INLINE bool GatheredPushes::add(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead) {
  if (!is_dead && tensor.dtype() == DType::string) return false;  // its size is not known
  if (!is_dead) detail::check_travels(tensor);
  const std::size_t bytes = key.text().size() + (is_dead ? 0 : tensor.bytes());
  if (bytes > max_bytes - bytes_) return false;
  tensors_.push_back({key.text(), is_dead, tensor});
  bytes_ += bytes;
  return true;
}

// ---- StepRendezvous ----

DFLOW_INLINE Status StepRendezvous::send(const RendezvousKey& key, AnyTensor tensor, bool is_dead,
                                         const SendArgs& args) {
  if (!args.pushed || detail::task_of(key.destination_device()) == task_) {
    return local_.send(key, std::move(tensor), is_dead, args);
  }
  if (args.memory == nullptr || is_dead) {
    push(key, tensor, is_dead);
    return {};
  }
  // Through the local rendezvous, which brings it into host memory.
  if (Status status = local_.send(key, std::move(tensor), is_dead, args); !status.ok()) return status;
  local_.recv_async(key, [weak = weak_from_this(), key](Status copied, const AnyTensor& on_host, bool dead) {
    const std::shared_ptr<StepRendezvous> self = weak.lock();
    if (self == nullptr) return;
    if (!copied.ok()) return self->abort(std::move(copied));
    self->push(key, on_host, dead);
  });
  return {};
}

DFLOW_INLINE void StepRendezvous::push_on(PushedTensor pushed) {
  push(RendezvousKey::parse(pushed.key).value(), pushed.tensor, pushed.is_dead);
}

DFLOW_INLINE void StepRendezvous::push(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead) {
  const std::string_view task = detail::task_of(key.destination_device());
  GatheredPushes* const gathered = GatheredPushes::find(step_, task);
  if (gathered != nullptr && gathered->add(key, tensor, is_dead)) return;
  source_->push(std::string(task), step_, key, tensor, is_dead, [weak = weak_from_this()](Status status) {
    if (const std::shared_ptr<StepRendezvous> self = weak.lock()) self->abort(std::move(status));
  });
}

/// What comes from another task is wanted here like anything else, and sent here by the one who brings it: so a copy
/// into another memory, and a receive that is given up, are the local rendezvous's business.
DFLOW_INLINE void StepRendezvous::recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) {
  const std::string_view from = detail::task_of(key.source_device());
  const bool is_remote = from != task_ && !args.pushed;
  local_.recv_async(key, args, std::move(done));
  if (!is_remote) return;
  RecvArgs on_host = args;
  on_host.memory = nullptr;
  source_->receive(std::string(from), step_, key, on_host, ending_.token(),
                   [weak = weak_from_this(), key](Status status, AnyTensor tensor, bool is_dead) {
                     const std::shared_ptr<StepRendezvous> self = weak.lock();
                     if (self == nullptr) return;
                     if (status.ok()) status = self->local_.send(key, std::move(tensor), is_dead);
                     if (!status.ok()) self->abort(std::move(status));
                   });
}

DFLOW_INLINE void StepRendezvous::abort(Status status) {
  const std::shared_ptr<StepRendezvous> keep = weak_from_this().lock();
  status = status.with_task(task_);  // those who wait in other tasks are to know whose error it is
  local_.abort(status);
  ending_.cancel(std::move(status));
}

DFLOW_INLINE void StepRendezvous::serve(const RendezvousKey& key, CancellationToken cancellation, RecvDone done) {
  RecvArgs args;
  args.cancellation = std::move(cancellation);
  local_.recv_async(key, args, std::move(done));
}

// ---- StepTable ----

DFLOW_INLINE StepTable::Entry& StepTable::entry_of(std::uint64_t step, std::shared_ptr<StepRendezvous>& forgotten) {
  Entry& entry = steps_[step];
  if (entry.rendezvous != nullptr) return entry;
  entry.rendezvous = std::make_shared<StepRendezvous>(step, options_.task, options_.source);
  ++num_awaited_;
  awaited_.push_back(step);
  // One at a time, as they come: most of what is in front has begun, or is over.
  while (num_awaited_ > options_.max_awaited || awaited_.size() > 2 * options_.max_awaited) {
    const auto oldest = steps_.find(awaited_.front());
    awaited_.pop_front();
    if (oldest == steps_.end() || oldest->second.has_begun || oldest->first == step) continue;
    forgotten = std::move(oldest->second.rendezvous);
    steps_.erase(oldest);
    --num_awaited_;
    break;
  }
  return steps_.find(step)->second;
}

DFLOW_INLINE void StepTable::drop_if_over(std::uint64_t step, std::shared_ptr<StepRendezvous>& dropped) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.is_over()) return;
  if (!found->second.has_begun) --num_awaited_;
  dropped = std::move(found->second.rendezvous);  // destroyed without the lock
  steps_.erase(found);
}

DFLOW_INLINE std::shared_ptr<StepRendezvous> StepTable::begin(std::uint64_t step, const std::string& owner) {
  std::shared_ptr<StepRendezvous> begun, forgotten;
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(step, forgotten);
    if (!entry.has_begun) --num_awaited_;
    entry.has_begun = true;
    entry.owner = owner;
    ++entry.num_running;
    begun = {entry.rendezvous.get(),
             [self = shared_from_this(), keep = entry.rendezvous, step](StepRendezvous*) { self->end(step); }};
    if (!refused_.empty()) {
      const auto found = refused_.find(step);
      if (found != refused_.end()) refused = found->second;
    }
  }
  if (!refused.ok()) begun->abort(std::move(refused));
  return begun;
}

DFLOW_INLINE void StepTable::end(std::uint64_t step) {
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  --found->second.num_running;
  drop_if_over(step, dropped);
}

DFLOW_INLINE void StepTable::finish_serving(std::uint64_t step) {
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  --found->second.num_served;
  drop_if_over(step, dropped);
}

DFLOW_INLINE void StepTable::serve(std::uint64_t step, const RendezvousKey& key, CancellationToken cancellation,
                                   Rendezvous::RecvDone done) {
  std::shared_ptr<StepRendezvous> rendezvous, forgotten;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(step, forgotten);
    ++entry.num_served;
    rendezvous = entry.rendezvous;
  }
  if (forgotten != nullptr) forgotten->abort(resource_exhausted("too many steps are asked for that have not begun"));
  rendezvous->serve(
      key, std::move(cancellation),
      [self = shared_from_this(), step, done = std::move(done)](Status status, AnyTensor tensor, bool is_dead) mutable {
        done(std::move(status), std::move(tensor), is_dead);
        self->finish_serving(step);
      });
}

DFLOW_INLINE Status StepTable::take(std::uint64_t step, const std::string& owner, const RendezvousKey& key,
                                    AnyTensor tensor, bool is_dead) {
  std::shared_ptr<StepRendezvous> rendezvous, forgotten;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(step, forgotten);
    if (!entry.has_begun) entry.owner = owner;
    rendezvous = entry.rendezvous;
  }
  if (forgotten != nullptr) forgotten->abort(resource_exhausted("too many steps are asked for that have not begun"));
  Status status = rendezvous->take(key, std::move(tensor), is_dead);
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  drop_if_over(step, dropped);
  return status;
}

DFLOW_INLINE void StepTable::cancel(std::uint64_t step, const Status& why) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(step);
    if (found == steps_.end()) return;
    rendezvous = found->second.rendezvous;
  }
  rendezvous->abort(why);
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  drop_if_over(step, dropped);
}

DFLOW_INLINE void StepTable::refuse(std::uint64_t step, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(step);
    if ((found == steps_.end() || !found->second.has_begun) && refused_.try_emplace(step, why).second) {
      refused_in_order_.push_back(step);
      if (refused_in_order_.size() > options_.max_refused) {
        refused_.erase(refused_in_order_.front());
        refused_in_order_.pop_front();
      }
    }
  }
  cancel(step, why);
}

DFLOW_INLINE void StepTable::cancel_waits_for(const std::string& task, std::uint64_t incarnation, const Status& why) {
  std::vector<std::uint64_t> steps;
  for (const Wait& wait : waits(std::numeric_limits<std::size_t>::max())) {
    const bool is_from_there =
        wait.key.source_incarnation() == incarnation && detail::task_of(wait.key.source_device()) == task;
    if (is_from_there && (steps.empty() || steps.back() != wait.step)) steps.push_back(wait.step);
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

DFLOW_INLINE void StepTable::cancel_all_of(const std::string& owner, const Status& why) {
  std::vector<std::uint64_t> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, entry] : steps_) {
      if (entry.owner == owner) steps.push_back(step);
    }
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

DFLOW_INLINE void StepTable::cancel_all(const Status& why) {
  std::vector<std::uint64_t> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, entry] : steps_) steps.push_back(step);
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

DFLOW_INLINE std::size_t StepTable::size() const {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

DFLOW_INLINE std::vector<StepTable::Wait> StepTable::waits(std::size_t max) const {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<StepRendezvous>>> steps;
  {
    const std::lock_guard lock(mutex_);
    steps.reserve(steps_.size());
    for (const auto& [step, entry] : steps_) steps.emplace_back(step, entry.rendezvous);
  }
  std::vector<Wait> waits;
  for (const auto& [step, rendezvous] : steps) {
    if (waits.size() == max) break;
    for (RendezvousKey& key : rendezvous->wanted(max - waits.size())) waits.push_back({step, std::move(key)});
  }
  return waits;
}

}  // namespace dflow::net
