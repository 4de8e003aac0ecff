// Tests of a task's master through its messages.
#include <dflow/net/master/master.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/dflow.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/net/client/inspect.hpp>
#include <dflow/net/server.hpp>
#include <dflow/net/tasks/peers.hpp>

#include <cmath>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../cluster_harness.hpp"
#include "support/errors.hpp"

namespace df = dflow;
namespace net = dflow::net;
using df::testing::MemoryCluster;

namespace {

/// A client that knows messages and names, and has no ops.
class ThinClient {
 public:
  struct Reply {
    df::Status status;
    std::string body;
    std::shared_ptr<std::vector<std::byte>> payload = std::make_shared<std::vector<std::byte>>();
  };

  ThinClient(MemoryCluster& cluster, int number, std::string master) : master_(std::move(master)) {
    net::Peers::Options options;
    options.transport = cluster.options().transport;
    options.connection.self = {{}, "/job:thin/replica:0/task:" + std::to_string(number), df::system_seed(), 0};
    options.connection.clock = std::make_shared<df::RealClock>();
    options.connection.random = df::system_seed;
    for (const auto& task : cluster.spec().tasks()) options.addresses.emplace(task.name, task.address);
    peers_ = std::make_shared<net::Peers>(std::move(options));
  }
  ~ThinClient() { leave(); }
  void leave() { peers_->close(df::Status::cancelled("the client has gone")); }

  std::future<Reply> begin(net::Method method, std::string body, net::Payload payload = {}) {
    auto promise = std::make_shared<std::promise<Reply>>();
    auto reply = std::make_shared<Reply>();
    net::Call call;
    call.method = static_cast<std::uint16_t>(method);
    call.message = {std::move(body), std::move(payload)};
    call.place_payload = [reply](std::string_view, std::uint64_t size) -> df::StatusOr<net::PayloadMemory> {
      reply->payload->resize(size);
      return net::PayloadMemory{std::span(*reply->payload), reply->payload};
    };
    peers_->call(master_, net::Channel::control, std::move(call),
                 [promise, reply](df::Status status, std::string said) {
                   reply->status = std::move(status);
                   reply->body = std::move(said);
                   promise->set_value(*reply);
                 });
    return promise->get_future();
  }
  Reply call(net::Method method, std::string body, net::Payload payload = {}) {
    return begin(method, std::move(body), std::move(payload)).get();
  }

  static net::Payload payload_of(const df::GraphDef& graph) {
    const auto bytes = std::make_shared<const std::string>(df::to_binary(graph));
    return {{net::detail::as_byte_span(*bytes)}, bytes};
  }
  Reply try_create(const df::GraphDef& graph, const net::CreateSession& create = {}) {
    return call(net::Method::create_session, net::to_body(create), payload_of(graph));
  }
  /// Creates a session and returns its number.
  std::uint64_t create(const df::GraphDef& graph) {
    const Reply reply = try_create(graph);
    df::throw_if_error(reply.status);
    const auto made = net::from_body<net::SessionVersion>(reply.body);
    CHECK(made.version == 0);
    return made.session;
  }
  std::future<Reply> begin_extend(std::uint64_t session, std::uint64_t version, const df::GraphDef& graph) {
    return begin(net::Method::extend_session, net::to_body(net::SessionVersion{session, version}), payload_of(graph));
  }
  std::future<Reply> begin_run(std::uint64_t session, std::vector<std::pair<std::string, df::AnyTensor>> feeds,
                               std::vector<std::string> fetches, std::vector<std::string> targets = {}) {
    net::RunSession run;
    run.session = session;
    std::vector<df::AnyTensor> tensors;
    for (const auto& [edge, tensor] : feeds) tensors.push_back(tensor);
    auto [described, payload] = net::to_payload(std::move(tensors));
    for (std::size_t i = 0; i < feeds.size(); ++i) run.feeds.emplace_back(feeds[i].first, described[i]);
    run.fetches = std::move(fetches);
    run.targets = std::move(targets);
    return begin(net::Method::run_session, net::to_body(run), std::move(payload));
  }
  std::vector<df::AnyTensor> run(std::uint64_t session, std::vector<std::pair<std::string, df::AnyTensor>> feeds,
                                 std::vector<std::string> fetches, std::vector<std::string> targets = {}) {
    const Reply reply = begin_run(session, std::move(feeds), std::move(fetches), std::move(targets)).get();
    df::throw_if_error(reply.status);
    std::span<const std::byte> elements(*reply.payload);
    std::vector<df::AnyTensor> tensors;
    for (const auto& tensor : net::from_body<net::RunSessionReply>(reply.body).fetches) {
      tensors.push_back(net::take_from_payload(tensor, elements));
    }
    return tensors;
  }
  Reply try_begin_partial(std::uint64_t session, std::vector<std::string> feeds, std::vector<std::string> fetches) {
    const net::BeginPartialRun begin{session, 0, false, std::move(feeds), std::move(fetches), {}};
    return call(net::Method::begin_partial_run, net::to_body(begin));
  }
  net::PartialRunName begin_partial(std::uint64_t session, std::vector<std::string> feeds,
                                    std::vector<std::string> fetches) {
    const Reply reply = try_begin_partial(session, std::move(feeds), std::move(fetches));
    df::throw_if_error(reply.status);
    return net::from_body<net::PartialRunName>(reply.body);
  }
  std::future<Reply> begin_continue(net::PartialRunName name, std::vector<std::pair<std::string, float>> feeds,
                                    std::vector<std::string> fetches, bool until_end = false) {
    std::vector<df::AnyTensor> tensors;
    for (const auto& [edge, value] : feeds) tensors.push_back(df::Tensor<float>(value));
    auto [described, payload] = net::to_payload(std::move(tensors));
    net::ContinuePartialRun next{name, {}, std::move(fetches), until_end};
    for (std::size_t i = 0; i < feeds.size(); ++i) next.feeds.emplace_back(feeds[i].first, described[i]);
    return begin(net::Method::continue_partial_run, net::to_body(next), std::move(payload));
  }
  df::Status continued(net::PartialRunName name, std::vector<std::pair<std::string, float>> feeds,
                       std::vector<std::string> fetches, bool until_end = false) {
    return begin_continue(name, std::move(feeds), std::move(fetches), until_end).get().status;
  }
  /// The only tensor of a reply.
  static float value_of(const Reply& reply) {
    df::throw_if_error(reply.status);
    std::span<const std::byte> elements(*reply.payload);
    const auto said = net::from_body<net::RunSessionReply>(reply.body);
    return net::take_from_payload(said.fetches.at(0), elements).as<float>().scalar();
  }
  Reply end_partial(net::PartialRunName name) { return call(net::Method::end_partial_run, net::to_body(name)); }

  Reply end(std::uint64_t session) { return call(net::Method::end_session, net::to_body(net::ShareName{session, 0})); }

 private:
  const std::string master_;
  std::shared_ptr<net::Peers> peers_;
};

const std::string worker_0 = "/job:worker/replica:0/task:0";

df::NodeDef node_def(std::string name, std::string op, std::vector<std::string> inputs = {},
                     std::vector<std::pair<std::string, df::AttrValue>> attrs = {}) {
  df::NodeDef node;
  node.name = std::move(name);
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return node;
}

df::NodeDef constant_def(std::string name, df::AnyTensor value) {
  df::NodeDef node = node_def(std::move(name), "Const", {}, {{"value", value}});
  node.types = {{"dtype", value.dtype()}};
  return node;
}

df::GraphDef graph_def(std::vector<df::NodeDef> nodes) {
  df::GraphDef def;
  def.nodes = std::move(nodes);
  return def;
}

/// A graph that takes from a queue into which nobody puts elements.
df::GraphDef waiting_graph(const std::string& device) {
  df::Graph graph;
  const auto on = graph.device(device);
  df::FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {{}}});
  const auto taken = queue.dequeue();
  static_cast<void>(taken * 2.0f);
  return df::to_graph_def(graph);
}

/// y = a + 1 in the task that `device` names, z = y + b at the master.
df::GraphDef partial_graph(const std::string& device) {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {}, {.name = "a"}), b = df::placeholder<float>(graph, {}, {.name = "b"});
  df::Output<float> y;
  {
    const auto on = graph.device(device);
    y = df::add(a, df::constant(graph, 1.0f), {.name = "y"});
  }
  df::add(y, b, {.name = "z"});
  return df::to_graph_def(graph);
}

/// The last node that is not a constant.
std::string last_of(const df::GraphDef& graph) { return graph.nodes.back().name; }

/// Waits until as many steps run in the task as `count` says.
void await_steps(const MemoryCluster& cluster, const std::string& task, std::uint64_t count) {
  const auto counted = [&] {
    for (const net::TaskReport& report :
         net::inspect(cluster.spec(), {.transport = const_cast<MemoryCluster&>(cluster).options().transport})) {
      if (report.task == task && report.status.ok()) return report.said.num_steps;
    }
    return ~std::uint64_t{0};
  };
  while (counted() != count) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a master keeps sessions by number: they are created, extended by version, run and closed") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const df::AnyTensor a = df::Tensor<float>({2, 2}, {3, 2, -1, 0});
  const std::uint64_t session = client.create(graph_def({constant_def("a", a)}));
  CHECK(df::bitwise_equal(client.run(session, {}, {"a"}).at(0), a));
  const auto product = node_def("y", "MatMul", {"a", "x"});
  df::NodeDef x = node_def("x", "Placeholder", {}, {{"shape", df::PartialShape({2, 1})}});
  x.types = {{"dtype", df::DType::float32}};
  CHECK(client.begin_extend(session, 1, graph_def({x, product})).get().status.code() == df::Code::aborted);
  const auto extended = client.begin_extend(session, 0, graph_def({x, product})).get();
  INFO(extended.status.to_string());
  REQUIRE(extended.status.ok());
  CHECK(net::from_body<net::SessionVersion>(extended.body) == net::SessionVersion{session, 1});
  CHECK(client.begin_extend(session, 0, graph_def({})).get().status.code() == df::Code::aborted);
  // The larger eigenvalue of [[3, 2], [-1, 0]] is 2, by power iteration.
  float x0 = 0.6f, x1 = 0.8f, norm = 0;
  for (int i = 0; i < 40; ++i) {
    const auto y = client.run(session, {{"x", df::Tensor<float>({2, 1}, {x0, x1})}}, {"y"}).at(0).as<float>();
    norm = std::sqrt(y.span()[0] * y.span()[0] + y.span()[1] * y.span()[1]);
    x0 = y.span()[0] / norm;
    x1 = y.span()[1] / norm;
  }
  CHECK(norm == Approx(2.0f).epsilon(1e-5));
  CHECK(client.end(session).status.ok());
  CHECK(client.begin_run(session, {}, {"a"}).get().status.code() == df::Code::not_found);
  CHECK(client.begin_extend(session, 1, graph_def({})).get().status.code() == df::Code::not_found);
  CHECK(client.end(session).status.ok());  // a second time: it is not there
}

TEST_CASE("of concurrent extensions of one version exactly one wins, and the others are aborted") {
  MemoryCluster cluster({{"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const std::uint64_t session = client.create(graph_def({constant_def("a", df::Tensor<float>(1.0f))}));
  for (std::uint64_t version = 0; version < 20; ++version) {
    std::vector<std::future<ThinClient::Reply>> replies;
    for (int i = 0; i < 8; ++i) {
      const std::string name = "n" + std::to_string(version) + "_" + std::to_string(i);
      replies.push_back(client.begin_extend(session, version, graph_def({node_def(name, "Neg", {"a"})})));
    }
    int won = 0, lost = 0;
    std::string winner;
    for (int i = 0; i < 8; ++i) {
      const ThinClient::Reply reply = replies[static_cast<std::size_t>(i)].get();
      won += reply.status.ok();
      lost += reply.status.code() == df::Code::aborted;
      if (reply.status.ok()) winner = "n" + std::to_string(version) + "_" + std::to_string(i);
    }
    CHECK(won == 1);
    CHECK(lost == 7);
    CHECK(client.run(session, {}, {winner}).at(0).as<float>().scalar() == -1);
  }
}

TEST_CASE("what is wrong with a graph, a name or a feed is said, and the session goes on") {
  MemoryCluster cluster({{"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const auto unknown = client.try_create(graph_def({node_def("n", "NoSuchOp")}));
  CHECK(unknown.status.code() == df::Code::invalid_argument);
  CHECK(mentions(unknown.status, "NoSuchOp"));
  CHECK(unknown.status.node() == "n");
  CHECK(unknown.status.task() == worker_0);
  df::NodeDef x = node_def("x", "Placeholder", {}, {{"shape", df::PartialShape({2})}});
  x.types = {{"dtype", df::DType::float32}};
  const std::uint64_t session = client.create(graph_def({x, node_def("y", "Neg", {"x"})}));
  const auto error_of_run = [&](const std::string& feed, const df::AnyTensor& value, const std::string& fetch,
                                std::vector<std::string> targets = {}) {
    return client.begin_run(session, {{feed, value}}, {fetch}, std::move(targets)).get().status;
  };
  const df::AnyTensor two = df::Tensor<float>({2}, {1, 2});
  CHECK(error_of_run("z", two, "y").code() == df::Code::not_found);
  CHECK(error_of_run("x", two, "y:1").code() == df::Code::not_found);
  CHECK(error_of_run("x", two, "y", {"z"}).code() == df::Code::not_found);
  CHECK(error_of_run("x", df::Tensor<float>({3}, {1, 2, 3}), "y").code() == df::Code::invalid_argument);
  CHECK(error_of_run("x", df::Tensor<double>({2}, {1, 2}), "y").code() == df::Code::invalid_argument);
  CHECK(client.begin_run(session, {}, {}).get().status.code() == df::Code::invalid_argument);
  const auto repeated = client.begin_extend(session, 0, graph_def({node_def("y", "Neg", {"x"})})).get();
  CHECK(mentions(repeated.status, "'y' already"));
  CHECK(mentions(client.begin_extend(session, 0, graph_def({node_def("v", "Neg", {"w"})})).get().status, "'w'"));
  // Nothing of a refused graph is there, and the graph's version has not changed.
  CHECK(client.begin_extend(session, 0, graph_def({node_def("v", "NoSuchOp", {"x"})})).get().status.code() ==
        df::Code::invalid_argument);
  df::NodeDef beside = node_def("v", "Neg", {"x", "^y"});
  beside.colocated_with = "x";
  CHECK(client.begin_extend(session, 0, graph_def({beside})).get().status.ok());
  CHECK(client.run(session, {{"x", two}}, {"v"}).at(0).as<float>()(1) == -2);
  // Bytes behind the feeds, too few of them, and none at all.
  const auto [described, payload] = net::to_payload({two});
  net::RunSession run;
  run.session = session;
  run.feeds = {{"x", described[0]}};
  run.fetches = {"y"};
  net::Payload twice = payload;
  twice.parts.push_back(payload.parts[0]);
  CHECK(client.call(net::Method::run_session, net::to_body(run), twice).status.code() == df::Code::data_loss);
  CHECK(client.call(net::Method::run_session, net::to_body(run)).status.code() == df::Code::data_loss);
  CHECK(client.call(net::Method::run_session, "cut").status.code() == df::Code::data_loss);
  CHECK(client.call(net::Method::create_session, net::to_body(net::CreateSession())).status.code() != df::Code::ok);
  CHECK(client.run(session, {{"x", two}}, {"y"}).at(0).as<float>()(0) == -1);
}

TEST_CASE("a graph that sends or receives by itself is refused, and its node named") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const df::NodeDef a = constant_def("a", df::Tensor<float>(1.0f));
  const std::uint64_t session = client.create(graph_def({a}));
  for (const std::string op : {"_Send", "_Recv"}) {
    std::vector<std::string> inputs;
    if (op == "_Send") inputs.push_back("a");
    const df::NodeDef node = node_def("secret passage", op, inputs);
    for (const df::Status& status : {client.try_create(graph_def({a, node})).status,
                                     client.begin_extend(session, 0, graph_def({node})).get().status}) {
      CHECK(status.code() == df::Code::invalid_argument);
      CHECK(mentions(status, "'secret passage' is a " + op));
      CHECK(status.node() == "secret passage");
      CHECK(status.op() == op);
    }
  }
  CHECK(client.run(session, {}, {"a"}).at(0).as<float>().scalar() == 1);
}

TEST_CASE("a request that has nothing to say is refused if it says something") {
  MemoryCluster cluster({{"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  CHECK(client.call(net::Method::task_status, "").status.ok());
  const df::Status status = client.call(net::Method::task_status, "how do you do").status;
  CHECK(status.code() == df::Code::data_loss);
  CHECK(client.call(net::Method::task_status, "").status.ok());
}

TEST_CASE("three clients have a session each, of the same numbers of nodes, and share variables by name") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 2}});
  df::Graph graph;
  const auto on = graph.device("/job:ps/task:0");
  df::Variable<float> w(graph, df::Tensor<float>(5.0f), {.name = "w"});
  const auto add = w.assign_add(df::constant(graph, 1.0f));
  const auto read = w.read();
  const std::string init = df::initialize_variables(graph).name();
  std::vector<std::unique_ptr<ThinClient>> clients;
  std::vector<std::uint64_t> sessions;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<ThinClient>(cluster, i, i == 0 ? worker_0 : "/job:worker/replica:0/task:1"));
    sessions.push_back(clients.back()->create(df::to_graph_def(graph)));
  }
  CHECK(clients[0]->begin_run(sessions[0], {}, {read.name()}).get().status.code() == df::Code::failed_precondition);
  clients[0]->run(sessions[0], {}, {}, {init});
  for (std::size_t i = 0; i < 3; ++i) clients[i]->run(sessions[i], {}, {}, {add.name()});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(clients[i]->run(sessions[i], {}, {read.name()}).at(0).as<float>().scalar() == 8);
  }
  // A session belongs to its client alone.
  CHECK(clients[1]->begin_run(sessions[2], {}, {read.name()}).get().status.code() == df::Code::not_found);
}

TEST_CASE("closing a session ends its steps, everywhere") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const df::GraphDef graph = waiting_graph("/job:ps/task:0");
  const std::uint64_t session = client.create(graph);
  auto waiting = client.begin_run(session, {}, {last_of(graph)});
  await_steps(cluster, "/job:ps/replica:0/task:0", 1);
  CHECK(client.end(session).status.ok());
  const df::Status ended = waiting.get().status;
  CHECK(ended.code() == df::Code::cancelled);
  CHECK(mentions(ended, "the session was closed"));
  await_steps(cluster, "/job:ps/replica:0/task:0", 0);
}

TEST_CASE("the steps of a client that dies end everywhere, and its sessions are forgotten") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  const df::GraphDef graph = waiting_graph("/job:ps/task:0");
  ThinClient other(cluster, 2, worker_0);
  const std::uint64_t of_other = other.create(graph_def({constant_def("a", df::Tensor<float>(1.0f))}));
  for (int round = 0; round < 3; ++round) {
    ThinClient client(cluster, 1, worker_0);
    const std::uint64_t session = client.create(graph);
    auto waiting = client.begin_run(session, {}, {last_of(graph)});
    await_steps(cluster, "/job:ps/replica:0/task:0", 1);
    client.leave();
    CHECK_FALSE(waiting.get().status.ok());
    await_steps(cluster, "/job:ps/replica:0/task:0", 0);
  }
  CHECK(other.run(of_other, {}, {"a"}).at(0).as<float>().scalar() == 1);
}

TEST_CASE("a master keeps partial runs by number: they are begun, fed and fetched request by request, and ended") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0), other(cluster, 2, worker_0);
  const std::uint64_t session = client.create(partial_graph("/job:ps/task:0"));
  const net::PartialRunName run = client.begin_partial(session, {"a", "b"}, {"y", "z"});
  const net::PartialRunName second = client.begin_partial(session, {"a", "b"}, {"y", "z"});
  CHECK(run.session == session);
  CHECK(run != second);
  auto end = client.begin_continue(run, {}, {}, true);
  CHECK(mentions(client.continued(run, {}, {"z"}), "'z' needs 'a', 'b', not fed yet"));
  CHECK(ThinClient::value_of(client.begin_continue(run, {{"a", 1.0f}}, {"y"}).get()) == 2);
  CHECK(mentions(client.continued(run, {{"a", 1.0f}}, {}), "'a' is fed twice"));
  CHECK(mentions(client.continued(run, {}, {"y"}), "'y' was fetched before"));
  CHECK(ThinClient::value_of(client.begin_continue(second, {{"a", 5.0f}, {"b", 1.0f}}, {"z"}, true).get()) == 7);
  CHECK(client.continued(run, {{"b", 3.0f}}, {}).ok());
  CHECK(end.get().status.ok());
  CHECK(ThinClient::value_of(client.begin_continue(run, {}, {"z"}).get()) == 5);  // after the end
  CHECK(client.end_partial(run).status.ok());
  CHECK(client.continued(run, {}, {"z"}).code() == df::Code::not_found);
  CHECK(client.end_partial(run).status.ok());  // a second time: it is not there
  CHECK(other.continued(second, {}, {}, true).code() == df::Code::not_found);
  CHECK(other.end_partial(second).status.ok());
  CHECK(client.continued(second, {}, {}, true).ok());
}

TEST_CASE("what is wrong with a request for a partial run is said, and the run goes on") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const std::uint64_t session = client.create(partial_graph("/job:ps/task:0"));
  CHECK(client.try_begin_partial(session + 1, {"a"}, {"y"}).status.code() == df::Code::not_found);
  CHECK(client.try_begin_partial(session, {"a", "v"}, {"y"}).status.code() == df::Code::not_found);
  CHECK(client.try_begin_partial(session, {"a"}, {"y:1"}).status.code() == df::Code::not_found);
  CHECK(client.try_begin_partial(session, {"a"}, {}).status.code() == df::Code::invalid_argument);
  CHECK(mentions(client.try_begin_partial(session, {"a"}, {"z"}).status, "placeholder 'b' must be fed"));
  const net::PartialRunName run = client.begin_partial(session, {"a", "b"}, {"y", "z"});
  CHECK(client.continued({session, run.run + 1}, {}, {"y"}).code() == df::Code::not_found);
  CHECK(client.continued({session + 1, run.run}, {}, {"y"}).code() == df::Code::not_found);
  CHECK(client.continued(run, {{"v", 1.0f}}, {}).code() == df::Code::not_found);
  CHECK(client.continued(run, {}, {"v"}).code() == df::Code::not_found);
  CHECK(client.continued(run, {{"y", 1.0f}}, {}).code() == df::Code::invalid_argument);
  CHECK(client.continued(run, {}, {"b"}).code() == df::Code::invalid_argument);
  // Bytes behind the feeds, too few of them, and bodies that are cut or too long.
  const auto [described, payload] = net::to_payload({df::Tensor<float>(1.0f)});
  net::ContinuePartialRun next;
  next.name = run;
  next.feeds = {{"a", described[0]}};
  net::Payload twice = payload;
  twice.parts.push_back(payload.parts[0]);
  const std::string body = net::to_body(next);
  const auto code = [&](net::Method method, std::string said, const net::Payload& bytes = {}) {
    return client.call(method, std::move(said), bytes).status.code();
  };
  CHECK(code(net::Method::continue_partial_run, body, twice) == df::Code::data_loss);
  CHECK(code(net::Method::continue_partial_run, body) == df::Code::data_loss);
  for (std::size_t size = 0; size < body.size(); size += 3) {
    CHECK(code(net::Method::continue_partial_run, body.substr(0, size)) == df::Code::data_loss);
  }
  CHECK(code(net::Method::continue_partial_run, body + '\0', payload) == df::Code::data_loss);
  for (const net::Method method : {net::Method::begin_partial_run, net::Method::end_partial_run}) {
    CHECK(code(method, "cut") == df::Code::data_loss);
    CHECK(code(method, net::to_body(run) + "and more") == df::Code::data_loss);
  }
  // A refused request feeds nothing.
  CHECK(client.continued(run, {{"a", 5.0f}, {"y", 1.0f}}, {}).code() == df::Code::invalid_argument);
  CHECK(client.continued(run, {{"a", 5.0f}, {"a", 1.0f}}, {"y"}).code() == df::Code::invalid_argument);
  CHECK(client.continued(run, {{"a", 5.0f}}, {"z"}).code() == df::Code::invalid_argument);
  CHECK(ThinClient::value_of(client.begin_continue(run, {{"a", 1.0f}}, {"y"}).get()) == 2);
  CHECK(client.continued(run, {{"b", 5.0f}}, {"y"}).code() == df::Code::invalid_argument);  // fetched before
  CHECK(ThinClient::value_of(client.begin_continue(run, {{"b", 1.0f}}, {"z"}).get()) == 3);
}

TEST_CASE("a partial run ends everywhere with its session, with its client, and when it is ended") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  const df::GraphDef graph = partial_graph("/job:ps/task:0");
  const std::string ps_0 = "/job:ps/replica:0/task:0";
  ThinClient client(cluster, 1, worker_0);
  const std::uint64_t session = client.create(graph);
  const auto begin = [&](ThinClient& by, std::uint64_t in) {
    const net::PartialRunName run = by.begin_partial(in, {"a", "b"}, {"y", "z"});
    CHECK(by.continued(run, {{"b", 1.0f}}, {}).ok());
    return run;
  };
  net::PartialRunName run = begin(client, session);
  auto waiting = client.begin_continue(run, {}, {}, true);
  await_steps(cluster, ps_0, 1);
  CHECK(client.end_partial(run).status.ok());
  df::Status ended = waiting.get().status;
  CHECK(ended.code() == df::Code::cancelled);
  CHECK(mentions(ended, "the partial run was ended"));
  await_steps(cluster, ps_0, 0);

  run = begin(client, session);
  waiting = client.begin_continue(run, {}, {}, true);
  await_steps(cluster, ps_0, 1);
  CHECK(client.end(session).status.ok());
  ended = waiting.get().status;
  CHECK(ended.code() == df::Code::cancelled);
  CHECK(mentions(ended, "the session was closed"));
  await_steps(cluster, ps_0, 0);
  CHECK(client.continued(run, {{"a", 1.0f}}, {}).code() == df::Code::not_found);

  for (int round = 0; round < 6; ++round) {
    ThinClient gone(cluster, 3, worker_0);
    const net::PartialRunName of_gone = begin(gone, gone.create(graph));
    if (round % 2 == 0) waiting = gone.begin_continue(of_gone, {}, {}, true);
    await_steps(cluster, ps_0, 1);
    gone.leave();
    if (round % 2 == 0) CHECK_FALSE(waiting.get().status.ok());
    await_steps(cluster, ps_0, 0);
  }
}

TEST_CASE("one session keeps as many partial runs as a master's options say") {
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const std::uint64_t session = client.create(partial_graph("/job:worker/task:0"));
  std::vector<net::PartialRunName> runs;
  for (int i = 0; i < 256; ++i) runs.push_back(client.begin_partial(session, {"a", "b"}, {"y"}));
  const df::Status one_more = client.try_begin_partial(session, {"a", "b"}, {"y"}).status;
  CHECK(one_more.code() == df::Code::resource_exhausted);
  CHECK(mentions(one_more, "more than 256 partial runs of one session"));
  CHECK(client.end_partial(runs.front()).status.ok());
  runs.front() = client.begin_partial(session, {"a", "b"}, {"y"});
  float value = 0;
  int num_wrong = 0;
  for (const net::PartialRunName& run : runs) {
    ++value;
    num_wrong += ThinClient::value_of(client.begin_continue(run, {{"a", value}}, {"y"}).get()) != value + 1 ? 1 : 0;
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("a session waits for tasks until its deadline, and then names those that are missing") {
  MemoryCluster all({{"ps", 2}, {"worker", 1}});
  ThinClient client(all, 1, worker_0);
  all.stop("ps", 1);
  net::CreateSession create;
  create.time_left_ns = 50'000'000;
  const df::GraphDef graph = graph_def({constant_def("a", df::Tensor<float>(1.0f))});
  const df::Status missing = client.try_create(graph, create).status;
  CHECK(missing.code() == df::Code::unavailable);
  CHECK(mentions(missing, "1 of 2 other tasks are missing: /job:ps/replica:0/task:1"));
  create.filters = {"/job:ps/task:0"};
  CHECK(client.try_create(graph, create).status.ok());
  create.filters = {"no filter"};
  CHECK(client.try_create(graph, create).status.code() == df::Code::invalid_argument);
  create.filters = {"/job:ps/task:0", "/job:sp"};
  const df::Status unmatched = client.try_create(graph, create).status;
  CHECK(unmatched.code() == df::Code::invalid_argument);
  CHECK(mentions(unmatched, "the filter '/job:sp' matches no task of the cluster"));
  create.filters = {"/job:worker/task:0"};  // its own
  CHECK(client.try_create(graph, create).status.ok());
  create.filters = {};
  create.time_left_ns = 0;
  auto waits = client.begin(net::Method::create_session, net::to_body(create), ThinClient::payload_of(graph));
  all.start("ps", 1);
  CHECK(waits.get().status.ok());  // it came in time
}

TEST_CASE("the devices of a cluster are listed by any task, those of its own first") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  const auto list = [&](std::vector<std::string> filters) {
    const auto reply = client.call(net::Method::list_cluster_devices, net::to_body(net::NameList{std::move(filters)}));
    std::vector<std::string> names;
    for (const df::DeviceInfo& device : net::from_body<net::DeviceList>(reply.body).devices) {
      names.push_back(device.name);
    }
    return names;
  };
  CHECK(list({}) == std::vector<std::string>{worker_0 + "/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0",
                                             "/job:ps/replica:0/task:1/device:CPU:0"});
  CHECK(list({"/job:ps/task:1"}).size() == 2);
  const std::string no_filter = net::to_body(net::NameList{{"no filter"}});
  CHECK(client.call(net::Method::list_cluster_devices, no_filter).status.code() == df::Code::invalid_argument);
  const std::string unmatched = net::to_body(net::NameList{{"/job:ps/task:2"}});
  CHECK(mentions(client.call(net::Method::list_cluster_devices, unmatched).status, "'/job:ps/task:2' matches no task"));
  const std::string reset = net::to_body(net::ResetCluster{{}, {{"/job:sp"}}});
  CHECK(mentions(client.call(net::Method::reset_cluster, reset).status, "'/job:sp' matches no task"));
}

TEST_CASE("a reset drops the resources in the containers that are named, on the tasks that match") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  ThinClient client(cluster, 1, worker_0);
  df::Graph graph;
  std::vector<std::string> reads;
  for (int i = 0; i < 4; ++i) {
    const auto on = graph.device("/job:ps/task:" + std::to_string(i / 2));
    df::Variable<float> w(graph, df::Tensor<float>(1.0f),
                          {.name = "w" + std::to_string(i), .container = i % 2 == 0 ? "" : "kept"});
    reads.push_back(w.read().name());
  }
  const std::string init = df::initialize_variables(graph).name();
  const std::uint64_t session = client.create(df::to_graph_def(graph));
  /// "1" for each variable that has a value, else "0".
  const auto values = [&] {
    std::string text;
    for (const std::string& read : reads) {
      const df::Status status = client.begin_run(session, {}, {read}).get().status;
      CHECK((status.ok() || status.code() == df::Code::failed_precondition));
      text += status.ok() ? '1' : '0';
    }
    return text;
  };
  const auto reset = [&](std::vector<std::string> containers, std::vector<std::string> filters) {
    client.run(session, {}, {}, {init});
    CHECK(values() == "1111");
    const net::ResetCluster message{{std::move(containers)}, {std::move(filters)}};
    CHECK(client.call(net::Method::reset_cluster, net::to_body(message)).status.ok());
    return values();
  };
  CHECK(reset({""}, {}) == "0101");
  CHECK(reset({"kept"}, {"/job:ps/task:1"}) == "1110");
  CHECK(reset({"nobody has asked for it"}, {}) == "1111");
  CHECK(reset({"", "kept"}, {"/job:worker"}) == "1111");
  CHECK(reset({}, {"/job:ps/task:0"}) == "0011");
  CHECK(reset({}, {}) == "0000");
}

TEST_CASE("one client keeps as many sessions, and bytes of graphs, as a master's options say") {
  MemoryCluster cluster({{"worker", 1}});
  ThinClient client(cluster, 1, worker_0), other(cluster, 2, worker_0);
  const df::GraphDef graph = graph_def({constant_def("a", df::Tensor<float>(1.0f))});
  std::vector<std::uint64_t> sessions;
  for (int i = 0; i < 256; ++i) sessions.push_back(client.create(graph));
  const df::Status one_more = client.try_create(graph).status;
  CHECK(one_more.code() == df::Code::resource_exhausted);
  CHECK(mentions(one_more, "more than 256 sessions of one client"));
  CHECK(other.try_create(graph).status.ok());
  CHECK(client.end(sessions.front()).status.ok());
  CHECK(client.try_create(graph).status.ok());
  CHECK(client.run(sessions.back(), {}, {"a"}).size() == 1);
}

TEST_CASE("strings that a client feeds are charged to it before they are made") {
  MemoryCluster cluster({{"worker", 1}}, {.client_memory_limit_bytes = 300'000});
  ThinClient client(cluster, 1, worker_0);
  df::Graph graph;
  df::placeholder<std::string>(graph, {df::dynamic}, {.name = "texts"});
  const std::uint64_t session = client.create(df::to_graph_def(graph));
  const auto status_of_feed = [&](std::int64_t strings) {  // a byte each in the payload
    return client.begin_run(session, {{"texts", df::Tensor<std::string>(df::Shape{strings})}}, {"texts"}).get().status;
  };
  for (int i = 0; i < 10; ++i) CHECK(status_of_feed(2'000).ok());
  const df::Status too_many = status_of_feed(20'000);
  CHECK(too_many.code() == df::Code::resource_exhausted);
  CHECK(mentions(too_many, "/job:thin"));
  CHECK(status_of_feed(2'000).ok());
}

TEST_CASE("servers stop cleanly with sessions of clients and steps of theirs under way") {
  for (int i = 0; i < 20; ++i) {
    MemoryCluster cluster({{"ps", 1}, {"worker", 1}});
    ThinClient client(cluster, 1, worker_0);
    const df::GraphDef graph = waiting_graph("/job:ps/task:0");
    const std::uint64_t session = client.create(graph);
    std::vector<std::future<ThinClient::Reply>> waiting;
    for (int k = 0; k < 3; ++k) waiting.push_back(client.begin_run(session, {}, {last_of(graph)}));
    if (i % 2 == 0) await_steps(cluster, "/job:ps/replica:0/task:0", 3);
    cluster.stop(i % 4 < 2 ? "worker" : "ps", 0);
    for (auto& one : waiting) CHECK(one.get().status.code() == df::Code::unavailable);
  }
}

TEST_CASE("a client without ops is told which requests take them, and of an unknown one that there is none") {
  MemoryCluster cluster({{"ps", 1}});
  ThinClient client(cluster, 1, "/job:ps/replica:0/task:0");
  for (const auto method : {net::Method::list_devices, net::Method::run_share}) {
    const df::Status status = client.call(method, {}).status;
    CHECK(status.code() == df::Code::failed_precondition);
    CHECK_THAT(std::string(status.message()), Catch::Contains("has no ops, and request"));
  }
  CHECK(client.call(static_cast<net::Method>(22), {}).status.code() == df::Code::unimplemented);
  CHECK(client.call(static_cast<net::Method>(0), {}).status.code() == df::Code::unimplemented);
  CHECK(client.call(net::Method::task_status, {}).status.ok());
}
