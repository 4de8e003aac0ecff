// The snippets of docs/distributed.md: run without flags, the cluster is this process.

#include <dflow/dflow.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

namespace df = dflow;

namespace {

int train(int argc, char** argv) {
  const df::Tensor<float> x({2, 3}, {1, 2, 3, 4, 5, 6});
  const df::Tensor<std::int32_t> y({2}, {0, 1});
  df::Graph graph({.seed = 1});
  // [same_program]
  auto cluster = df::net::ClusterSpec::from_flags(argc, argv);
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();

  auto on = graph.device(df::train::replica_device(cluster));  // variables over the ps tasks, the rest here
  // the model, unchanged
  auto images = df::placeholder<float>(graph, {df::dynamic, 3});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(images, 2), labels));
  auto train = df::train::Adam(1e-2f).minimize(loss);

  df::train::Supervisor supervisor(graph,
                                   {.session = {.target = server.target({"/job:ps"})}, .is_chief = cluster.is_chief()});
  const auto step = [&](df::Session& session) { return session.run({{images, x}, {labels, y}}, loss, train).scalar(); };
  float value = supervisor.run(step);
  // [same_program]
  for (int i = 0; i < 10; ++i) value = supervisor.run(step);
  return value < 2.0f ? 0 : 1;
}

int train_in_step(const df::net::ClusterSpec& cluster, df::net::Server& server) {
  df::Graph graph({.seed = 1});
  const auto on = graph.device(df::train::replica_device(cluster));
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto loss = df::reduce_mean(df::square(df::dense(x, 2)));
  const auto batch = [](std::int64_t) { return df::Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}); };
  const std::int64_t backups = 0, steps = 10;
  const std::string directory;
  // [in_step]
  const std::int64_t replicas = cluster.num_replicas();  // the chief, if there is one, and the workers
  df::train::SyncReplicas sync(df::train::Adam(1e-2f),
                               {.aggregate = replicas - backups, .replicas = replicas, .rank = cluster.replica_rank()});
  auto train = sync.minimize(loss);
  df::train::Supervisor supervisor(graph, sync.supervised({.session = {.target = server.target({"/job:ps"})},
                                                           .is_chief = cluster.is_chief(),
                                                           .checkpoint_dir = directory,
                                                           .save_every = std::chrono::minutes(10)}));
  sync.train(supervisor, steps, [&](df::Session& session, std::int64_t step) {
    session.run({{x, batch(step)}}, train);
  });
  // The chief evaluates here.
  sync.finish(supervisor);
  // [in_step]
  return 0;
}

int train_stale(const df::net::ClusterSpec& cluster, df::net::Server& server) {
  df::Graph graph({.seed = 1});
  const auto on = graph.device(df::train::replica_device(cluster));
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto loss = df::reduce_mean(df::square(df::dense(x, 2, {}, {.name = "stale"})));
  const auto batch = [](std::int64_t) { return df::Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}); };
  const std::int64_t steps = 10;
  // [stale]
  df::train::StaleSyncReplicas stale(
      df::train::Adam(1e-2f), {.staleness = 4, .replicas = cluster.num_replicas(), .rank = cluster.replica_rank()});
  auto train = stale.minimize(loss);
  df::train::Supervisor supervisor(
      graph, stale.supervised({.session = {.target = server.target({"/job:ps"})}, .is_chief = cluster.is_chief()}));
  for (std::int64_t i = 0; i < steps; ++i) {
    supervisor.run([&](df::Session& session) { session.run({{x, batch(i)}}, train); });
  }
  stale.finish(supervisor);
  // [stale]
  return 0;
}

int run_at_master(const df::net::ClusterSpec& cluster) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  auto loss = df::reduce_mean(df::square(df::dense(x, 2)));
  const df::Tensor<float> batch({2, 3}, {1, 2, 3, 4, 5, 6});
  // [at_master]
  auto master = df::net::remote_master(cluster, "/job:worker/task:0");
  df::Session session(graph, {.target = master});
  session.run(df::initialize_variables(graph));
  float value = session.run({{x, batch}}, loss).scalar();  // feeds go there, fetches come back

  for (const df::DeviceInfo& device : master->devices()) std::puts(device.name.c_str());
  master->reset();  // all variables and queues of the cluster are gone
  // [at_master]
  return value >= 0 ? 0 : 1;
}

int share_by_name(const df::net::ClusterSpec& cluster) {
  df::Graph graph;
  df::Session session(graph, {.target = df::net::connect(cluster)});
  const df::Tensor<float> x({3}, {1, 2, 3});
  // [by_name]
  auto on = graph.device("/job:ps/task:0");  // all processes that build this meet there
  auto example = df::placeholder<float>(graph, {3});
  df::FifoQueue<float> queue(graph, {.capacity = 64, .shapes = {{3}}, .shared_name = "examples"});
  df::Operation put = queue.enqueue(example);       // waits for room
  df::Output<float> batch = queue.dequeue_many(2);  // waits for two elements: [2, 3]
  df::Operation close = queue.close();  // what is in it can still be taken; more is OutOfRange, putting in Cancelled

  df::AnyOutput sums = df::apply<df::ConditionalAccumulator, float>(graph, {.shape = {3}, .shared_name = "sums"});
  auto step = df::constant(graph, std::int64_t{0});
  df::Operation give = df::build<df::AccumulatorApplyGradient>({sums, step, example});
  df::Output<float> mean(  // waits for two gradients
      df::build<df::AccumulatorTakeGradient>({sums, df::constant(graph, 2)}, {}, {}, df::type_args<float>()));

  session.run({.deadline = std::chrono::seconds(5)}, {{example, x}}, put);  // or DeadlineExceeded
  // [by_name]
  session.run({{example, x}}, put);
  for (int i = 0; i < 2; ++i) session.run({{example, x}}, give);
  const bool is_right = session.run(batch)(1, 2) == 3 && session.run(mean)(2) == 3;
  session.run(close);
  return is_right ? 0 : 1;
}

/// Takes certificates, so it is compiled only.
[[maybe_unused]] int serve_with_metrics(const df::net::ClusterSpec& cluster) {
  // [metrics]
  const int port = 9100 + (cluster.job() == "ps" ? 0 : 10) + cluster.task_index();
  df::net::Server server(cluster, {.metrics_address = std::to_string(port)});
  // [metrics]
  return server.join();
}

[[maybe_unused]] int serve_by_tls(const df::net::ClusterSpec& cluster) {
  // [tls]
  df::net::AsioTransportOptions sockets;  // <dflow/net/transport/sockets/asio_transport.hpp>
  sockets.tls = df::net::TlsOptions{
      .certificate_chain_file = "task.crt", .private_key_file = "task.key", .ca_file = "cluster.crt"};
  sockets.log = [](std::string_view line) { std::clog << line << '\n'; };  // who was turned away; else nobody is told
  df::net::ServerOptions options{.transport = std::make_shared<df::net::AsioTransport>(sockets)};
  df::net::Server server(cluster, options);  // of "ps=tls://a:2222;worker=tls://b:2222"; a client: net::connect
  // [tls]
  return server.join();
}

/// A cluster of one task at TCP, which takes a secret.
df::net::ClusterSpec one_task(const std::string& job, const std::string& address) {
  df::net::ClusterSpec cluster;
  cluster.add_task(job, 0, address);
  cluster.set_secret("known to this program");
  return cluster;
}

}  // namespace

int main(int argc, char** argv) {
  const df::net::ClusterSpec alone = df::net::ClusterSpec::local();
  df::net::Server server(alone);
  const int trained = train(argc, argv) + train_in_step(alone, server) + train_stale(alone, server);
  df::net::ClusterSpec there = one_task("worker", "127.0.0.1:0");
  there.set_task("worker", 0);
  df::net::Server worker(there);
  df::net::ClusterSpec elsewhere = one_task("ps", "127.0.0.1:0");
  elsewhere.set_task("ps", 0);
  df::net::Server ps(elsewhere);
  return trained + run_at_master(one_task("worker", worker.address())) + share_by_name(one_task("ps", ps.address()));
}
