#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/protocol/identity.hpp>

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace dflow::net {

/// A stay of a client with this task. A connection of the client begins it. It ends with the last control connection,
/// or, if there was no control connection, with the last of all. The objects that a client makes here belong to its
/// visit. The end of a visit may be told when the client is back already, and touches nothing of the next visit.
///
/// An owner of an object of a visit must check whether the visit is over. It checks after it has stored the object,
/// or under the lock that the handler of the end takes: nobody is told of the end twice.
///
/// Thread safety: safe.
class Visit {
 public:
  struct Id {
    std::string task;
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;

    friend bool operator==(const Id&, const Id&) = default;
    /// By number first: mostly that tells two apart.
    friend std::strong_ordering operator<=>(const Id& a, const Id& b) noexcept {
      if (const auto order = a.number <=> b.number; std::is_neq(order)) return order;
      if (const auto order = a.incarnation <=> b.incarnation; std::is_neq(order)) return order;
      return a.task <=> b.task;
    }
  };

  /// By number alone, which mostly tells two apart.
  struct IdHash {
    std::size_t operator()(const Id& id) const noexcept { return std::hash<std::uint64_t>()(id.number); }
  };

  /// No two visits of one start of a client have the same number.
  Visit(const TaskIdentity& client, std::uint64_t number)
      : id_{client.task, client.incarnation, number},
        owner_(str_cat(client.task, ";", client.incarnation, ";", number)) {}

  const Id& id() const noexcept { return id_; }
  /// The same in words, as the owner of steps: it begins with the task and a semicolon.
  const std::string& owner() const noexcept { return owner_; }
  bool is_over() const noexcept { return is_over_.load(std::memory_order_acquire); }
  void end() noexcept { is_over_.store(true, std::memory_order_release); }

 private:
  const Id id_;
  const std::string owner_;
  std::atomic<bool> is_over_{false};
};

}  // namespace dflow::net
