#pragma once

// How a task is told that tensors of steps are lost. Included by peers.ipp.

#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/net/tasks/peers.hpp>

#include <algorithm>
#include <utility>

namespace dflow::net {

/// Tells the other task that it waits in vain for messages that it has not read, or will when it begins the step. It
/// does not know steps that are over there, and may be a later start than that which the messages went to.
void Peers::recall(const std::string& task, std::vector<std::uint64_t> steps, const Status& why) {
  const Status lost = Status::unavailable(str_cat("tensors of the step may be lost: ", why.message()))
                          .with_task(options_.connection.self.task);
  attempt_recall(
      {task, std::move(steps), lost, options_.connection.clock->after(options_.recall_timeout), options_.min_backoff});
}

/// False if it goes along with one that waits for a connection with the task: a task may be away while many steps fail.
bool Peers::begin_recall(const Recall& recall) {
  constexpr std::size_t most_steps = 32768;
  const std::lock_guard lock(mutex_);
  const auto [found, is_first] = recalls_.try_emplace(recall.task, recall);
  if (is_first) return true;
  Recall& waiting = found->second;
  for (const std::uint64_t step : recall.steps) {
    if (waiting.steps.empty() || waiting.steps.back() != step) waiting.steps.push_back(step);
  }
  if (waiting.steps.size() > most_steps) {  // the oldest ones go
    waiting.steps.erase(waiting.steps.begin(), waiting.steps.begin() + most_steps / 4);
  }
  waiting.until = std::max(waiting.until, recall.until);
  return false;
}

Peers::Recall Peers::take_recall(const std::string& task) {
  const std::lock_guard lock(mutex_);
  auto taken = recalls_.extract(task);
  return taken ? std::move(taken.mapped()) : Recall{};
}

void Peers::attempt_recall(const Recall& recall) {
  if (!begin_recall(recall)) return;
  const auto connected = [weak = weak_from_this(), task = recall.task, until = recall.until](
                             const Status&, const std::shared_ptr<Connection>& connection) {
    const std::shared_ptr<Peers> self = weak.lock();
    if (self == nullptr) return;
    const Recall due = self->take_recall(task);
    if (connection != nullptr) return self->send_recall(connection, due);
    if (due.until > until) self->attempt_recall(due);  // for steps that have come later
  };
  try {
    connect(recall.task, Channel::control, recall.until, connected);
  } catch (...) {
    take_recall(recall.task);
    throw;
  }
}

void Peers::send_recall(const std::shared_ptr<Connection>& connection, const Recall& recall) {
  for (const std::uint64_t step : recall.steps) {
    Call call = detail::make_call(Method::cancel_step, to_body(CancelStep{step, recall.lost}));
    const Recall again{recall.task, {step}, recall.lost, recall.until, recall.pause};
    connection->call(std::move(call), [weak = weak_from_this(), again](const Status& status, const std::string&) {
      const std::shared_ptr<Peers> self = weak.lock();
      if (self != nullptr && status.code() == Code::unavailable) self->recall_later(again);
    });
  }
}

/// The connection has ended before the peer has answered.
void Peers::recall_later(Recall recall) {
  Clock& clock = *options_.connection.clock;
  if (clock.now() >= recall.until) return;
  const Duration pause = jittered(std::exchange(recall.pause, std::min(2 * recall.pause, options_.max_backoff)));
  clock.schedule_after(pause, [weak = weak_from_this(), recall = std::move(recall)] {
    if (const std::shared_ptr<Peers> self = weak.lock()) self->attempt_recall(recall);
  });
}

}  // namespace dflow::net
