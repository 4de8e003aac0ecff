#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/tasks/step_table.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace dflow::net {

TensorSource::~TensorSource() = default;

namespace detail {

std::string_view task_of(std::string_view device) noexcept { return device.substr(0, device.find("/device:")); }

}  // namespace detail

// ---- GatheredPushes ----

GatheredPushes*& GatheredPushes::latest() noexcept {
  static constinit thread_local GatheredPushes* latest = nullptr;
  return latest;
}

GatheredPushes::GatheredPushes(std::uint64_t step, std::string_view task) noexcept
    : step_(step), task_(task), before_(std::exchange(latest(), this)) {}

GatheredPushes::~GatheredPushes() { latest() = before_; }

GatheredPushes* GatheredPushes::find(std::uint64_t step, std::string_view task) noexcept {
  GatheredPushes* const found = latest();
  return found != nullptr && found->step_ == step && found->task_ == task ? found : nullptr;
}

bool GatheredPushes::add(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead) {
  if (!is_dead && tensor.dtype() == DType::string) return false;  // its size is not known
  if (!is_dead) detail::check_travels(tensor);
  const std::size_t bytes = key.text().size() + (is_dead ? 0 : tensor.bytes());
  if (bytes > max_bytes - bytes_) return false;
  tensors_.push_back({key.text(), is_dead, tensor});
  bytes_ += bytes;
  return true;
}

// ---- StepRendezvous ----

Status StepRendezvous::send(const RendezvousKey& key, AnyTensor tensor, bool is_dead, const SendArgs& args) {
  if (!args.pushed || detail::task_of(key.destination_device()) == *task_) {
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
    try {
      self->push(key, on_host, dead);
    } catch (...) {
      self->abort(status_of_current_exception());
    }
  });
  return {};
}

void StepRendezvous::push_on(PushedTensor pushed) {
  push(RendezvousKey::parse(pushed.key).value(), pushed.tensor, pushed.is_dead);
}

void StepRendezvous::push(const RendezvousKey& key, const AnyTensor& tensor, bool is_dead) {
  const std::string_view task = detail::task_of(key.destination_device());
  GatheredPushes* const gathered = GatheredPushes::find(step_, task);
  if (gathered != nullptr && gathered->add(key, tensor, is_dead)) return;
  source_->push(
      std::string(task), step_, key, tensor, is_dead, [weak = weak_from_this()] { return !weak.expired(); },
      [weak = weak_from_this()](Status status) {
        if (const std::shared_ptr<StepRendezvous> self = weak.lock()) self->abort(std::move(status));
      });
}

/// A tensor of another task is wanted here like any other, and the task that brings it sends it here. The local
/// rendezvous therefore takes care of a copy into another memory, and of a receive that is given up.
void StepRendezvous::recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) {
  const std::string_view from = detail::task_of(key.source_device());
  const bool is_remote = from != *task_ && !args.pushed;
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

void StepRendezvous::abort(Status status) {
  const std::shared_ptr<StepRendezvous> keep = weak_from_this().lock();
  status = status.with_task(*task_);  // tells waiting tasks where the error comes from
  local_.abort(status);
  ending_.cancel(std::move(status));
}

void StepRendezvous::serve(const RendezvousKey& key, CancellationToken cancellation, RecvDone done) {
  RecvArgs args;
  args.cancellation = std::move(cancellation);
  local_.recv_async(key, args, std::move(done));
}

// ---- StepTable ----

namespace detail {

std::uint64_t waiting_bytes(const RendezvousKey& key, const AnyTensor& tensor) {
  constexpr std::uint64_t per_tensor = 512;
  std::uint64_t bytes = per_tensor + key.text().size();
  if (!tensor.is_initialized()) return bytes;
  bytes += tensor.bytes();
  if (tensor.dtype() == DType::string) {
    for (const std::string& text : tensor.span<std::string>()) bytes += text.size();
  }
  return bytes;
}

}  // namespace detail

StepTable::Entry& StepTable::entry_of(std::uint64_t step, Displaced& displaced) {
  if (const auto found = steps_.find(step); found != steps_.end()) return found->second;
  Entry made;
  made.rendezvous = std::make_shared<StepRendezvous>(step, task_, options_.source);
  made.number = next_number_->load();
  awaited_.push_back({step, made.number});  // of no step, if there is no memory for more
  Entry& entry = steps_.emplace(step, std::move(made)).first->second;
  next_number_->fetch_add(1);
  ++num_awaited_;
  limit_awaited(entry.number, displaced);
  return entry;
}

StepTable::Steps::iterator StepTable::find_awaited(const Awaited& awaited) {
  const auto found = steps_.find(awaited.step);
  if (found == steps_.end() || found->second.has_begun || found->second.number != awaited.number) return steps_.end();
  return found;
}

void StepTable::limit_awaited(std::uint64_t newest, Displaced& displaced) {
  while (num_awaited_ > options_.max_awaited && awaited_.front().number != newest) {
    const auto oldest = find_awaited(awaited_.front());
    awaited_.pop_front();
    if (oldest != steps_.end()) displace(oldest, displaced);
  }
  // The list mostly has steps that have begun since, so it is seldom cleaned.
  if (awaited_.size() <= 2 * options_.max_awaited) return;
  std::erase_if(awaited_, [&](const Awaited& awaited) { return find_awaited(awaited) == steps_.end(); });
}

void StepTable::displace(Steps::iterator step, Displaced& displaced) {
  displaced.push_back(step->second.rendezvous);
  note_end(step->first, Status::resource_exhausted("too much has come for steps that have not begun"));
  forget_early(step->second);
  --num_awaited_;
  steps_.erase(step);
}

void StepTable::abort(const Displaced& displaced) {
  for (const std::shared_ptr<StepRendezvous>& rendezvous : displaced) {
    rendezvous->abort(Status::resource_exhausted("too much has come for steps that have not begun"));
  }
}

Status StepTable::ended_by(std::uint64_t step) const {
  const auto found = ended_.find(step);
  return found == ended_.end() ? Status() : found->second;
}

namespace detail {

/// The part of an end's error that is kept for late requests: other tasks may have said more of it.
Status brief_end(const Status& why) {
  constexpr std::size_t max_bytes = 512;
  const auto cut = [](std::string_view text) { return std::string(text.substr(0, max_bytes)); };
  if (why.ok()) return why;
  return Status(why.code(), cut(why.message())).with_node(cut(why.op()), cut(why.node())).with_task(cut(why.task()));
}

}  // namespace detail

void StepTable::note_end(std::uint64_t step, const Status& why) {
  if (ended_.contains(step)) return;
  Status brief = detail::brief_end(why);
  const auto noted = ended_.emplace(step, std::move(brief)).first;
  try {
    ended_in_order_.push_back(step);
  } catch (...) {
    ended_.erase(noted);
    throw;
  }
  if (ended_in_order_.size() <= options_.max_ended) return;
  ended_.erase(ended_in_order_.front());
  ended_in_order_.pop_front();
}

void StepTable::count_early(std::uint64_t step, Entry& entry, const std::string& sender, std::uint64_t bytes) {
  EarlySender& early = early_[sender];
  const auto [sent, is_new] = early.sent.try_emplace(entry.number);
  if (is_new) {
    early.name = sender;
    sent->second.step = step;
    entry.early.push_back(&early);
  }
  sent->second.bytes += bytes;
  early.bytes += bytes;
}

/// Takes time that depends only on the number of tensors that this sender has sent.
void StepTable::limit_early(const std::string& sender, Displaced& displaced) {
  for (;;) {
    const auto early = early_.find(sender);
    if (early == early_.end() || early->second.bytes <= options_.max_early_bytes) return;
    displace(steps_.find(early->second.sent.begin()->second.step), displaced);
  }
}

void StepTable::forget_early(Entry& entry) {
  for (EarlySender* const early : entry.early) {
    const auto sent = early->sent.find(entry.number);
    early->bytes -= sent->second.bytes;
    early->sent.erase(sent);
    if (early->sent.empty()) early_.erase(early_.find(early->name));
  }
  entry.early.clear();
}

void StepTable::drop_if_over(std::uint64_t step, std::shared_ptr<StepRendezvous>& dropped) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.is_over()) return;
  if (!found->second.has_begun) --num_awaited_;
  forget_early(found->second);
  dropped = std::move(found->second.rendezvous);  // destroyed without the lock
  steps_.erase(found);
}

std::shared_ptr<StepRendezvous> StepTable::begin(std::uint64_t step, const std::string& owner) {
  std::shared_ptr<StepRendezvous> rendezvous;
  Displaced displaced;
  Status ended;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(step, displaced);
    entry.owner = owner;
    if (!entry.has_begun) --num_awaited_;
    entry.has_begun = true;
    forget_early(entry);
    rendezvous = entry.rendezvous;
    ++entry.num_running;
    if (!ended_.empty()) ended = ended_by(step);
  }
  // Without the mutex: if there is no memory for the pointer, its deleter is called at once.
  StepRendezvous* const same = rendezvous.get();
  std::shared_ptr<StepRendezvous> begun(
      same, [self = shared_from_this(), keep = std::move(rendezvous), step](StepRendezvous*) { self->end(step); });
  abort(displaced);
  if (!ended.ok()) begun->abort(std::move(ended));
  return begun;
}

/// If there is no memory to note the reason, late requests do not hear of it.
void StepTable::end(std::uint64_t step) noexcept {
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  if (--found->second.num_running == 0) {
    if (const Status why = found->second.rendezvous->end(); !why.ok()) detail::tell([&] { note_end(step, why); });
  }
  drop_if_over(step, dropped);
}

/// The step's entry may be another one by now.
void StepTable::finish_serving(std::uint64_t step, std::uint64_t number) {
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find(step);
  if (found == steps_.end() || found->second.number != number) return;
  --found->second.num_served;
  drop_if_over(step, dropped);
}

void StepTable::serve(std::uint64_t step, const RendezvousKey& key, CancellationToken cancellation,
                      Rendezvous::RecvDone done) {
  std::shared_ptr<StepRendezvous> rendezvous;
  std::uint64_t number = 0;
  Displaced displaced;
  Status ended;
  {
    const std::lock_guard lock(mutex_);
    ended = ended_by(step);
    if (ended.ok()) {
      Entry& entry = entry_of(step, displaced);
      number = entry.number;
      ++entry.num_served;
      rendezvous = entry.rendezvous;
    }
  }
  if (!ended.ok()) return done(std::move(ended), {}, false);
  abort(displaced);
  // However it ends, also by an exception.
  struct Served {
    std::shared_ptr<StepTable> table;
    std::uint64_t step, number;
    Served(std::shared_ptr<StepTable> its_table, std::uint64_t its_step, std::uint64_t its_number) noexcept
        : table(std::move(its_table)), step(its_step), number(its_number) {}
    Served(Served&&) noexcept = default;
    Served& operator=(Served&&) = delete;
    ~Served() {
      if (table != nullptr) table->finish_serving(step, number);
    }
  };
  rendezvous->serve(key, std::move(cancellation),
                    [served = Served(shared_from_this(), step, number), done = std::move(done)](
                        Status status, AnyTensor tensor, bool is_dead) mutable {
                      const Served now = std::move(served);  // when `done` has returned
                      done(std::move(status), std::move(tensor), is_dead);
                    });
}

/// The step itself may be the one that is ended when too many tensors wait.
Status StepTable::take(std::uint64_t step, const std::string& owner, const RendezvousKey& key, AnyTensor tensor,
                       bool is_dead) {
  std::shared_ptr<StepRendezvous> rendezvous;
  Displaced displaced;
  {
    const std::lock_guard lock(mutex_);
    if (Status ended = ended_by(step); !ended.ok()) return ended;
    Entry& entry = entry_of(step, displaced);
    rendezvous = entry.rendezvous;
    if (!entry.has_begun) {
      entry.owner = owner;
      count_early(step, entry, owner, detail::waiting_bytes(key, tensor));
      limit_early(owner, displaced);
    }
  }
  abort(displaced);
  Status status = rendezvous->take(key, std::move(tensor), is_dead);
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  drop_if_over(step, dropped);
  return status;
}

void StepTable::cancel(std::uint64_t step, const Status& why) {
  std::shared_ptr<StepRendezvous> rendezvous;
  {
    const std::lock_guard lock(mutex_);
    note_end(step, why);
    const auto found = steps_.find(step);
    if (found == steps_.end()) return;
    rendezvous = found->second.rendezvous;
  }
  rendezvous->abort(why);
  std::shared_ptr<StepRendezvous> dropped;
  const std::lock_guard lock(mutex_);
  drop_if_over(step, dropped);
}

void StepTable::cancel_waits_for(const std::string& task, std::uint64_t incarnation, std::uint64_t before,
                                 const Status& why) {
  std::vector<std::uint64_t> steps;
  for (const Wait& wait : waits(std::numeric_limits<std::size_t>::max(), before)) {
    const bool is_from_there =
        wait.key.source_incarnation() == incarnation && detail::task_of(wait.key.source_device()) == task;
    if (is_from_there && (steps.empty() || steps.back() != wait.step)) steps.push_back(wait.step);
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

void StepTable::cancel_all_of(const std::string& owner, const Status& why) {
  std::vector<std::uint64_t> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, entry] : steps_) {
      if (entry.owner == owner) steps.push_back(step);
    }
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

void StepTable::cancel_all(const Status& why) {
  std::vector<std::uint64_t> steps;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [step, entry] : steps_) steps.push_back(step);
  }
  for (const std::uint64_t step : steps) cancel(step, why);
}

std::size_t StepTable::size() const {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

std::size_t StepTable::num_waits() const {
  std::size_t count = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [step, entry] : steps_) count += entry.rendezvous->num_wanted();
  return count;
}

std::vector<StepTable::Wait> StepTable::waits(std::size_t max) const {
  return waits(max, std::numeric_limits<std::uint64_t>::max());
}

std::vector<StepTable::Wait> StepTable::waits(std::size_t max, std::uint64_t before) const {
  std::vector<std::pair<std::uint64_t, std::shared_ptr<StepRendezvous>>> steps;
  {
    const std::lock_guard lock(mutex_);
    steps.reserve(steps_.size());
    for (const auto& [step, entry] : steps_) {
      if (entry.number < before) steps.emplace_back(step, entry.rendezvous);
    }
  }
  std::vector<Wait> waits;
  for (const auto& [step, rendezvous] : steps) {
    if (waits.size() == max) break;
    for (RendezvousKey& key : rendezvous->wanted(max - waits.size())) waits.push_back({step, std::move(key)});
  }
  return waits;
}

}  // namespace dflow::net
