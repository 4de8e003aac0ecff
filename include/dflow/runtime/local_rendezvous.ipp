#pragma once

#include <dflow/runtime/local_rendezvous.hpp>

#include <algorithm>
#include <utility>

namespace dflow {

LocalRendezvous::~LocalRendezvous() {
  if (num_pending() == 0) return;
  try {
    abort(Status::cancelled("the step has ended"));
  } catch (...) {  // no memory for the sentence
    abort(Status::out_of_memory());
  }
}

void LocalRendezvous::deliver(Sent sent, Wanted wanted) {
  // Before the receive completes, so that nothing of the pair is left then.
  wanted.cancellation.deregister();
  if (sent.is_dead) return wanted.done(Status(), AnyTensor(), true);
  if (sent.args.memory == wanted.args.memory) return wanted.done(Status(), std::move(sent.tensor), false);
  Allocator& host = wanted.args.allocator == nullptr ? default_cpu_allocator() : *wanted.args.allocator;
  // A copy that throws drops the completion on the way, before the exception is known.
  const auto done = std::make_shared<RecvDone>(std::move(wanted.done));
  try {
    copy_across_async(sent.tensor, sent.args.memory, wanted.args.memory, host, [done](Status status, AnyTensor copy) {
      if (RecvDone once = std::exchange(*done, nullptr)) once(std::move(status), std::move(copy), false);
    });
  } catch (...) {
    if (RecvDone once = std::exchange(*done, nullptr)) once(status_of_current_exception(), AnyTensor(), false);
  }
}

Status LocalRendezvous::send(const RendezvousKey& key, AnyTensor tensor, bool is_dead, const SendArgs& args) {
  Table& table = *table_;
  Wanted wanted;
  {
    const std::lock_guard lock(table.mutex);
    if (!table.aborted.ok()) return table.aborted;
    const auto found = table.items.find(key);
    if (found == table.items.end() && !table.was_delivered(key)) {
      Item& item = table.items[key];
      item.is_sent = true;
      item.sent = {std::move(tensor), is_dead, args};
      return {};
    }
    if (found == table.items.end() || found->second.is_sent) {
      return Status::aborted(str_cat("'", key.text(), "' was sent twice in one step"));
    }
    table.note_delivery(key);
    --table.num_wanted;
    wanted = std::move(found->second.wanted);
    table.items.erase(found);
  }
  deliver({std::move(tensor), is_dead, args}, std::move(wanted));
  return {};
}

void LocalRendezvous::recv_async(const RendezvousKey& key, const RecvArgs& args, RecvDone done) {
  const std::shared_ptr<Table> table = table_;
  Status status;
  bool is_sent = false;
  Sent sent;
  Wanted wanted{std::move(done), args, {}};  // without memory it goes when the lock has
  {
    const std::lock_guard lock(table->mutex);
    status = table->aborted;
    if (status.ok()) {
      const auto found = table->items.find(key);
      if (found == table->items.end() && !table->was_delivered(key)) {
        table->items[key].wanted = std::move(wanted);
        ++table->num_wanted;
      } else if (found == table->items.end() || !found->second.is_sent) {
        status = Status::aborted(str_cat("'", key.text(), "' is asked for twice in one step"));
      } else {
        is_sent = true;
        table->note_delivery(key);
        sent = std::move(found->second.sent);
        table->items.erase(found);
      }
    }
  }
  // NOLINTNEXTLINE(bugprone-use-after-move): it waits in the table only where the status is ok and nothing is sent
  if (!status.ok()) return wanted.done(std::move(status), AnyTensor(), false);
  if (is_sent) return deliver(std::move(sent), std::move(wanted));
  if (!args.cancellation.can_be_cancelled()) return;
  // Registered without the lock, since a token that is cancelled already calls back at once; the pair may have met, or
  // been given up, meanwhile, and the rendezvous be gone.
  CancellationRegistration registration =
      args.cancellation.on_cancel([weak = std::weak_ptr<Table>(table), key](const Status& why) {
        if (const std::shared_ptr<Table> here = weak.lock()) here->give_up(key, why);
      });
  const std::lock_guard lock(table->mutex);
  const auto waiting = table->items.find(key);
  if (waiting == table->items.end() || waiting->second.is_sent) return;
  waiting->second.wanted.cancellation = std::move(registration);
}

void LocalRendezvous::Table::give_up(const RendezvousKey& key, const Status& status) {
  Wanted wanted;
  {
    const std::lock_guard lock(mutex);
    const auto found = items.find(key);
    if (found == items.end() || found->second.is_sent) return;
    wanted = std::move(found->second.wanted);
    items.erase(found);
    --num_wanted;
  }
  wanted.cancellation.deregister();
  wanted.done(status, AnyTensor(), false);
}

void LocalRendezvous::abort(Status status) {
  if (status.ok()) status = Status::cancelled("the step was aborted");
  const std::shared_ptr<Table> table = table_;
  Items left;
  {
    const std::lock_guard lock(table->mutex);
    if (!table->aborted.ok()) return;
    table->aborted = status;
    left.swap(table->items);
    table->num_wanted = 0;
    table->delivered.clear();
  }
  for (auto& [key, item] : left) {
    if (item.is_sent) continue;
    item.wanted.cancellation.deregister();
    item.wanted.done(status, AnyTensor(), false);
  }
}

std::size_t LocalRendezvous::num_pending() const {
  const std::lock_guard lock(table_->mutex);
  return table_->items.size();
}

Status LocalRendezvous::end() const {
  const std::lock_guard lock(table_->mutex);
  return table_->aborted;
}

std::size_t LocalRendezvous::num_wanted() const {
  const std::lock_guard lock(table_->mutex);
  return table_->num_wanted;
}

std::vector<RendezvousKey> LocalRendezvous::wanted(std::size_t max) const {
  std::vector<RendezvousKey> keys;
  const std::lock_guard lock(table_->mutex);
  max = std::min(max, table_->num_wanted);
  keys.reserve(max);
  for (const auto& [key, item] : table_->items) {
    if (keys.size() == max) break;
    if (!item.is_sent) keys.push_back(key);
  }
  return keys;
}

}  // namespace dflow
