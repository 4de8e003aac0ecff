#pragma once

#include <dflow/net/simulation/simulation.hpp>
#include <dflow/net/transport/transport.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace dflow::net {

/// The properties of a way between two machines.
struct SimulatedLink {
  /// How long a message takes, at random for each.
  Duration min_delay = std::chrono::microseconds(50);
  Duration max_delay = std::chrono::microseconds(500);
  /// This share of messages takes up to `max_late` longer; later messages of its connection wait. 0: none.
  double late_share = 0;
  Duration max_late = std::chrono::milliseconds(200);
  double bytes_per_second = 1e9;
};

struct SimulatedNetworkOptions {
  SimulatedLink link = {};
  /// The speed of a machine's network interface for all its connections together, each way apart. Messages of up to a
  /// window pass the sender's interface in the order of sending, then the receiver's, where connections take turns. A
  /// message that waits for neither takes the time of one interface. Messages that a machine sends to itself pass no
  /// interface. 0: no limit.
  double interface_bytes_per_second = 0;
  /// Bytes of a connection that nobody has read yet, each way; at least 1. Further bytes wait with the writer.
  std::size_t window_bytes = std::size_t{64} << 10;
  /// Connections at one address that nobody has accepted yet; more are refused.
  std::size_t max_waiting = 128;
  /// Between attempts to reach a machine that does not answer.
  Duration retry_interval = std::chrono::milliseconds(500);
};

/// Connections between the processes of a simulation, and their faults. A process's machine has its name, and
/// outlives it. An address is any text but the empty one. It belongs to the machine of the process that has listened
/// there last.
///
/// Messages of one connection arrive in order, messages of two connections in any order. A process that crashes
/// resets its connections. If its machine loses power, its peers must find out by themselves.
///
/// Thread safety: as Simulation.
class SimulatedNetwork {
 public:
  /// Must not outlive the simulation. Errors: InvalidArgument for a window of no bytes, and for
  /// an interface that carries fewer than none.
  explicit SimulatedNetwork(Simulation& simulation, const SimulatedNetworkOptions& options = {});
  ~SimulatedNetwork();
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  /// How that process reaches others, and is reached. Its machine has power from now on.
  std::shared_ptr<Transport> transport(const std::shared_ptr<SimulatedProcess>& process);

  /// For messages that are sent from now on.
  void set_link(const SimulatedLink& link);
  /// Nothing passes from one machine to the other, in this direction alone; messages that were sent wait.
  void block(const std::string& from, const std::string& to);
  void unblock(const std::string& from, const std::string& to);
  /// Ends all blocks and stalls.
  void heal();
  /// Ends the connections between two machines, each with probability `share`, on both sides. Messages under way are
  /// lost.
  void reset(const std::string& a, const std::string& b, double share = 1);
  /// The same on the side of `a` alone; `b` hears of it when it writes.
  void forget(const std::string& a, const std::string& b, double share = 1);
  /// Messages from `from` wait with `reader` for this long, and are not read.
  void stall(const std::string& reader, const std::string& from, Duration time);
  /// Crashes the process without a word to its peers. Nothing reaches the machine until a process of its name has a
  /// transport again.
  void power_off(SimulatedProcess& process);

  /// Connections with at least one open side.
  std::size_t num_connections() const;

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace dflow::net
