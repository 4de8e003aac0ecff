#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/cancellation.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace dflow::detail {

/// The waiters for something that a resource will have, in their order of arrival.
///
/// Thread safety: guarded by the mutex of its owner.
template <class Waiter>
class WaitList {
 public:
  bool is_empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  Waiter& front() noexcept { return entries_.begin()->second.waiter; }
  Waiter take_front() { return take(entries_.begin()); }

  template <std::predicate<const Waiter&> IsMeant>
  bool has_if(const IsMeant& is_meant) const {
    return std::any_of(entries_.begin(), entries_.end(),
                       [&](const auto& entry) { return is_meant(entry.second.waiter); });
  }

  /// The waiters for which `is_due(waiter)` is true.
  template <std::predicate<const Waiter&> IsDue>
  std::vector<Waiter> take_if(const IsDue& is_due) {
    std::vector<Waiter> taken;
    taken.reserve(entries_.size());
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (is_due(std::as_const(entry->second.waiter))) taken.push_back(take(entry));
      entry = next;
    }
    return taken;
  }
  std::vector<Waiter> take_all() {
    return take_if([](const Waiter&) { return true; });
  }

  std::uint64_t add(Waiter waiter) {
    entries_.emplace_hint(entries_.end(), ++last_id_, Entry{std::move(waiter), {}});
    return last_id_;
  }
  bool has(std::uint64_t id) { return entries_.contains(id); }
  /// Ok unless all waiting has been ended.
  const Status& ended() const noexcept { return ended_; }
  void set_ended(const Status& why) { ended_ = why; }
  /// Empty if another caller has taken the waiter.
  std::optional<Waiter> take(std::uint64_t id) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return std::nullopt;
    return take(entry);
  }
  /// Keeps the registration as long as the waiter waits; false if it waits no more.
  bool keep(std::uint64_t id, CancellationRegistration& registration) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end()) return false;
    entry->second.registration = std::move(registration);
    return true;
  }

 private:
  struct Entry {
    Waiter waiter;
    CancellationRegistration registration;
  };
  using Entries = std::map<std::uint64_t, Entry>;  ///< by id: in the order in which they came

  Waiter take(typename Entries::iterator entry) {
    // A callback that runs right now finds no waiter, so nobody waits for it.
    static_cast<void>(entry->second.registration.try_deregister());
    Waiter waiter = std::move(entry->second.waiter);
    entries_.erase(entry);
    return waiter;
  }

  Entries entries_;
  std::uint64_t last_id_ = 0;
  Status ended_;
};

/// Lets waiter `id` of `list`, a member of `*owner`, wait until it is taken out or `token` is cancelled. If the token
/// is cancelled, `owner->give_up(waiter, status)` is called without the lock. It is also called if there is no memory
/// to listen to the token. `lock` holds `owner->mutex` and is released.
template <class Owner, class Waiter>
void wait_for(const std::shared_ptr<Owner>& owner, WaitList<Waiter> Owner::*list, std::unique_lock<std::mutex>& lock,
              std::uint64_t id, const CancellationToken& token) {
  // The receiver of a call may let go of the resource, and of `owner` with it.
  const std::shared_ptr<Owner> kept = owner;  // NOLINT(performance-unnecessary-copy-initialization): it keeps it alive
  Owner& state = *kept;
  if (const Status ended = (state.*list).ended(); !ended.ok()) {
    std::optional<Waiter> given_up = (state.*list).take(id);
    lock.unlock();
    if (given_up) state.give_up(*given_up, ended);
    return;
  }
  if (!token.can_be_cancelled() || !(state.*list).has(id)) return lock.unlock();
  const auto give_up = [kept, list, id](const Status& status) {
    std::optional<Waiter> given_up;
    {
      const std::lock_guard guard(kept->mutex);
      given_up = ((*kept).*list).take(id);
    }
    if (given_up) kept->give_up(*given_up, status);
  };
  lock.unlock();
  CancellationRegistration registration;
  try {
    registration = token.on_cancel(give_up);
  } catch (...) {
    return give_up(status_of_current_exception());
  }
  lock.lock();
  const bool is_kept = (state.*list).keep(id, registration);
  lock.unlock();
  if (!is_kept) static_cast<void>(registration.try_deregister());
}

/// Gives up all waiters in `list`, now and from now on, by `owner->give_up(waiter, why)` without the lock. Out of
/// memory it does nothing.
template <class Owner, class Waiter>
void end_waiting(const std::shared_ptr<Owner>& owner, WaitList<Waiter> Owner::*list, const Status& why) {
  std::vector<Waiter> ended;
  {
    const std::lock_guard lock(owner->mutex);
    if (!((*owner).*list).ended().ok()) return;
    ended = ((*owner).*list).take_all();
    ((*owner).*list).set_ended(why);
  }
  for (Waiter& waiter : ended) owner->give_up(waiter, why);
}

}  // namespace dflow::detail
