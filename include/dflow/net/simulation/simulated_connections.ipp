#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/simulation/simulated_network.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

/// A message on its way on a connection.
struct SimulatedMessage {
  Clock::time_point arrival;  ///< of its last byte
  std::string bytes;
  bool is_end = false;  ///< the sender has closed
  Duration transfer{};  ///< how long the receiver's interface has to do with it; none once it has its turn there
};

/// The times until which a machine's network interface is busy, each way.
struct SimulatedInterface {
  Clock::time_point sends_until{}, receives_until{};
};

/// One side of a connection, and the way from it to the other side.
struct SimulatedSide {
  std::shared_ptr<SimulatedProcess> process;
  std::string peer;  ///< for messages
  bool is_closed = false;
  bool is_ended = false;  ///< the other side has closed, and all before that has arrived
  Status why;             ///< told when it is closed or ended

  std::deque<SimulatedMessage> under_way;
  std::size_t unread_bytes = 0;  ///< under way, or received there
  Clock::time_point last_arrival{}, busy_until{}, stalled_until{};
  bool is_delivering = false;  ///< there is an event that will
  bool is_told_of_room = false;

  std::deque<std::string> received;
  std::size_t offset = 0;  ///< in the first
  std::span<std::byte> into;
  std::size_t* count = nullptr;
  Completion reader;

  std::vector<std::span<const std::byte>> parts;
  std::size_t part = 0, part_offset = 0;
  Completion writer;

  void finish(Completion& done, Status status) {
    if (!done) return;
    process->schedule_after(Duration::zero(), [done = std::exchange(done, nullptr),
                                               status = std::move(status)]() mutable { done(std::move(status)); });
  }
};

struct SimulatedConnection {
  std::uint64_t number = 0;
  SimulatedSide sides[2];  ///< the side that connected, the side that accepted
};

class SimulatedPort;

}  // namespace detail

/// All connections. Their events hold it, and do nothing to sides that are closed.
struct SimulatedNetwork::State : std::enable_shared_from_this<SimulatedNetwork::State> {
  using Connection = detail::SimulatedConnection;
  using Side = detail::SimulatedSide;
  using time_point = Clock::time_point;

  State(Simulation& its_simulation, const SimulatedNetworkOptions& its_options)
      : simulation(its_simulation), options(its_options), link(its_options.link) {}

  Simulation& simulation;
  const SimulatedNetworkOptions options;
  mutable std::recursive_mutex mutex;  ///< guards the members below, and all connections
  SimulatedLink link;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections;
  std::map<std::string, std::shared_ptr<detail::SimulatedPort>> ports;
  std::map<std::string, std::string> machines;  ///< by address
  std::set<std::pair<std::string, std::string>> blocked;
  std::set<std::string> without_power;
  std::map<std::string, detail::SimulatedInterface> interfaces;  ///< by machine, where they have a limit
  std::uint64_t last_connection = 0;

  template <class F>
  void after(Duration delay, F event) {
    simulation.schedule_after(delay, [self = shared_from_this(), event = std::move(event)]() mutable {
      const std::lock_guard lock(self->mutex);
      event(*self);
    });
  }

  Duration delay() {
    Duration time = simulation.random_between(link.min_delay, link.max_delay);
    if (link.late_share > 0 && simulation.chance(link.late_share)) {
      time += simulation.random_between(Duration::zero(), link.max_late);
    }
    return time;
  }
  bool passes(const std::string& from, const std::string& to) const {
    return !blocked.contains({from, to}) && !without_power.contains(to);
  }

  // ---- a connection ----

  /// Sends the messages that the window has room for.
  void transmit(const std::shared_ptr<Connection>& connection, int from) {
    Side& side = connection->sides[from];
    if (!side.writer || side.is_closed || side.is_ended) return;
    while (side.part < side.parts.size() && side.unread_bytes < options.window_bytes) {
      std::string bytes;
      while (side.part < side.parts.size() && side.unread_bytes + bytes.size() < options.window_bytes) {
        const std::span<const std::byte> rest = side.parts[side.part].subspan(side.part_offset);
        const std::size_t n = std::min(rest.size(), options.window_bytes - side.unread_bytes - bytes.size());
        bytes.append(reinterpret_cast<const char*>(rest.data()), n);
        side.part_offset += n;
        if (n < rest.size()) break;
        ++side.part;
        side.part_offset = 0;
      }
      if (!bytes.empty()) send(connection, from, std::move(bytes), false);
    }
    while (side.part < side.parts.size() && side.parts[side.part].empty()) ++side.part;
    if (side.part == side.parts.size()) side.finish(side.writer, {});
  }

  void send(const std::shared_ptr<Connection>& connection, int from, std::string bytes, bool is_end) {
    Side& side = connection->sides[from];
    const time_point now = simulation.now();
    side.busy_until = std::max(side.busy_until, now) + time_of(bytes.size(), link.bytes_per_second);
    const Duration transfer = interface_time(*connection, bytes.size());
    if (transfer > Duration::zero()) {
      time_point& sends_until = interfaces[side.process->name()].sends_until;
      sends_until = std::max(sends_until, now) + transfer;
      side.busy_until = std::max(side.busy_until, sends_until);
    }
    side.last_arrival = std::max(side.last_arrival, side.busy_until + delay());
    side.unread_bytes += bytes.size();
    side.under_way.push_back({side.last_arrival, std::move(bytes), is_end, transfer});
    deliver_next(connection, from);
  }

  static Duration time_of(std::size_t bytes, double bytes_per_second) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(bytes) / bytes_per_second * 1e9));
  }

  /// None if interfaces have no limit, or the message passes none.
  Duration interface_time(const Connection& connection, std::size_t bytes) const {
    const double rate = options.interface_bytes_per_second;
    const bool passes_none = connection.sides[0].process->name() == connection.sides[1].process->name();
    return rate <= 0 || passes_none ? Duration::zero() : time_of(bytes, rate);
  }

  /// The receiver's interface takes the first message under way when all earlier arrivals have passed.
  void take_turn(Side& side, const Side& to) {
    detail::SimulatedMessage& message = side.under_way.front();
    const Duration transfer = std::exchange(message.transfer, Duration::zero());
    time_point& receives_until = interfaces[to.process->name()].receives_until;
    receives_until = std::max(message.arrival, std::max(receives_until, simulation.now()) + transfer);
    message.arrival = receives_until;
  }

  /// One event at a time, for the first message under way.
  void deliver_next(const std::shared_ptr<Connection>& connection, int from) {
    Side& side = connection->sides[from];
    Side& to = connection->sides[1 - from];
    if (side.is_delivering || side.under_way.empty() || !passes(side.process->name(), to.process->name())) return;
    side.is_delivering = true;
    const detail::SimulatedMessage& message = side.under_way.front();
    const time_point at = std::max(message.arrival - message.transfer, to.stalled_until);
    after(at - std::min(at, simulation.now()), [connection, from](State& self) { self.deliver(connection, from); });
  }

  void deliver(const std::shared_ptr<Connection>& connection, int from) {
    Side& side = connection->sides[from];
    Side& to = connection->sides[1 - from];
    side.is_delivering = false;
    if (side.under_way.empty() || !passes(side.process->name(), to.process->name())) return;
    const detail::SimulatedMessage& first = side.under_way.front();
    const bool has_come = first.arrival - first.transfer <= simulation.now() && to.stalled_until <= simulation.now();
    if (has_come && first.transfer > Duration::zero()) take_turn(side, to);
    if (!has_come || first.arrival > simulation.now()) return deliver_next(connection, from);
    detail::SimulatedMessage message = std::move(side.under_way.front());
    side.under_way.pop_front();
    simulation.note(connection->number * 2 + static_cast<std::uint64_t>(from));
    if (to.is_closed) {
      if (!message.is_end) refuse(connection, from);
    } else if (message.is_end) {
      end(to);
    } else {
      simulation.note(message.bytes);
      to.received.push_back(std::move(message.bytes));
      take(connection, 1 - from);
    }
    deliver_next(connection, from);
  }

  /// A machine that has bytes for nobody says so.
  void refuse(const std::shared_ptr<Connection>& connection, int from) {
    after(delay(), [connection, from](State& self) {
      Side& side = connection->sides[from];
      if (side.is_closed || !self.passes(connection->sides[1 - from].process->name(), side.process->name())) return;
      self.break_off(connection, from);
    });
  }

  /// The other side has closed.
  void end(Side& side) {
    side.is_ended = true;
    if (side.received.empty()) side.finish(side.reader, side.why);
    side.finish(side.writer, side.why);
  }

  /// Bytes that have come go to the reader.
  void take(const std::shared_ptr<Connection>& connection, int at) {
    Side& side = connection->sides[at];
    Side& from = connection->sides[1 - at];
    if (!side.reader || side.received.empty()) return;
    std::size_t taken = 0;
    while (taken < side.into.size() && !side.received.empty()) {
      const std::string_view bytes = std::string_view(side.received.front()).substr(side.offset);
      const std::size_t n = std::min(side.into.size() - taken, bytes.size());
      std::memcpy(side.into.data() + taken, bytes.data(), n);
      taken += n;
      side.offset += n;
      if (n < bytes.size()) continue;
      side.received.pop_front();
      side.offset = 0;
    }
    *side.count = taken;
    from.unread_bytes -= taken;
    side.finish(side.reader, {});
    if (!from.writer || std::exchange(from.is_told_of_room, true)) return;
    after(delay(), [connection, at](State& self) { self.tell_of_room(connection, 1 - at); });
  }

  void tell_of_room(const std::shared_ptr<Connection>& connection, int side) {
    if (!passes(connection->sides[1 - side].process->name(), connection->sides[side].process->name())) return;
    connection->sides[side].is_told_of_room = false;
    transmit(connection, side);
  }

  /// By its owner, which may be dead, or by the network.
  void close(const std::shared_ptr<Connection>& connection, int at, bool tells_other) {
    Side& side = connection->sides[at];
    if (std::exchange(side.is_closed, true)) return;
    side.received.clear();
    side.finish(side.reader, side.why);
    side.finish(side.writer, side.why);
    if (tells_other) send(connection, at, {}, true);
    if (connection->sides[1 - at].is_closed) connections.erase(connection->number);
  }

  /// Messages under way to the side are lost, and its owner is told.
  void break_off(const std::shared_ptr<Connection>& connection, int at) {
    connection->sides[1 - at].under_way.clear();
    close(connection, at, false);
  }

  // ---- faults ----

  template <class F>
  void for_each_between(const std::string& a, const std::string& b, double share, const F& f) {
    const auto all = connections;
    for (const auto& [number, connection] : all) {
      for (int at = 0; at < 2; ++at) {
        if (connection->sides[at].process->name() != a || connection->sides[1 - at].process->name() != b) continue;
        if (share >= 1 || simulation.chance(share)) f(connection, at);
      }
    }
  }

  void resume() {
    const auto all = connections;
    for (const auto& [number, connection] : all) {
      for (int at = 0; at < 2; ++at) {
        deliver_next(connection, at);
        if (connection->sides[at].is_told_of_room) tell_of_room(connection, at);
      }
    }
  }

  void forget_process(const SimulatedProcess& process);
};

}  // namespace dflow::net
