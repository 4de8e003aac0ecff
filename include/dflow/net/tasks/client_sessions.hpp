#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/visit.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::net::detail {

/// Memory of a compiled graph, for each byte of its message. The bytes beyond `most_node_bytes` are of constants.
inline constexpr std::uint64_t graph_bytes_per_byte = 16;
inline constexpr std::uint64_t constant_bytes_per_byte = 2;
inline constexpr std::uint64_t most_node_bytes = std::uint64_t{64} << 20;
/// The least memory of a graph, and of what belongs to it.
inline constexpr std::uint64_t least_graph_bytes = 4096;

/// The memory that the graph of a request is going to take. Errors: ResourceExhausted.
inline ByteCharge charge_graph(const Incoming& request) {
  ByteCharge charge(request.budget);
  const std::uint64_t size = request.payload.size(), nodes = std::min(size, most_node_bytes);
  throw_if_error(
      charge.add(least_graph_bytes + nodes * graph_bytes_per_byte + (size - nodes) * constant_bytes_per_byte));
  return charge;
}

struct SessionCount {
  std::size_t now = 0;
  std::uint64_t ever = 0;  ///< those that have ended, too
};

/// The sessions that a task keeps for its clients, by visit and by number.
///
/// Thread safety: guarded by the mutex of its owner.
template <class Session>
class ClientSessions {
 public:
  using OfVisit = std::unordered_map<std::uint64_t, std::shared_ptr<Session>>;
  /// Looked into for every step: a search in a tree would touch the nodes of several clients.
  using ByVisit = std::unordered_map<Visit::Id, OfVisit, Visit::IdHash>;

  const ByVisit& by_visit() const noexcept { return by_visit_; }
  std::size_t size() const noexcept {
    std::size_t size = 0;
    for (const auto& [visit, sessions] : by_visit_) size += sessions.size();
    return size;
  }
  SessionCount count() const noexcept { return {size(), num_added_}; }
  /// Null if there is none.
  std::shared_ptr<Session> find(const Visit::Id& visit, std::uint64_t number) const {
    const auto of_visit = by_visit_.find(visit);
    if (of_visit == by_visit_.end()) return nullptr;
    const auto found = of_visit->second.find(number);
    return found == of_visit->second.end() ? nullptr : found->second;
  }
  /// A number that the visit has not. Errors: ResourceExhausted if it has `most` sessions.
  void add(const Visit::Id& visit, std::uint64_t number, std::shared_ptr<Session> session, std::size_t most) {
    const auto of_visit = by_visit_.find(visit);
    if ((of_visit == by_visit_.end() ? 0 : of_visit->second.size()) >= most) {
      throw_error(Status::resource_exhausted(str_cat("more than ", most, " sessions of one client")));
    }
    by_visit_[visit].emplace(number, std::move(session));
    ++num_added_;
  }
  /// Null if there is none.
  std::shared_ptr<Session> take(const Visit::Id& visit, std::uint64_t number) {
    const auto of_visit = by_visit_.find(visit);
    if (of_visit == by_visit_.end()) return nullptr;
    const auto found = of_visit->second.find(number);
    if (found == of_visit->second.end()) return nullptr;
    std::shared_ptr<Session> taken = std::move(found->second);
    of_visit->second.erase(found);
    if (of_visit->second.empty()) by_visit_.erase(of_visit);
    return taken;
  }
  std::vector<std::shared_ptr<Session>> take_all(const Visit::Id& visit) {
    std::vector<std::shared_ptr<Session>> taken;
    if (const auto of_visit = by_visit_.find(visit); of_visit != by_visit_.end()) {
      taken.reserve(of_visit->second.size());
      for (auto& [number, session] : of_visit->second) taken.push_back(std::move(session));
      by_visit_.erase(of_visit);
    }
    return taken;
  }
  std::vector<std::shared_ptr<Session>> take_all() {
    std::vector<std::shared_ptr<Session>> taken;
    taken.reserve(size());
    for (auto& [visit, sessions] : by_visit_) {
      for (auto& [number, session] : sessions) taken.push_back(std::move(session));
    }
    by_visit_.clear();
    return taken;
  }

 private:
  ByVisit by_visit_;
  std::uint64_t num_added_ = 0;
};

}  // namespace dflow::net::detail
