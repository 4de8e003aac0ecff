#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/step_table.hpp>

#include <utility>

namespace dflow::net {

DFLOW_INLINE TensorSource::~TensorSource() = default;

// ---- StepRendezvous ----

namespace detail {

DFLOW_INLINE std::string_view task_of(std::string_view device) noexcept {
  return device.substr(0, device.find("/device:"));
}

}  // namespace detail

DFLOW_INLINE Status StepRendezvous::send(const RendezvousKey& key, AnyTensor tensor, bool is_dead,
                                         const SendArgs& args) {
  return local_.send(key, std::move(tensor), is_dead, args);
}

/// What comes from another task is wanted here like anything else, and sent here by the one who brings it: so a copy
/// into another memory, and a receive that is given up, are the local rendezvous's business.
DFLOW_INLINE void StepRendezvous::recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) {
  const std::string_view from = detail::task_of(key.source_device());
  const bool is_remote = from != task_;
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

DFLOW_INLINE StepTable::Entry& StepTable::entry_of(std::uint64_t step) {
  Entry& entry = steps_[step];
  if (entry.rendezvous == nullptr) {
    entry.rendezvous = std::make_shared<StepRendezvous>(step, options_.task, options_.source);
    ++num_awaited_;
  }
  return entry;
}

DFLOW_INLINE void StepTable::drop_if_over(std::uint64_t step, std::shared_ptr<StepRendezvous>& dropped) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.is_over()) return;
  if (!found->second.has_begun) --num_awaited_;
  dropped = std::move(found->second.rendezvous);  // destroyed without the lock
  steps_.erase(found);
}

DFLOW_INLINE std::shared_ptr<StepRendezvous> StepTable::begin(std::uint64_t step, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entry_of(step);
  if (!entry.has_begun) --num_awaited_;
  entry.has_begun = true;
  entry.owner = owner;
  ++entry.num_running;
  StepRendezvous* const rendezvous = entry.rendezvous.get();
  return {rendezvous, [self = shared_from_this(), keep = entry.rendezvous, step](StepRendezvous*) { self->end(step); }};
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
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    const std::lock_guard lock(mutex_);
    if (num_awaited_ < options_.max_awaited || steps_.contains(step)) {
      Entry& entry = entry_of(step);
      ++entry.num_served;
      rendezvous = entry.rendezvous;
    }
  }
  if (rendezvous == nullptr) {
    return done(
        resource_exhausted(str_cat("more than ", options_.max_awaited, " steps are asked for and have not begun")),
        AnyTensor(), false);
  }
  rendezvous->serve(
      key, std::move(cancellation),
      [self = shared_from_this(), step, done = std::move(done)](Status status, AnyTensor tensor, bool is_dead) mutable {
        done(std::move(status), std::move(tensor), is_dead);
        self->finish_serving(step);
      });
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

DFLOW_INLINE void StepTable::cancel_all_of(const std::string& owner, const Status& why) {
  std::vector<std::uint64_t> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, entry] : steps_) {
      if (entry.has_begun && entry.owner == owner) steps.push_back(step);
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

}  // namespace dflow::net
