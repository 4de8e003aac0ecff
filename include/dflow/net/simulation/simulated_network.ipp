#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/simulation/simulated_connections.ipp>
#include <dflow/net/simulation/simulated_network.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

class SimulatedStream final : public Stream {
 public:
  using State = SimulatedNetwork::State;

  SimulatedStream(std::shared_ptr<State> network, std::shared_ptr<SimulatedConnection> connection, int at)
      : network_(std::move(network)), connection_(std::move(connection)), at_(at) {}
  ~SimulatedStream() override { SimulatedStream::close(); }

  void read_some(std::span<std::byte> into, std::size_t& count, Completion done) override {
    const std::lock_guard lock(network_->mutex);
    SimulatedSide& side = own();
    if (side.reader) return side.finish(done, Status::failed_precondition("the stream is being read already"));
    count = 0;
    if (side.is_closed || (side.is_ended && side.received.empty())) return side.finish(done, side.why);
    side.into = into;
    side.count = &count;
    side.reader = std::move(done);
    network_->take(connection_, at_);
  }

  void write(std::vector<std::span<const std::byte>> parts, Completion done) override {
    const std::lock_guard lock(network_->mutex);
    SimulatedSide& side = own();
    if (side.writer) return side.finish(done, Status::failed_precondition("the stream is being written already"));
    if (side.is_closed || side.is_ended) return side.finish(done, side.why);
    side.parts = std::move(parts);
    side.part = side.part_offset = 0;
    side.writer = std::move(done);
    network_->transmit(connection_, at_);
  }

  /// Nothing, a part or all of it, at random.
  std::size_t try_write(std::span<const std::span<const std::byte>> parts) noexcept override {
    const std::lock_guard lock(network_->mutex);
    SimulatedSide& side = own();
    if (side.writer || side.is_closed || side.is_ended) return 0;
    try {
      std::string bytes;
      for (const std::span<const std::byte> part : parts) {
        bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
      }
      bytes.resize(std::min(bytes.size(), network_->options.window_bytes - side.unread_bytes));
      if (bytes.size() > 1 && network_->simulation.chance(0.1)) {
        bytes.resize(static_cast<std::size_t>(network_->simulation.random_below(bytes.size())));
      }
      const std::size_t written = bytes.size();
      if (written > 0) network_->send(connection_, at_, std::move(bytes), false);
      return written;
    } catch (...) {  // no memory: write() will say so
      return 0;
    }
  }

  void close() noexcept override {
    const std::lock_guard lock(network_->mutex);
    network_->close(connection_, at_, own().process->is_alive());
  }
  std::string peer() const override { return connection_->sides[at_].peer; }

 private:
  SimulatedSide& own() { return connection_->sides[at_]; }

  const std::shared_ptr<State> network_;
  const std::shared_ptr<SimulatedConnection> connection_;
  const int at_;
};

/// The queue at an address: connections that nobody has accepted, or a waiting accept.
class SimulatedPort {
 public:
  SimulatedPort(std::shared_ptr<SimulatedProcess> its_process, std::size_t max_waiting)
      : process(std::move(its_process)), max_waiting_(max_waiting) {}

  const std::shared_ptr<SimulatedProcess> process;

  void accept(std::unique_ptr<Stream>& stream, Completion done) {
    if (is_closed_) return finish(std::move(done), Status::cancelled("the listener is closed"));
    if (acceptor_) return finish(std::move(done), Status::failed_precondition("the listener is accepting already"));
    accepted_ = &stream;
    acceptor_ = std::move(done);
    serve();
  }
  Status offer(std::unique_ptr<Stream> stream) {
    if (waiting_.size() >= max_waiting_) return Status::unavailable("too many connections wait to be accepted");
    waiting_.push_back(std::move(stream));
    serve();
    return {};
  }
  void close() {
    is_closed_ = true;
    waiting_.clear();
    finish(std::exchange(acceptor_, nullptr), Status::cancelled("the listener is closed"));
  }

 private:
  void serve() {
    if (!acceptor_ || waiting_.empty()) return;
    *accepted_ = std::move(waiting_.front());
    waiting_.pop_front();
    finish(std::exchange(acceptor_, nullptr), {});
  }
  void finish(Completion done, Status status) {
    if (!done) return;
    process->schedule_after(
        Duration::zero(), [done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
  }

  const std::size_t max_waiting_;
  std::deque<std::unique_ptr<Stream>> waiting_;
  std::unique_ptr<Stream>* accepted_ = nullptr;
  Completion acceptor_;
  bool is_closed_ = false;
};

class SimulatedListener final : public Listener {
 public:
  SimulatedListener(std::shared_ptr<SimulatedNetwork::State> network, std::string address,
                    std::shared_ptr<SimulatedPort> port)
      : network_(std::move(network)), address_(std::move(address)), port_(std::move(port)) {}
  ~SimulatedListener() override { SimulatedListener::close(); }

  void accept(std::unique_ptr<Stream>& stream, Completion done) override {
    const std::lock_guard lock(network_->mutex);
    port_->accept(stream, std::move(done));
  }
  void close() noexcept override {
    const std::lock_guard lock(network_->mutex);
    const auto found = network_->ports.find(address_);
    if (found != network_->ports.end() && found->second == port_) network_->ports.erase(found);
    port_->close();
  }
  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<SimulatedNetwork::State> network_;
  const std::string address_;
  const std::shared_ptr<SimulatedPort> port_;
};

/// An attempt to connect, until it is told its result.
struct SimulatedAttempt {
  std::shared_ptr<SimulatedProcess> process;
  std::string address;
  std::unique_ptr<Stream>* stream = nullptr;
  Completion done;
  TimerId timer{};

  void finish(Status status, std::unique_ptr<Stream> made) {
    if (!done) return;
    process->clock()->cancel(timer);
    process->schedule_after(Duration::zero(), [done = std::exchange(done, nullptr), stream = stream,
                                               status = std::move(status), made = std::move(made)]() mutable {
      if (status.ok()) *stream = std::move(made);
      done(std::move(status));
    });
  }
};

class SimulatedTransport final : public Transport {
 public:
  using State = SimulatedNetwork::State;

  SimulatedTransport(std::shared_ptr<State> network, std::shared_ptr<SimulatedProcess> process)
      : network_(std::move(network)), process_(std::move(process)) {}

  std::unique_ptr<Listener> listen(const std::string& address) override {
    if (address.empty()) throw_error(Status::invalid_argument("an address cannot be empty"));
    if (!process_->is_alive()) throw_error(Status::unavailable(str_cat(process_->name(), " has crashed")));
    const std::lock_guard lock(network_->mutex);
    auto port = std::make_shared<SimulatedPort>(process_, network_->options.max_waiting);
    if (!network_->ports.emplace(address, port).second) {
      throw_error(Status::already_exists(str_cat("somebody listens at '", address, "' already")));
    }
    network_->machines[address] = process_->name();
    return std::make_unique<SimulatedListener>(network_, address, std::move(port));
  }

  void connect(const std::string& address, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
               Completion done) override {
    const std::lock_guard lock(network_->mutex);
    const auto attempt = std::make_shared<SimulatedAttempt>();
    attempt->process = process_;
    attempt->address = address;
    attempt->stream = &stream;
    attempt->done = std::move(done);
    if (address.empty()) return attempt->finish(Status::invalid_argument("an address cannot be empty"), nullptr);
    if (deadline != Clock::never) {
      attempt->timer = process_->clock()->schedule_at(deadline, [network = network_, attempt] {
        const std::lock_guard late_lock(network->mutex);
        attempt->finish(Status::deadline_exceeded(str_cat("'", attempt->address, "' has not answered in time")),
                        nullptr);
      });
    }
    network_->after(network_->delay(), [attempt](State& network) { knock(network, attempt); });
  }

 private:
  static void knock(State& network, const std::shared_ptr<SimulatedAttempt>& attempt) {
    if (!attempt->done || !attempt->process->is_alive()) return attempt->finish({}, nullptr);
    const std::string& here = attempt->process->name();
    const auto machine = network.machines.find(attempt->address);
    const std::string there = machine == network.machines.end() ? here : machine->second;
    if (!network.passes(here, there) || !network.passes(there, here)) {
      return network.after(network.options.retry_interval, [attempt](State& again) { knock(again, attempt); });
    }
    const auto port = network.ports.find(attempt->address);
    if (port == network.ports.end()) {
      return answer(network, attempt, Status::unavailable(str_cat("nobody listens at '", attempt->address, "'")),
                    nullptr);
    }
    const auto connection = std::make_shared<SimulatedConnection>();
    connection->number = ++network.last_connection;
    SimulatedSide& near = connection->sides[0];
    SimulatedSide& far = connection->sides[1];
    near.process = attempt->process;
    near.peer = attempt->address;
    far.process = port->second->process;
    far.peer = str_cat(here, ", a client of ", attempt->address);
    for (SimulatedSide& side : connection->sides) {
      side.why = Status::unavailable("the stream is closed");
    }
    network.connections.emplace(connection->number, connection);
    const std::shared_ptr<State> shared = network.shared_from_this();
    auto mine = std::make_unique<SimulatedStream>(shared, connection, 0);
    Status status = port->second->offer(std::make_unique<SimulatedStream>(shared, connection, 1))
                        .with_prefix(str_cat("cannot connect to '", attempt->address, "': "));
    answer(network, attempt, std::move(status), std::move(mine));
  }

  static void answer(State& network, const std::shared_ptr<SimulatedAttempt>& attempt, Status status,
                     std::unique_ptr<Stream> stream) {
    network.after(network.delay(), [attempt, status = std::move(status), stream = std::move(stream)](State&) mutable {
      if (!status.ok()) stream = nullptr;
      attempt->finish(std::move(status), std::move(stream));
    });
  }

  const std::shared_ptr<State> network_;
  const std::shared_ptr<SimulatedProcess> process_;
};

}  // namespace detail

/// Without power its connections end as any others, but nobody is told.
void SimulatedNetwork::State::forget_process(const SimulatedProcess& process) {
  const std::lock_guard lock(mutex);
  const bool has_power = !without_power.contains(process.name());
  std::vector<std::shared_ptr<detail::SimulatedPort>> closed;
  for (const auto& [address, port] : ports) {
    if (port->process.get() == &process) closed.push_back(port);
  }
  std::erase_if(ports, [&](const auto& entry) { return entry.second->process.get() == &process; });
  for (const auto& port : closed) port->close();
  const auto all = connections;
  for (const auto& [number, connection] : all) {
    for (int at = 0; at < 2; ++at) {
      if (connection->sides[at].process.get() == &process) close(connection, at, has_power);
    }
  }
}

SimulatedNetwork::SimulatedNetwork(Simulation& simulation, const SimulatedNetworkOptions& options)
    : state_(std::make_shared<State>(simulation, options)) {
  if (options.window_bytes == 0)
    throw_error(Status::invalid_argument("a connection needs a window of at least one byte"));
  if (!(options.interface_bytes_per_second >= 0)) {
    throw_error(Status::invalid_argument("an interface cannot carry fewer than no bytes"));
  }
}
SimulatedNetwork::~SimulatedNetwork() = default;

std::shared_ptr<Transport> SimulatedNetwork::transport(const std::shared_ptr<SimulatedProcess>& process) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->without_power.erase(process->name());
    state_->resume();
  }
  process->on_crash([state = std::weak_ptr<State>(state_), weak = std::weak_ptr<SimulatedProcess>(process)] {
    const auto network = state.lock();
    const auto crashed = weak.lock();
    if (network != nullptr && crashed != nullptr) network->forget_process(*crashed);
  });
  return std::make_shared<detail::SimulatedTransport>(state_, process);
}

void SimulatedNetwork::set_link(const SimulatedLink& link) {
  const std::lock_guard lock(state_->mutex);
  state_->link = link;
}

void SimulatedNetwork::block(const std::string& from, const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  state_->blocked.emplace(from, to);
}

void SimulatedNetwork::unblock(const std::string& from, const std::string& to) {
  const std::lock_guard lock(state_->mutex);
  state_->blocked.erase({from, to});
  state_->resume();
}

void SimulatedNetwork::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->blocked.clear();
  for (const auto& [number, connection] : state_->connections) {
    for (int at = 0; at < 2; ++at) {
      if (connection->sides[at].stalled_until <= state_->simulation.now()) continue;
      connection->sides[at].stalled_until = {};
      connection->sides[1 - at].is_delivering = false;  // the event that would is too late
    }
  }
  state_->resume();
}

void SimulatedNetwork::reset(const std::string& a, const std::string& b, double share) {
  const std::lock_guard lock(state_->mutex);
  state_->for_each_between(a, b, share, [&](const auto& connection, int at) {
    state_->break_off(connection, at);
    state_->break_off(connection, 1 - at);
  });
}

void SimulatedNetwork::forget(const std::string& a, const std::string& b, double share) {
  const std::lock_guard lock(state_->mutex);
  state_->for_each_between(a, b, share, [&](const auto& connection, int at) { state_->break_off(connection, at); });
}

void SimulatedNetwork::stall(const std::string& reader, const std::string& from, Duration time) {
  const std::lock_guard lock(state_->mutex);
  const Clock::time_point until = state_->simulation.after(time);
  state_->for_each_between(reader, from, 1, [&](const auto& connection, int at) {
    connection->sides[at].stalled_until = std::max(connection->sides[at].stalled_until, until);
  });
}

void SimulatedNetwork::power_off(SimulatedProcess& process) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->without_power.insert(process.name());
  }
  process.crash();
}

std::size_t SimulatedNetwork::num_connections() const {
  const std::lock_guard lock(state_->mutex);
  return state_->connections.size();
}

}  // namespace dflow::net
