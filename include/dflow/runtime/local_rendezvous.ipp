#pragma once

#include <dflow/runtime/local_rendezvous.hpp>

#include <utility>

namespace dflow {

DFLOW_INLINE Status LocalRendezvous::send(const RendezvousKey& key, AnyTensor tensor, bool is_dead) {
  RecvDone waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    Item& item = items_[key.text()];
    if (item.has_tensor) return already_exists(str_cat("'", key.text(), "' was sent twice in one step"));
    item.has_tensor = true;
    if (!item.waiting) {
      item.tensor = std::move(tensor);
      item.is_dead = is_dead;
      return {};
    }
    waiting = std::move(item.waiting);
  }
  waiting(Status(), std::move(tensor), is_dead);
  return {};
}

DFLOW_INLINE void LocalRendezvous::recv_async(const RendezvousKey& key, RecvDone done) {
  Status status;
  AnyTensor tensor;
  bool is_dead = false;
  {
    const std::lock_guard lock(mutex_);
    status = aborted_;
    if (status.ok()) {
      Item& item = items_[key.text()];
      if (item.waiting) {
        status = already_exists(str_cat("'", key.text(), "' is asked for twice in one step"));
      } else if (!item.has_tensor) {
        item.waiting = std::move(done);
        return;
      } else {
        tensor = std::move(item.tensor);
        is_dead = item.is_dead;
      }
    }
  }
  done(status, std::move(tensor), is_dead);
}

DFLOW_INLINE void LocalRendezvous::abort(Status status) {
  if (status.ok()) status = cancelled("the step was aborted");
  std::vector<RecvDone> waiting;
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_.ok()) return;
    aborted_ = status;
    for (auto& [key, item] : items_) {
      if (item.waiting) waiting.push_back(std::move(item.waiting));
    }
    items_.clear();
  }
  for (RecvDone& done : waiting) done(status, AnyTensor(), false);
}

}  // namespace dflow
