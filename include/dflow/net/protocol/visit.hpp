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

/// A stay of a client with this task, which a connection of its begins: it ends with the last control connection, or
/// with the last of all if there was no control connection. What a client makes here is its visit's, so that the end of
/// one, which may be told when the client is back already, touches nothing of the next.
///
/// Whoever keeps something of a visit looks whether it is over after, or with the lock that its end is told under:
/// nobody is told twice.
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
