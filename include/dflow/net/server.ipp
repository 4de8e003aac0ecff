#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/base/termination_signal.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/wait_until.hpp>
#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/net/cluster_comparison.hpp>
#include <dflow/net/cluster_peers.hpp>
#include <dflow/net/inspect/metrics.hpp>
#include <dflow/net/log_lines.hpp>
#include <dflow/net/master/cluster_tasks.hpp>
#include <dflow/net/master/master.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/tasks/peer_tensors.hpp>
#include <dflow/net/tasks/peers.hpp>
#include <dflow/net/tasks/wait_watch.hpp>
#include <dflow/net/tasks/worker.hpp>
#include <dflow/net/transport/accept_loop.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>
#include <dflow/runtime/default_devices.hpp>
#include <dflow/session/target.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace dflow::net {

namespace detail {

std::shared_ptr<ThreadPool> make_server_pool(int num_threads) {
  const int threads = num_threads == 0 ? available_cores() : num_threads;
  return std::make_shared<WorkStealingPool>(std::max(threads, 1));
}

/// Errors: InvalidArgument for a process that is no task with an address of its own.
void check_is_task(const ClusterSpec& cluster) {
  if (!cluster.has_task()) {
    throw_error(Status::invalid_argument(
        "the cluster's spec does not say which of its tasks this process is: --job and --task do; a client that is "
        "none has net::connect"));
  }
  const bool is_alone = cluster.is_local() && cluster.num_tasks(cluster.job()) == 1;
  if (cluster.bind_address().empty() && !is_alone) {
    throw_error(
        Status::invalid_argument(str_cat("'", cluster.task_name(),
                                         "' has no address in the cluster to listen at: --bind names one, or it is a "
                                         "client, by net::connect")));
  }
}

/// The sessions of others, also those that it keeps for clients as their master, and their steps.
TaskStatus status_of_task(const Worker& worker, const Master* master) {
  TaskStatus status = worker.status();
  if (master != nullptr) master->add_to(status);
  return status;
}

/// The work of this task for others, while it runs. Worker, master and tensors have the connections, so this object
/// does not keep them.
class ServerService final : public Peers::Service {
 public:
  ServerService(std::weak_ptr<Worker> worker, std::weak_ptr<Master> master, std::weak_ptr<PeerTensors> tensors,
                std::shared_ptr<ClusterComparison> comparison,
                std::shared_ptr<const std::atomic<std::uint64_t>> next_step_entry)
      : worker_(std::move(worker)),
        master_(std::move(master)),
        tensors_(std::move(tensors)),
        comparison_(std::move(comparison)),
        next_step_entry_(std::move(next_step_entry)) {}

  void on_request(const TaskIdentity& client, const Visit& visit, Incoming& request, Responder& respond) override {
    if (comparison_ != nullptr && request.method == static_cast<std::uint16_t>(Method::compare_clusters)) {
      return respond(comparison_->answer(client, request.body));
    }
    if (const std::shared_ptr<Master> master = master_.lock(); master != nullptr) {
      if (master->handle(visit, request, respond)) return;
    }
    if (client.op_fingerprint == 0 && needs_ops(static_cast<Method>(request.method))) {
      return respond(Status::failed_precondition(
          str_cat("'", client.task, "' has no ops, and request ", request.method, " is for clients that have ops")));
    }
    const std::shared_ptr<Worker> worker = worker_.lock();
    if (worker == nullptr) return respond(Status::unavailable("this task has ended"));
    if (request.method == static_cast<std::uint16_t>(Method::task_status)) {
      expect_no_body(request.body);
      return respond(Outgoing{to_body(status_of_task(*worker, master_.lock().get())), {}});
    }
    if (worker->handle(visit, request, respond)) return;
    respond(Status::unimplemented(str_cat("there is no request of number ", request.method)));
  }
  void on_open(const std::shared_ptr<Connection>& connection) override {
    if (comparison_ != nullptr) comparison_->compare(connection);
  }
  void on_gone(const Visit& visit, const Status& why) override {
    if (const std::shared_ptr<Master> master = master_.lock()) master->forget(visit, why);
    if (const std::shared_ptr<Worker> worker = worker_.lock()) worker->forget(visit, why);
  }
  void on_lost(const TaskIdentity& peer, std::uint64_t mark, const Status& why) override {
    if (const std::shared_ptr<Worker> worker = worker_.lock()) worker->lose_tensors_of(peer, mark, why);
  }
  void on_unread(const std::string& task, std::vector<std::uint64_t> steps, const Status& why) override {
    if (const std::shared_ptr<PeerTensors> tensors = tensors_.lock()) tensors->recall(task, std::move(steps), why);
  }
  std::uint64_t mark() const noexcept override { return next_step_entry_->load(); }

 private:
  const std::weak_ptr<Worker> worker_;
  const std::weak_ptr<Master> master_;  ///< of nobody, where this process is no task
  const std::weak_ptr<PeerTensors> tensors_;
  const std::shared_ptr<ClusterComparison> comparison_;  ///< null, where this process is no task
  const std::shared_ptr<const std::atomic<std::uint64_t>> next_step_entry_;
};

}  // namespace detail

/// The state of a server, or of a client of a cluster. Targets hold it too.
struct Server::State : std::enable_shared_from_this<Server::State> {
  ClusterSpec cluster;
  ServerOptions options;
  std::string task;
  std::string address;
  std::vector<std::shared_ptr<Device>> devices;
  std::shared_ptr<Peers> peers;
  std::shared_ptr<StepTable> steps;
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Master> master;  ///< null in a client
  std::shared_ptr<WaitWatch> watch;
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  std::shared_ptr<TaskCounters> counters = std::make_shared<TaskCounters>();
  std::shared_ptr<ClientBudgets> budgets;
  std::shared_ptr<TaskLog> log;
  std::shared_ptr<dflow::detail::LogQueue> lines;
  std::shared_ptr<MetricsServer> metrics;
  std::shared_ptr<AcceptLoop> accepting;
  std::shared_ptr<std::atomic<std::uint64_t>> next_session = std::make_shared<std::atomic<std::uint64_t>>(1);

  State(const ClusterSpec& spec, ServerOptions given, bool is_task) : cluster(spec), options(std::move(given)) {
    if (is_task) detail::check_is_task(cluster);
    ServerOptions& o = options;
    if (o.clock == nullptr) o.clock = std::make_shared<RealClock>();
    if (o.random == nullptr) o.random = system_seed;
    if (o.incarnation == 0) o.incarnation = is_task ? incarnation_at(o.clock->wall_now(), o.random()) : o.random();
    if (o.pool == nullptr && is_task) o.pool = detail::make_server_pool(o.num_threads);
    if (o.pool == nullptr) o.pool = std::make_shared<ElasticPool>(ElasticPoolOptions{.name = "dflow-client"});
    task = is_task ? cluster.task_name() : detail::name_of_client("client", o.incarnation);
    lines = detail::log_lines(task, o);
    o.log = dflow::detail::QueuedLog{lines};
    if (o.transport == nullptr) {
      o.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.clock = o.clock, .log = o.log});
    }
    if (is_task) make_devices();
    make_peers(is_task);
  }
  ~State() { lines->close(); }

  std::vector<std::string> other_tasks() const {
    std::vector<std::string> others;
    for (const ClusterSpec::Task& other : cluster.tasks()) {
      if (other.name != task) others.push_back(other.name);
    }
    return others;
  }

  void make_devices() {
    ServerOptions& o = options;
    devices = o.devices;
    if (devices.empty()) {
      if (o.allocator == nullptr) o.allocator = std::make_shared<PoolAllocator>(default_cpu_allocator());
      devices = make_default_devices({.count = o.num_cpu_devices,
                                      .task = task,
                                      .incarnation = o.incarnation,
                                      .pool = o.pool,
                                      .allocator = o.allocator,
                                      .reproducible = o.reproducible,
                                      .draw_seed = o.draw_seed,
                                      .files = o.files});
    } else if (o.files != nullptr) {
      for (const std::shared_ptr<Device>& device : devices) {
        if (device != nullptr) set_device_files(device->context(), o.files);
      }
    }
    for (const std::shared_ptr<Device>& device : devices) {
      if (device != nullptr && detail::task_of(device->name()) == task &&
          device->context().incarnation == o.incarnation) {
        continue;
      }
      throw_error(Status::invalid_argument(str_cat("the device '", device == nullptr ? "null" : device->name(),
                                                   "' is not of ", task, " and of its incarnation")));
    }
  }

  void make_peers(bool is_task) {
    log = std::make_shared<TaskLog>(options.clock);
    Peers::Options to = detail::peers_of(cluster, {{}, task, options.incarnation, options.ops.ops().fingerprint()},
                                         options.transport, options.clock, options.random);
    to.connection.log = options.log;
    to.connection.log_of_peer = [to = lines](std::string_view line, std::string_view peer) { to->add(line, peer); };
    to.connection.heartbeat_interval = options.silence_timeout / 5;
    to.connection.heartbeat_timeout = options.silence_timeout;
    to.connection.traffic = traffic;
    budgets = std::make_shared<ClientBudgets>(options.client_memory_limit_bytes, options.task_memory_limit_bytes);
    to.connection.budget = [of = budgets](const TaskIdentity& client) { return of->of(client); };
    if (const std::uint64_t most = options.client_memory_limit_bytes; most != 0) {
      to.connection.max_answer_bytes = std::min(to.connection.max_answer_bytes, most / 2);
    }
    to.pool = options.pool;
    std::shared_ptr<ClusterComparison> comparison;
    if (is_task) {
      if (!cluster.bind_address().empty())
        detail::check_exposure(*to.transport, task, cluster.bind_address(), to.connection);
      comparison = std::make_shared<ClusterComparison>(cluster, options.log);
      to.connection.tasks_fingerprint = comparison->fingerprint();
    }
    peers = std::make_shared<Peers>(std::move(to));
    const auto tensors = std::make_shared<PeerTensors>(PeerTensors::Options{.task = task,
                                                                            .peers = peers,
                                                                            .clock = options.clock,
                                                                            .random = options.random,
                                                                            .pool = options.pool,
                                                                            .log = log});
    steps = std::make_shared<StepTable>(StepTable::Options{.task = task, .source = tensors});
    Worker::Options work;
    work.task = task;
    work.incarnation = options.incarnation;
    work.devices = devices;
    work.ops = options.ops;
    work.pool = options.pool;
    work.clock = options.clock;
    work.steps = steps;
    work.counters = counters;
    work.log = log;
    worker = std::make_shared<Worker>(std::move(work));
    if (is_task) make_master();
    peers->set_service(
        std::make_shared<detail::ServerService>(worker, master, tensors, comparison, steps->next_entry()));
    watch = std::make_shared<WaitWatch>(steps, options.clock, options.slow_wait, options.log);
    watch->start();
  }

  void make_master() {
    Master::Options keep;
    keep.task = task;
    keep.incarnation = options.incarnation;
    keep.devices = devices;
    keep.ops = options.ops;
    keep.other_tasks = other_tasks();
    keep.peers = peers;
    keep.steps = steps;
    keep.pool = options.pool;
    keep.clock = options.clock;
    keep.random = options.random;
    keep.next_session = [next = next_session] { return next->fetch_add(1); };
    keep.startup_timeout = options.startup_timeout;
    keep.counters = counters;
    keep.log = log;
    master = std::make_shared<Master>(std::move(keep));
  }

  /// A task without an address to listen at has no listener for other tasks and clients.
  void listen() {
    if (const std::string at = cluster.bind_address(); !at.empty()) {
      accepting =
          std::make_shared<AcceptLoop>(options.transport->listen(at), AcceptLoop::Options{options.clock, options.log},
                                       [weak = weak_from_this()](std::unique_ptr<Stream> stream) {
                                         if (const std::shared_ptr<State> self = weak.lock())
                                           self->peers->accept(std::move(stream));
                                       });
      address = accepting->address();
    }
    if (!options.metrics_address.empty()) {
      MetricsServer::Options serve;
      serve.transport = options.transport;
      serve.clock = options.clock;
      serve.log = options.log;
      serve.text = [weak = weak_from_this()] {
        const std::shared_ptr<State> self = weak.lock();
        return self == nullptr ? std::string() : self->metrics_text();
      };
      metrics = std::make_shared<MetricsServer>(std::move(serve));
      metrics->listen(options.metrics_address);
    }
    if (accepting != nullptr) accepting->start();
  }

  std::string metrics_text() const {
    const TaskStatus status = detail::status_of_task(*worker, master.get());
    TaskGauges gauges;
    gauges.task = task;
    gauges.received_bytes = traffic->received_bytes.load();
    gauges.sent_bytes = traffic->sent_bytes.load();
    gauges.connections = peers->connections().size();
    gauges.sessions = status.num_sessions;
    gauges.running_steps = status.num_steps;
    gauges.pending_receives = status.num_waits;
    gauges.client_bytes = budgets->used();
    gauges.resident_bytes = resident_memory_bytes();
    return prometheus_text(*counters, gauges);
  }

  /// The owner of this object may destroy it as soon as another call knows of the stop.
  void stop() {
    const std::shared_ptr<State> kept = shared_from_this();
    {
      std::unique_lock lock(mutex);
      if (is_stopping) return wait_until_stopped(lock);
      is_stopping = true;
      stopping_thread = std::this_thread::get_id();
    }
    // If there is no memory for one action, all other parts stop, and every waiting thread goes on.
    Status why = Status::out_of_memory();
    detail::tell([&] { why = Status::unavailable(str_cat(task, " has stopped")).with_task(task); });
    if (accepting != nullptr) accepting->close();
    detail::tell([&] { watch->stop(); });
    detail::tell([&] {
      if (metrics != nullptr) metrics->close();
    });
    detail::tell([&] {
      if (master != nullptr) master->stop(why);
    });
    detail::tell([&] { worker->stop(why); });
    detail::tell([&] { peers->close(why); });
    {
      const std::lock_guard lock(mutex);
      is_stopped = true;
      stopped.notify_all();
    }
    has_ended.request_stop();
    lines->flush();
  }

  void join(const JoinOptions& until) {
    const std::shared_ptr<State> kept = shared_from_this();
    constexpr Duration interval = std::chrono::milliseconds(100);  // a signal's handler can wake no thread
    const TerminationSignal termination;
    Clock& clock = *options.clock;
    std::optional<Clock::time_point> most;  // after SIGTERM
    Clock::time_point last_used = clock.now();
    std::uint64_t num_seen = 0;
    const auto is_over = [&] {
      detail::SessionCount count = worker->count_sessions();
      if (master != nullptr) {
        const detail::SessionCount whole = master->count_sessions();
        count = {count.now + whole.now, count.ever + whole.ever};
      }
      const bool is_used = count.now > 0;
      if (is_used || count.ever != num_seen) last_used = clock.now();  // also of one that has come and gone meanwhile
      num_seen = count.ever;
      if (until.idle && num_seen > 0 && clock.now() - last_used >= *until.idle) return true;
      if (!termination.has_come() && !until.stop.stop_requested()) return false;
      if (!most) {
        most = clock.after(until.grace);
        if (is_used) options.log(str_cat(task, " was told to end: it waits for its clients' sessions to end"));
      }
      return (!is_used && clock.now() - last_used >= interval) || clock.now() >= *most;
    };
    const std::stop_token has_stopped = has_ended.get_token();
    while (!is_stopping_here()) {
      dflow::detail::wait_until(*options.pool, clock, clock.after(interval), has_stopped);
      if (has_stopped.stop_requested()) return;
      if (is_over()) return stop();
    }
  }

  /// The code that stops the server may call a function that waits for the stop: that call returns at once.
  void wait_until_stopped(std::unique_lock<std::mutex>& lock) {
    stopped.wait(lock, [&] { return has_stopped_for_us(); });
  }
  bool has_stopped_for_us() const {
    return is_stopped || (is_stopping && stopping_thread == std::this_thread::get_id());
  }
  bool is_stopping_here() {
    const std::lock_guard lock(mutex);
    return has_stopped_for_us();
  }

  std::mutex mutex;
  std::condition_variable stopped;
  bool is_stopping = false;
  std::thread::id stopping_thread;
  bool is_stopped = false;
  std::stop_source has_ended;  ///< when `is_stopped`, for a thread in `join`
};

namespace detail {

class ClusterTarget final : public SessionTarget {
 public:
  ClusterTarget(std::shared_ptr<Server::State> state, const std::vector<std::string>& filters, bool owns)
      : state_(std::move(state)), filters_(filters), owns_(owns) {
    std::vector<std::string> tasks = state_->other_tasks();
    const bool is_alone = tasks.empty();
    tasks.push_back(state_->task);
    // A program that runs alone has no tasks to leave out, and is the same program that a cluster runs.
    if (!is_alone) filters_.check(tasks);
  }
  ~ClusterTarget() override {
    if (!owns_) return;
    state_->stop();
    state_->lines->close();
  }

  std::vector<std::shared_ptr<Device>> local_devices() const override { return state_->devices; }
  std::string task() const override { return state_->task; }
  std::uint64_t incarnation() const noexcept override { return state_->options.incarnation; }
  void note_step(Code code) noexcept override { state_->counters->count_step(code); }
  std::shared_ptr<FileSystem> files() const override { return state_->options.files; }

  std::unique_ptr<RemoteTasks> open_tasks(const SessionOptions& wanted) override {
    if (wanted.ops.ops().fingerprint() != state_->options.ops.ops().fingerprint()) {
      throw_error(Status::invalid_argument("the session has other ops than its target: give both the same `ops`"));
    }
    std::vector<std::string> tasks;
    for (const std::string& other : state_->other_tasks()) {
      if (filters_.want(other)) tasks.push_back(other);
    }
    ClusterTasks::Options options;
    options.client = state_->task;
    options.session = state_->next_session->fetch_add(1);
    options.peers = state_->peers;
    options.steps = state_->steps;
    options.clock = state_->options.clock;
    options.pool = state_->options.pool;
    options.log = state_->log;
    const Duration most = state_->options.startup_timeout;
    return ClusterTasks::find(std::move(options), tasks, std::min(wanted.startup_timeout.value_or(most), most),
                              wanted.stop);
  }

 private:
  const std::shared_ptr<Server::State> state_;
  const TaskFilters filters_;
  const bool owns_;
};

}  // namespace detail

Server::Server(const ClusterSpec& cluster, ServerOptions options)
    : state_(std::make_shared<State>(cluster, std::move(options), true)) {
  state_->listen();
}

Server::~Server() {
  stop();
  state_->lines->close();
}

std::shared_ptr<SessionTarget> Server::target(std::vector<std::string> filters) const {
  return std::make_shared<detail::ClusterTarget>(state_, filters, false);
}

int Server::join(const JoinOptions& options) {
  state_->join(options);
  return 0;
}

void Server::stop() { state_->stop(); }
const std::string& Server::task() const noexcept { return state_->task; }
const std::string& Server::address() const noexcept { return state_->address; }
std::string Server::metrics_address() const {
  return state_->metrics == nullptr ? std::string() : state_->metrics->address();
}
std::uint64_t Server::incarnation() const noexcept { return state_->options.incarnation; }
const std::vector<std::shared_ptr<Device>>& Server::devices() const noexcept { return state_->devices; }

std::shared_ptr<SessionTarget> connect(const ClusterSpec& cluster, ServerOptions options) {
  return std::make_shared<detail::ClusterTarget>(std::make_shared<Server::State>(cluster, std::move(options), false),
                                                 std::vector<std::string>(), true);
}

}  // namespace dflow::net
