// Tasks in processes of their own, over TCP on loopback; a side of `benchmarks/contest.py cluster`.
// usage: bench_contest_cluster THREADS [tcp]    threads of each task's pool
//
// Null steps go by the Unix sockets that tasks of one machine use, or by TCP if the second argument says so. Bytes go
// by TCP, unless the name of the row says otherwise.
//
// A null step is the measurement of Abadi et al. 2016 (arXiv:1605.08695, section 6.2): each worker fetches a scalar,
// its part of 100 MB, or 32 rows of a table from each parameter server, and does nothing with it. All workers run at
// once, as fast as they can. The time of a step is the time that a worker had, over the number of steps that it did.
#include "cluster_tasks.hpp"
#include "contestant.hpp"

#include <dflow/base/system_seed.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>

namespace df = dflow;
namespace net = dflow::net;
using df::bench::Child;
using df::bench::Contestant;

namespace {

constexpr std::int64_t all_dense = 25'000'000;  // floats
constexpr std::int64_t all_rows = 1'000'000;    // of 64 floats

std::shared_ptr<net::Transport> transport_of(bool uses_local_sockets, bool lets_others_run = false) {
  return std::make_shared<net::AsioTransport>(
      net::AsioTransportOptions{.uses_local_sockets = uses_local_sockets, .lets_others_run = lets_others_run});
}

// ---- null steps ----

int run_task(const std::vector<std::string>& arguments) {
  const net::ClusterSpec spec = df::bench::spec_of(arguments);
  const std::string& kind = arguments.at(4);
  const int threads = std::stoi(arguments.at(5));
  const bool is_tcp = arguments.at(6) == "tcp";
  // Bytes are for the same thread to copy, however many come at once.
  const bool lets_others_run =
      kind != "dense" && spec.tasks().size() > 4 * static_cast<std::size_t>(df::available_cores());
  net::Server server(spec, {.num_threads = threads, .transport = transport_of(!is_tcp, lets_others_run)});
  if (spec.job() == "ps") {
    df::bench::serve_commands([](const std::string&) { return "done"; });
    return 0;
  }
  df::Graph graph({.seed = 1});
  const auto num_ps = static_cast<std::int64_t>(spec.num_tasks("ps"));
  std::vector<df::Operation> all;
  const auto fetch = [&](const auto& value) {
    const auto here = graph.device(server.task());
    all.push_back(df::identity(value).operation());
  };
  for (std::int64_t i = 0; i < num_ps; ++i) {
    std::optional<df::Output<float>> value;
    {
      const auto there = graph.device("/job:ps/task:" + std::to_string(i));
      const std::string name = "v" + std::to_string(i);
      if (kind == "scalar") {
        value = df::Variable<float>(graph, df::zeros<float>(graph, {}), {.name = name});
      } else if (kind == "dense") {
        value = df::Variable<float>(graph, df::zeros<float>(graph, {all_dense / num_ps}), {.name = name});
      } else {
        const std::int64_t rows = all_rows / num_ps;
        const df::Variable<float> table(graph, df::zeros<float>(graph, {rows, 64}), {.name = name});
        const auto ids = df::random_uniform_int<std::int32_t>(graph, {32}, {.maxval = static_cast<std::int32_t>(rows)});
        value = df::gather(table, ids);
      }
    }
    fetch(*value);
  }
  const df::Operation initialize = df::initialize_variables(graph);
  const df::Operation step = df::group(all);

  std::optional<df::Session> session;
  std::optional<decltype(session->prepare(df::feeds(), df::fetches(step)))> prepared;
  df::bench::serve_commands([&](const std::string& line) -> std::string {
    using Seconds = std::chrono::duration<double>;
    if (!session) session.emplace(graph, df::SessionOptions{.target = server.target({"/job:ps"})});
    if (line == "initialize") {
      session->run(initialize);
      return "done";
    }
    if (!prepared) prepared.emplace(session->prepare(df::feeds(), df::fetches(step)));
    const double duration = std::stod(line) / 1e3;
    const auto begin = std::chrono::steady_clock::now();
    double took = 0;
    std::int64_t steps = 0;
    do {
      (*prepared)();
      ++steps;
      took = Seconds(std::chrono::steady_clock::now() - begin).count();
    } while (took < duration);
    return std::to_string(static_cast<double>(steps) / took);
  });
  return 0;
}

void add_null_step(Contestant& rows, const std::string& kind, int ps, int workers, int threads, bool is_tcp) {
  const std::string name = "null step, " + kind + ", " + std::to_string(ps) + " x " + std::to_string(workers);
  rows.measured(name, [=] {
    auto tasks = std::make_shared<df::bench::Tasks>(
        ps, workers, std::vector<std::string>{kind, std::to_string(threads), is_tcp ? "tcp" : "local"});
    tasks->workers.front().tell("initialize");
    tasks->workers.front().hear();
    tasks->ask_workers("0");  // all have their session then
    return [tasks](double milliseconds) {
      double steps_per_second = 0;
      for (const std::string& answer : tasks->ask_workers(std::to_string(milliseconds))) {
        steps_per_second += std::stod(answer);
      }
      return 1e9 * static_cast<double>(tasks->workers.size()) / steps_per_second;
    };
  });
}

// ---- collectives ----

/// A worker that holds a value; the first worker runs steps that give the sum of the values to all.
int run_member(const std::vector<std::string>& arguments) {
  const net::ClusterSpec spec = df::bench::spec_of(arguments);
  net::Server server(spec, {.num_threads = std::stoi(arguments.at(5)), .transport = transport_of(false)});
  const std::int64_t size = std::stoll(arguments.at(7)) / 4;
  df::Graph graph({.seed = 1});
  std::vector<df::Output<float>> values;
  const auto there = [&](std::size_t i) { return graph.device("/job:worker/task:" + std::to_string(i)); };
  for (std::size_t i = 0; i < static_cast<std::size_t>(spec.num_tasks("worker")); ++i) {
    const auto on = there(i);
    values.push_back(
        df::Variable<float>(graph, df::fill(graph, {size}, 1.0f), {.name = "v" + std::to_string(i)}).read());
  }
  std::vector<df::Operation> all;
  const auto sums = df::all_reduce(values);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto on = there(i);
    all.push_back(df::identity(sums[i]).operation());
  }
  const df::Operation initialize = df::initialize_variables(graph);
  const df::Operation step = df::group(all);
  std::optional<df::Session> session;
  std::optional<decltype(session->prepare(df::feeds(), df::fetches(step)))> prepared;
  df::bench::serve_commands([&](const std::string& line) -> std::string {
    if (!session) {
      session.emplace(graph, df::SessionOptions{.target = server.target()});
      session->run(initialize);
      prepared.emplace(session->prepare(df::feeds(), df::fetches(step)));
    }
    std::vector<double> times;
    for (double spent = 0; times.empty() || spent < std::stod(line) * 1e6; spent += times.back()) {
      const double begin = df::bench::now_ns(df::bench::Clock::wall);
      (*prepared)();
      times.push_back(df::bench::now_ns(df::bench::Clock::wall) - begin);
    }
    return std::to_string(df::bench::median(std::move(times)));
  });
  return 0;
}

void add_all_reduce(Contestant& rows, const std::string& size, std::size_t bytes, int members, int threads) {
  rows.measured("all-reduce of " + std::to_string(members) + ", " + size, [=] {
    auto tasks = std::make_shared<df::bench::Tasks>(
        0, members, std::vector<std::string>{"all-reduce", std::to_string(threads), "tcp", std::to_string(bytes)});
    tasks->workers.front().tell("0");
    tasks->workers.front().hear();
    return [tasks](double milliseconds) {
      tasks->workers.front().tell(std::to_string(milliseconds));
      return std::stod(tasks->workers.front().hear());
    };
  });
}

// ---- bytes ----

/// An event that can be waited for, once.
class Event {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

net::ConnectionOptions options_of(const std::string& task) {
  net::ConnectionOptions options;
  options.self = {{}, task, 1, 1};
  options.clock = std::make_shared<df::RealClock>();
  options.random = df::system_seed;
  options.window_bytes = std::uint64_t{8} << 20;
  return options;
}

/// Answers a request with as many bytes as it says; the bytes lie ready.
class Bytes final : public net::Connection::Handler {
 public:
  void on_request(const std::shared_ptr<net::Connection>&, net::Incoming request, net::Responder respond) override {
    net::Outgoing reply;
    const std::size_t count = std::stoul(request.body);
    if (count <= 4) {
      reply.body.assign(count, 'x');
    } else {
      bytes_->resize(std::max(bytes_->size(), count));
      reply.payload.parts.push_back(std::span(*bytes_).first(count));
      reply.payload.owner = bytes_;
    }
    respond(std::move(reply));
  }
  void on_closed(net::Connection&, const df::Status&) override {}

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_ = std::make_shared<std::vector<std::byte>>();
};

/// The other side: `bytes` answers requests of a Connection, `echo` sends back the bytes of the bare stream.
int run_answerer(const std::vector<std::string>& arguments) {
  const std::shared_ptr<net::Transport> transport = transport_of(arguments.at(2) == "local");
  const auto listener = transport->listen("127.0.0.1:0");
  std::unique_ptr<net::Stream> stream;
  Event accepted, opened;
  listener->accept(stream, [&](const df::Status&) { accepted.set(); });
  std::cout << listener->address() << std::endl;
  accepted.wait();
  std::shared_ptr<net::Connection> connection;
  std::byte buffer[64];
  std::size_t count = 0;
  std::function<void()> echo = [&] {
    stream->read_some(buffer, count, [&](const df::Status& status) {
      if (!status.ok()) return;
      const std::span<const std::byte> all = std::span(buffer).first(count);
      if (stream->try_write({&all, 1}) == count) echo();
    });
  };
  if (arguments.at(1) == "echo") {
    echo();
  } else {
    net::Connection::open(std::move(stream), net::Role::acceptor, options_of("/job:ps/replica:0/task:0"),
                          std::make_shared<Bytes>(),
                          [&](const df::Status&, const std::shared_ptr<net::Connection>& open) {
                            connection = open;
                            opened.set();
                          });
    opened.wait();
  }
  std::string line;
  std::getline(std::cin, line);
  if (connection != nullptr) connection->close({});
  if (stream != nullptr) stream->close();
  return 0;
}

std::unique_ptr<net::Stream> connect(net::Transport& transport, Child& answerer) {
  std::string address = answerer.hear();
  address.pop_back();
  std::unique_ptr<net::Stream> stream;
  Event connected;
  transport.connect(address, df::Clock::never, stream, [&](const df::Status&) { connected.set(); });
  connected.wait();
  return stream;
}

/// Requests one after the other: as in a step, the completion of one request makes the next.
struct Asking {
  Child answerer;
  std::shared_ptr<net::Transport> transport;
  std::shared_ptr<net::Connection> connection;
  std::shared_ptr<std::vector<std::byte>> memory;

  Asking(std::size_t bytes, bool is_local)
      : answerer({"answer", "bytes", is_local ? "local" : "tcp"}),
        transport(transport_of(is_local)),
        memory(std::make_shared<std::vector<std::byte>>(bytes)) {
    Event opened;
    net::Connection::open(connect(*transport, answerer), net::Role::connector,
                          options_of("/job:worker/replica:0/task:0"), nullptr,
                          [&](const df::Status&, const std::shared_ptr<net::Connection>& open) {
                            connection = open;
                            opened.set();
                          });
    opened.wait();
  }
  ~Asking() { connection->close({}); }

  void ask(int times, Event& done) {
    if (times == 0) return done.set();
    net::Call call;
    call.message.body = std::to_string(memory->size());
    call.place_payload = [this](std::string_view, std::uint64_t) -> df::StatusOr<net::PayloadMemory> {
      return net::PayloadMemory{*memory, memory};
    };
    connection->call(std::move(call),
                     [this, times, &done](const df::Status&, const std::string&) { ask(times - 1, done); });
  }
};

struct Echoing {
  Child answerer{{"answer", "echo", "tcp"}};
  std::shared_ptr<net::Transport> transport = transport_of(false);
  std::unique_ptr<net::Stream> stream = connect(*transport, answerer);
  std::byte buffer[4] = {};
  std::size_t count = 0;

  ~Echoing() { stream->close(); }

  void ask(int times, Event& done) {
    if (times == 0) return done.set();
    const std::span<const std::byte> all(buffer);
    stream->try_write({&all, 1});
    stream->read_some(buffer, count, [this, times, &done](const df::Status&) { ask(times - 1, done); });
  }
};

template <class Side, class... Args>
Contestant::Measure by_turns(const Args&... args) {
  auto side = std::make_shared<Side>(args...);
  return [side](double milliseconds) {
    std::vector<double> times;
    for (double spent = 0; times.empty() || spent < milliseconds * 1e6;) {
      const int together = times.empty() || times.back() > 1e6 ? 1 : 100;
      Event done;
      const double begin = df::bench::now_ns(df::bench::Clock::wall);
      side->ask(together, done);
      done.wait();
      times.push_back((df::bench::now_ns(df::bench::Clock::wall) - begin) / together);
      spent += times.back() * together;
    }
    return df::bench::median(std::move(times));
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (!arguments.empty() && arguments[0] == "task") {
      return arguments.at(4) == "all-reduce" ? run_member(arguments) : run_task(arguments);
    }
    if (!arguments.empty() && arguments[0] == "answer") return run_answerer(arguments);
    const int threads = arguments.empty() ? 1 : std::stoi(arguments[0]);
    const bool is_tcp = arguments.size() > 1 && arguments[1] == "tcp";
    Contestant rows;
    if (!is_tcp) {
      rows.measured("round trip 4 B, stream alone", [] { return by_turns<Echoing>(); });
      for (const bool is_local : {false, true}) {
        const auto add = [&](const std::string& name, std::size_t bytes) {
          rows.measured(is_local ? name + ", Unix socket" : name, [=] { return by_turns<Asking>(bytes, is_local); });
        };
        add("round trip 4 B", 4);
        add("1 MB", std::size_t{1} << 20);
        add("100 MB", std::size_t{100} << 20);
      }
      for (const int members : {2, 3}) {
        add_all_reduce(rows, "1 MB", std::size_t{1} << 20, members, threads);
        add_all_reduce(rows, "100 MB", std::size_t{100} << 20, members, threads);
      }
    }
    for (const std::string kind : {"scalar", "dense", "sparse"}) {
      for (const int n : {1, 4, 8}) add_null_step(rows, kind, n, n, threads, is_tcp);
      for (const int workers : {1, 10, 25, 50, 100}) add_null_step(rows, kind, 16, workers, threads, is_tcp);
    }
    return rows.serve();
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
