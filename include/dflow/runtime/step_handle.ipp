#pragma once

#include <dflow/runtime/local_rendezvous.hpp>
#include <dflow/runtime/step_handle.hpp>

#include <thread>
#include <utility>

namespace dflow {

StepPart::~StepPart() = default;

// ---- LocalPart ----

/// The end of a part, from the end of its last kernel on. A device that throws drops the completion on the way. The
/// drop must not end the part before the exception is known.
struct LocalPart::Ending {
  void operator()(Status late) {
    if (Completion::was_dropped(late) && asker == std::this_thread::get_id()) {
      was_dropped = true;
      return;
    }
    finish(std::move(late));
  }
  void finish(Status late) {
    Done finished;
    {
      const std::lock_guard lock(mutex);
      finished = std::exchange(done, nullptr);
      if (!status.ok()) late = status;
    }
    if (finished) finished(std::move(late));
  }
  /// The first error counts.
  void note(const Status& error) {
    const std::lock_guard lock(mutex);
    if (status.ok()) status = error;
  }

  std::mutex mutex;  ///< guards the next two members
  Done done;
  Status status;
  std::atomic<std::thread::id> asker;  ///< the thread that is asking the device for the end
  bool was_dropped = false;
};

void LocalPart::start(StepHandle& handle, Done done) {
  ending_ = std::make_shared<Ending>();
  ending_->done = std::move(done);
  StepContext& context = step_->context();
  context.step_id = handle.id();
  context.rendezvous = &handle.rendezvous();
  context.cancellation = handle.cancellation();
  context.receive_cancellation = handle.receive_cancellation();
  if (within_ == nullptr) device_step_ = device_.begin_step();
  context.device_step = device_step();
  step_->set_stats(handle.stats());
  step_->set_on_error([&handle](const Status& status) { handle.cancel(status); });
  step_->start(queue_, [this, &handle](const Status& status) {
    // Work that its kernels issued may still be under way. The first error counts, not the errors that follow from it.
    if (!status.ok()) handle.cancel(status);
    end(status);
  });
  std::vector<LateFeed> early;
  bool is_cancelled = false;
  {
    const std::lock_guard lock(mutex_);
    has_started_ = true;
    is_cancelled = is_cancelled_;
    early.swap(early_);
  }
  for (LateFeed& feed : early) step_->feed_late(feed.index, std::move(feed.tensor));
  if (is_cancelled) end_feeds();
}

void LocalPart::end(const Status& status) {
  // The part may be gone as soon as the completion has been called.
  const std::shared_ptr<Ending> ending = ending_;
  if (within_ != nullptr) return ending->finish(status);
  ending->note(status);
  ending->asker = std::this_thread::get_id();
  try {
    device_.end_step_async(device_step_.get(), [ending](Status late) { (*ending)(std::move(late)); });
  } catch (...) {
    // If the device stored the completion elsewhere before it threw, the part ends when it is called, with this
    // status.
    ending->note(status_of_current_exception());
  }
  if (ending->was_dropped) return ending->finish(Completion::dropped());
  ending->asker = std::thread::id();
}

void LocalPart::feed_late(std::size_t i, AnyTensor tensor) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_started_) {
      early_.push_back({i, std::move(tensor)});
      return;
    }
  }
  step_->feed_late(i, std::move(tensor));
}

void LocalPart::cancel(const Status&) {
  if (const std::lock_guard lock(mutex_); is_cancelled_ = true, !has_started_) return;
  end_feeds();
}

/// Kernels of the part see the step's token and rendezvous; this ends the feeds that nobody will feed any more.
void LocalPart::end_feeds() {
  if (step_->plan().streams()) step_->give_up_feeds();
}

// ---- StepHandle ----

StepHandle::StepHandle(Options options) : options_(std::move(options)), rendezvous_(options_.rendezvous) {
  const std::shared_ptr<StepHandle>& outer = options_.outer;
  if (outer != nullptr && rendezvous_ == nullptr) rendezvous_ = outer->rendezvous_;
  if (outer != nullptr && options_.id == 0) options_.id = outer->id();
  if (rendezvous_ == nullptr) rendezvous_ = std::make_shared<LocalRendezvous>();
  if (options_.trace && options_.clock != nullptr && outer == nullptr) stats_.emplace(options_.id, *options_.clock);
}

StepHandle::~StepHandle() = default;

void StepHandle::send_from_client(ClientEdge edge, AnyTensor tensor) {
  Send send{std::move(edge), std::move(tensor)};
  {
    const std::lock_guard lock(mutex_);
    if (!has_begun_) return sends_.push_back(std::move(send));
  }
  const Hold hold(*this);
  if (!hold) return;
  try {
    this->send(send);
  } catch (...) {
    cancel(status_of_current_exception());
  }
}

void StepHandle::send(Send& send) {
  throw_if_error(rendezvous_->send(send.edge.key, std::move(send.tensor), false, {.pushed = send.edge.pushed}));
}

void StepHandle::receive_at_client(ClientEdge edge, UniqueFunction<void(AnyTensor)> received,
                                   UniqueFunction<Status()> dead) {
  Receive receive{std::move(edge), std::move(received), std::move(dead)};
  {
    const std::lock_guard lock(mutex_);
    if (!has_begun_) return receives_.push_back(std::move(receive));
  }
  if (enter()) this->receive(receive);
}

bool StepHandle::enter() noexcept {
  std::int64_t count = outstanding_.load(std::memory_order_relaxed);
  while (count != 0) {
    if (outstanding_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void StepHandle::leave() {
  if (outstanding_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::shared_ptr<StepHandle> keep = shared_from_this();
  disarm();
  // A thread on its way out of a part, or a silent part, keeps this, but no longer the plans and devices of the step.
  parts_.clear();
  Status outcome;
  {
    const std::lock_guard lock(mutex_);
    outcome = error_;
  }
  Done done = std::exchange(done_, nullptr);
  done(outcome);
}

void StepHandle::finish_part(std::size_t part, const Status& status) {
  const std::shared_ptr<StepHandle> keep = shared_from_this();
  if (!status.ok()) cancel(status);
  if (part_ended_[part].exchange(true, std::memory_order_acq_rel)) return;
  leave();
}

/// Timer and stop callback hold the step. While they run they hold a copy of their own, since ending the step destroys
/// them.
void StepHandle::arm() {
  if (options_.deadline != Clock::never && options_.clock != nullptr) {
    timer_ = options_.clock->schedule_at(options_.deadline, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self != nullptr) self->cancel_for([&] { return Status::deadline_exceeded(self->lateness()); });
    });
  }
  if (options_.outer != nullptr) {
    outer_ = options_.outer->cancellation().on_cancel([weak = weak_from_this()](const Status& why) {
      if (const auto self = weak.lock()) self->cancel(why);
    });
  }
  if (options_.stop.stop_possible()) {
    stop_.emplace(options_.stop, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->cancel_for([] { return Status::cancelled("stop was requested"); });
    });
  }
}

/// The message of a deadline: the parts that have not ended, by device or task, unless there is one part, of this
/// process.
std::string StepHandle::lateness() {
  constexpr int most = 4;
  std::string text = "the step's deadline has passed";
  const Hold hold(*this);
  if (!hold || (parts_.size() == 1 && !parts_.front()->may_stay_silent())) return text;
  int num_late = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::string_view place = parts_[i]->place();
    if (part_ended_[i].load(std::memory_order_acquire) || place.empty() || ++num_late > most) continue;
    text += str_cat(num_late == 1 ? ", not all is done on " : ", ", place);
  }
  if (num_late > most) text += str_cat(" and ", num_late - most, " others");
  return text;
}

void StepHandle::disarm() {
  stop_.reset();
  outer_.try_deregister();  // it may be calling: it holds what it uses
  if (timer_) options_.clock->cancel(*timer_);
  timer_.reset();
}

namespace detail {

/// A receive of the client's. It ends its share of the step exactly once, also if its completion is dropped.
struct ClientReceive {
  ClientReceive(std::shared_ptr<StepHandle> of, ClientEdge from, UniqueFunction<void(AnyTensor)> take,
                UniqueFunction<Status()> tell_dead, void (*end)(StepHandle&))
      : step(std::move(of)), edge(std::move(from)), received(std::move(take)), dead(std::move(tell_dead)), leave(end) {}
  ClientReceive(const ClientReceive&) = delete;
  ClientReceive& operator=(const ClientReceive&) = delete;
  ~ClientReceive() {
    if (step != nullptr) finish(Completion::dropped(), AnyTensor(), false);
  }

  Status check(const AnyTensor& tensor, bool is_dead) {
    if (is_dead) {
      if (dead) return dead();
      return Status::invalid_argument(
          str_cat("'", edge.key.tensor_name(), "', which is fetched, is dead: its branch was not taken"));
    }
    if (edge.dtype == DType::invalid || (tensor.is_initialized() && tensor.dtype() == edge.dtype)) return {};
    return Status::internal(str_cat("'", edge.key.tensor_name(), "' carries ", dtype_name(edge.dtype), ", but ",
                                    tensor.is_initialized() ? dtype_name(tensor.dtype()) : "an empty tensor",
                                    " was received"));
  }

  void finish(Status status, AnyTensor tensor, bool is_dead) noexcept {
    const std::shared_ptr<StepHandle> ending = std::exchange(step, nullptr);
    if (ending == nullptr) return;
    try {
      if (status.ok()) status = check(tensor, is_dead);
      if (!status.ok()) status = status.with_device(edge.key.source_device());
    } catch (...) {
      status = status_of_current_exception();
    }
    if (status.ok()) {
      received(std::move(tensor));
    } else {
      ending->cancel(status);
    }
    leave(*ending);
  }

  std::shared_ptr<StepHandle> step;
  ClientEdge edge;
  UniqueFunction<void(AnyTensor)> received;
  UniqueFunction<Status()> dead;
  void (*leave)(StepHandle&);
};

}  // namespace detail

void StepHandle::receive(Receive& receive) {
  RecvArgs args;
  args.allocator = options_.host_allocator;
  args.dtype = receive.edge.dtype;
  args.pushed = receive.edge.pushed;
  args.cancellation = receive_cancellation();
  std::shared_ptr<detail::ClientReceive> waiting;
  try {
    waiting = std::make_shared<detail::ClientReceive>(shared_from_this(), receive.edge, std::move(receive.received),
                                                      std::move(receive.dead), [](StepHandle& step) { step.leave(); });
  } catch (...) {
    cancel(status_of_current_exception());
    return leave();
  }
  try {
    rendezvous_->recv_async(receive.edge.key, args, [waiting](Status status, AnyTensor tensor, bool is_dead) {
      waiting->finish(std::move(status), std::move(tensor), is_dead);
    });
  } catch (...) {
    cancel(status_of_current_exception());  // the share ends with the last holder of `waiting`
  }
}

/// Any failure here ends the step like an error in one of its parts.
void StepHandle::begin() {
  const std::shared_ptr<StepHandle> keep = shared_from_this();
  // Counts one more while parts are being started.
  outstanding_.store(static_cast<std::int64_t>(parts_.size() + receives_.size()) + 1, std::memory_order_release);
  Status before;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  {
    const std::lock_guard lock(mutex_);
    has_begun_ = true;
    before = std::exchange(error_, Status());
    sends.swap(sends_);
    receives.swap(receives_);
  }
  if (!before.ok()) cancel(before);
  try {
    arm();
    for (Send& send : sends) this->send(send);
  } catch (...) {
    cancel(status_of_current_exception());
  }
  for (Receive& receive : receives) this->receive(receive);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    try {
      parts_[p]->start(*this, [keep, p](const Status& status) { keep->finish_part(p, status); });
    } catch (...) {
      finish_part(p, status_of_current_exception());
    }
  }
  leave();
}

void StepHandle::start(Done done) {
  part_ended_ = std::make_unique<std::atomic<bool>[]>(parts_.size());
  done_ = std::move(done);
  begin();
}

Status StepHandle::run(UnitQueue& queue) {
  part_ended_ = std::make_unique<std::atomic<bool>[]>(parts_.size());
  Status outcome;
  done_ = [&outcome, queue = queue.shared_from_this()](const Status& status) {
    outcome = status;
    queue->wake();
  };
  queue.expect_caller();
  begin();
  queue.run_until_woken();
  return outcome;
}

void StepHandle::cancel(Status status) {
  if (status.ok()) status = Status::cancelled("the step was cancelled");
  const Hold hold(*this);
  if (!hold) {
    const std::lock_guard lock(mutex_);
    if (!has_begun_ && error_.ok()) error_ = std::move(status);  // it will end as soon as it begins
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (!error_.ok()) {
      // The first error counts. For a deadline or a stop, the first node that it ended is added to the error.
      if (error_.node().empty() && error_ == status) error_ = std::move(status);
      return;
    }
    error_ = status;
  }
  cancellation_.cancel(status);
  if (options_.outer == nullptr) rendezvous_->abort(status);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    parts_[p]->cancel(status);
    if (parts_[p]->may_stay_silent() && !part_ended_[p].exchange(true, std::memory_order_acq_rel)) leave();
  }
}

}  // namespace dflow
