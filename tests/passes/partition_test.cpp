#include <dflow/passes/partition.hpp>

#include <dflow/core/device_name.hpp>
#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

std::vector<KernelTables> kernels_for(std::span<const DeviceInfo> devices) {
  static const OpSet all_ops = standard_ops;
  return std::vector<KernelTables>(devices.size(), all_ops.kernels());
}

std::vector<DeviceInfo> devices(int count, bool with_own_memory = false) {
  std::vector<DeviceInfo> infos;
  for (int i = 0; i < count; ++i) {
    DeviceInfo& info = infos.emplace_back();
    info.type = with_own_memory ? "GPU" : "CPU";
    info.name = str_cat("/job:localhost/replica:0/task:0/device:", info.type, ":", i);
    info.incarnation = 100 + static_cast<std::uint64_t>(i);
    if (with_own_memory) info.memory = info.name;
  }
  return infos;
}

DeviceInfo the_client() {
  DeviceInfo client;
  client.name = "/job:localhost/replica:0/task:0/device:CLIENT:0";
  client.type = "CLIENT";
  client.incarnation = 7;
  return client;
}

/// A graph with nodes placed by hand: by the number in their device scope.
struct Placed {
  Graph graph;
  std::vector<DeviceInfo> infos;
  KernelTables kernels = OpSet(standard_ops).kernels();

  explicit Placed(std::vector<DeviceInfo> on) : infos(std::move(on)) {}

  Partitions split(std::vector<AnyOutput> feeds, std::vector<AnyOutput> fetches,
                   std::vector<Operation> targets = {}) const {
    std::vector<Endpoint> in, out;
    std::vector<NodeId> nodes;
    for (const AnyOutput& feed : feeds) in.push_back(feed.endpoint());
    for (const AnyOutput& fetch : fetches) out.push_back(fetch.endpoint());
    for (const Operation& target : targets) nodes.push_back(target.node_id());
    PruneScratch scratch;
    StepGraph step = prune(*graph.store(), in, out, nodes, scratch, [&](NodeId, StepNode& node) {
      node.placed_on = node->device.empty() ? 0 : *DeviceName::parse(node->device).id;
    });
    return partition(std::move(step), infos, std::vector<KernelTables>(infos.size(), kernels), the_client());
  }
  ScopeGuard on(int device) { return graph.device(str_cat("/cpu:", device)); }
};

std::size_t count(const Partitions& parts, std::string_view op) {
  std::size_t n = 0;
  for (const Partition& part : parts.parts) {
    for (const StepNode& node : part.graph.nodes) n += node.op->name == op ? 1 : 0;
  }
  return n;
}

template <class Attrs>
std::string key_of(const Attrs& attrs) {
  return RendezvousKey(attrs.send_device, attrs.send_device_incarnation, attrs.recv_device, attrs.tensor_name).text();
}

/// Checks the rules of all partitions. Each node is on its stated device, nodes are in order, and names are unique.
/// Each Recv has one Send, each Send has one Recv and is a target; the client's edges count too.
void check_sound(const Partitions& parts) {
  std::multiset<std::string> sent, received;
  std::set<std::size_t> used;
  for (const ClientEdge& edge : parts.sends) sent.insert(edge.key.text());
  for (const ClientEdge& edge : parts.receives) received.insert(edge.key.text());
  for (const Partition& part : parts.parts) {
    CHECK(used.insert(part.device).second);
    CHECK(!part.graph.nodes.empty());
    CHECK(part.feeds.size() == part.graph.feeds.size());
    CHECK(part.fetches.size() == part.graph.fetches.size());
    std::set<std::string> names;
    for (const StepNodeId id : part.graph.nodes.indices()) {
      const StepNode& placed = part.graph.node(id);
      const Node& node = *placed;
      if (!names.insert(node.name).second) FAIL_CHECK("two nodes are named " << node.name);
      if (placed.placed_on != static_cast<std::int32_t>(part.device)) FAIL_CHECK(node.name << " is on another device");
      for (const StepEndpoint input : part.graph.inputs_of(placed)) {
        if (!input.node.is_valid() || input.node >= id) FAIL_CHECK(node.name << " comes too early");
      }
      for (const StepNodeId control : part.graph.controls_of(placed)) {
        if (!control.is_valid() || control >= id) FAIL_CHECK(node.name << " comes too early");
      }
      if (node.op == &op_def<Recv>) received.insert(key_of(node.attrs_as<Recv>()));
      if (node.op != &op_def<Send>) continue;
      sent.insert(key_of(node.attrs_as<Send>()));
      const auto& targets = part.graph.targets;
      CHECK(std::find(targets.begin(), targets.end(), id) != targets.end());
    }
  }
  CHECK(sent == received);
  CHECK(std::set<std::string>(sent.begin(), sent.end()).size() == sent.size());
}

}  // namespace

TEST_CASE("a graph on one device in host memory comes back whole", "[passes][partition]") {
  Placed g(devices(2));
  Output<float> y;
  {
    const auto on = g.on(1);
    const auto there = placeholder<float>(g.graph, {});
    y = there * 2.0f;
    const Partitions parts = g.split({there}, {y, there}, {y.operation()});
    REQUIRE(parts.parts.size() == 1);
    CHECK(parts.parts[0].device == 1);
    CHECK(parts.parts[0].feeds == std::vector<std::size_t>{0});
    CHECK(parts.parts[0].fetches == std::vector<std::size_t>{0, 1});
    CHECK(parts.known.empty());
    CHECK(parts.sends.empty());
    CHECK(parts.receives.empty());
    check_sound(parts);
  }
  const Partitions nothing = g.split({}, {});
  for (const Partition& part : nothing.parts) CHECK(part.graph.nodes.empty());
}

TEST_CASE("a tensor is sent once to each device that reads it, whoever its readers are", "[passes][partition]") {
  Placed g(devices(3));
  const auto x = random_uniform<float>(g.graph, {});
  std::vector<AnyOutput> fetches;
  for (int i = 0; i < 6; ++i) {
    const auto on = g.on(1 + i % 2);
    fetches.push_back(x * identity(x));
  }
  const Partitions parts = g.split({}, fetches);
  CHECK(parts.parts.size() == 3);
  CHECK(count(parts, "_Send") == 2);
  CHECK(count(parts, "_Recv") == 2);
  check_sound(parts);
  for (const Partition& part : parts.parts) {
    for (const StepNode& node : part.graph.nodes) {
      if (node.op == &op_def<Send>) CHECK(node->attrs_as<Send>().send_device_incarnation == 100);
    }
  }
}

TEST_CASE("a control edge that crosses waits for its source by an empty tensor", "[passes][partition]") {
  Placed g(devices(2));
  const auto x = random_uniform<float>(g.graph, {});
  std::vector<AnyOutput> fetches;
  {
    const auto on = g.on(1);
    const auto after = g.graph.control_dependencies({x.operation()});
    for (int i = 0; i < 2; ++i) fetches.push_back(random_uniform<float>(g.graph, {}));
  }
  const Partitions parts = g.split({}, fetches);
  CHECK(count(parts, "_Send") == 1);
  CHECK(count(parts, "_Recv") == 1);
  check_sound(parts);
  int waiting = 0;
  for (const Partition& part : parts.parts) {
    for (const StepNode& node : part.graph.nodes) {
      if (node.op == &op_def<Send>) CHECK(node.num_controls == 1);
      if (node.op->name == "RandomUniform" && part.device == 1) waiting += static_cast<int>(node.num_controls);
      if (node.op == &op_def<Recv>) CHECK(node->outputs[0].shape.num_elements() == 0);
    }
  }
  CHECK(waiting == 2);
}

TEST_CASE("a fed edge is a feed of each part that reads it, and a fetch of it is known", "[passes][partition]") {
  Placed g(devices(2));
  const auto x = placeholder<float>(g.graph, {}), unused = placeholder<float>(g.graph, {});
  const auto near = x * 2.0f;
  Output<float> far;
  {
    const auto on = g.on(1);
    far = x * 3.0f;
  }
  const Partitions parts = g.split({unused, x}, {far, x, near});
  REQUIRE(parts.parts.size() == 2);
  for (const Partition& part : parts.parts) CHECK(part.feeds == std::vector<std::size_t>{1});
  CHECK(count(parts, "_Send") == 0);
  REQUIRE(parts.known.size() == 1);
  CHECK(parts.known[0].fetch == 1);
  CHECK(parts.known[0].feed == std::optional<std::size_t>(1));
  CHECK(parts.parts[0].fetches == std::vector<std::size_t>{2});
  CHECK(parts.parts[1].fetches == std::vector<std::size_t>{0});
  check_sound(parts);
}

TEST_CASE("a constant is copied to each part that reads it, and a fetch of it is known", "[passes][partition]") {
  Placed g(devices(2));
  const auto c = constant(g.graph, 5.0f);
  const auto near = identity(c);
  Output<float> far;
  {
    const auto on = g.on(1);
    far = identity(c);
  }
  const Partitions parts = g.split({}, {near, far, c});
  CHECK(count(parts, "Const") == 2);
  CHECK(count(parts, "_Send") == 0);
  REQUIRE(parts.known.size() == 1);
  CHECK(parts.known[0].fetch == 2);
  CHECK(!parts.known[0].feed);
  CHECK(parts.known[0].value.span<float>()[0] == 5);
  check_sound(parts);
}

TEST_CASE("where devices have their own memory the client sends feeds and receives fetches", "[passes][partition]") {
  Placed g(devices(2, true));
  const auto x = placeholder<float>(g.graph, {2}), unused = placeholder<float>(g.graph, {2});
  const auto y = x * x;
  Output<float> z;
  {
    const auto on = g.graph.device("/gpu:1");
    z = y + x;
  }
  const Partitions parts = g.split({unused, x}, {z, x, y});
  CHECK(parts.sends.size() == 2);  // x to either device
  CHECK(parts.receives.size() == 2);
  for (const ClientEdge& edge : parts.sends) {
    CHECK(edge.index == 1);
    CHECK(edge.key.source_device() == the_client().name);
    CHECK(edge.key.source_incarnation() == 7);
  }
  for (const ClientEdge& edge : parts.receives) CHECK(edge.key.destination_device() == the_client().name);
  REQUIRE(parts.known.size() == 1);
  CHECK(parts.known[0].fetch == 1);
  for (const Partition& part : parts.parts) {
    CHECK(part.feeds.empty());
    CHECK(part.fetches.empty());
  }
  check_sound(parts);
}

TEST_CASE("the host memory of another task is not the client's", "[passes][partition]") {
  Placed g(devices(2));
  for (DeviceInfo& info : g.infos) info.name.replace(info.name.find("localhost"), 9, "worker");
  const auto x = placeholder<float>(g.graph, {2});
  const auto near = x * x;
  Output<float> far;
  {
    const auto on = g.on(1);
    far = near + x;
  }
  for (const bool on_both : {true, false}) {
    const Partitions parts = on_both ? g.split({x}, {near, far}) : g.split({x}, {near});
    const std::size_t num_parts = on_both ? 2 : 1;
    REQUIRE(parts.parts.size() == num_parts);
    CHECK(parts.sends.size() == num_parts);
    CHECK(parts.receives.size() == num_parts);
    for (const Partition& part : parts.parts) {
      CHECK(part.feeds.empty());
      CHECK(part.fetches.empty());
      for (const StepNode& node : part.graph.nodes) {
        if (node.op == &op_def<Send>) CHECK(node->attrs_as<Send>().host_memory);
        if (node.op == &op_def<Recv>) CHECK(node->attrs_as<Recv>().host_memory);
      }
    }
    check_sound(parts);
  }
}

TEST_CASE("a node of which some outputs are fed runs beside its feeds", "[passes][partition]") {
  Placed g(devices(2));
  const auto x = placeholder<float>(g.graph, {4, 2});
  Output<float> y, z;
  std::vector<Output<float>> rows;
  {
    const auto on = g.on(1);
    rows = unpack(x, 4);
    y = rows[0] + rows[1] + rows[2];
    // This node has the name of the node that replaces another node's output.
    z = random_uniform<float>(g.graph, {2}, {}, {.name = rows[3].node().name + "_3"});
  }
  const auto here = identity(rows[0]) + identity(rows[3]) + identity(z);
  const Partitions parts = g.split({x, rows[0], rows[1]}, {y, here});
  REQUIRE(parts.parts.size() == 2);
  CHECK(parts.parts[0].feeds == std::vector<std::size_t>{1});
  CHECK(parts.parts[1].feeds.size() == 3);
  for (const Partition& part : parts.parts) {
    for (const StepEndpoint feed : part.graph.feeds) {
      const StepNode& node = part.graph.node(feed.node);
      CHECK(node.is_fed_only);
      CHECK(node.op == &op_def<Placeholder>);
      CHECK(node->name.find("/_feed_") != std::string::npos);
    }
  }
  check_sound(parts);
}

TEST_CASE("many control edges of one node from one device cross as one, for all who wait for the same",
          "[passes][partition]") {
  Placed g(devices(3));
  std::vector<Operation> there, elsewhere;
  for (int i = 0; i < 100; ++i) {
    const auto on = g.on(1 + i % 2);
    (i % 2 == 0 ? there : elsewhere).push_back(no_op(g.graph));
  }
  std::vector<Operation> all = there;
  all.insert(all.end(), elsewhere.begin(), elsewhere.end());
  std::vector<Operation> readers;
  {
    const auto after = g.graph.control_dependencies(all);
    for (int i = 0; i < 5; ++i) readers.push_back(no_op(g.graph));
  }
  {
    const auto after = g.graph.control_dependencies(there);
    readers.push_back(no_op(g.graph));  // shares the one from device 1
  }
  {
    const auto after = g.graph.control_dependencies(std::span(all).first(10));
    readers.push_back(no_op(g.graph));
  }
  const Partitions parts = g.split({}, {}, readers);
  check_sound(parts);
  REQUIRE(parts.parts.size() == 3);
  CHECK(count(parts, "_Send") == 3);
  std::multiset<std::uint32_t> waits;
  for (const Partition& part : parts.parts) {
    for (const StepNode& node : part.graph.nodes) {
      if (node.op == &op_def<Send>) waits.insert(node.num_controls);
      if (part.device == 0 && node.op == &op_def<NoOp>) CHECK((node.num_controls == 1 || node.num_controls == 2));
    }
  }
  CHECK(waits == std::multiset<std::uint32_t>{10, 50, 50});
}

TEST_CASE("lists of control edges that are all different do not multiply what crosses", "[passes][partition]") {
  Placed g(devices(2));
  std::vector<Operation> there;
  for (int i = 0; i < 24; ++i) {
    const auto on = g.on(1);
    there.push_back(no_op(g.graph));
  }
  std::mt19937 random(1);
  std::vector<Operation> readers;
  for (int i = 0; i < 500; ++i) {
    std::shuffle(there.begin(), there.end(), random);
    const auto after = g.graph.control_dependencies(std::span(there).first(12));
    readers.push_back(no_op(g.graph));
  }
  const Partitions parts = g.split({}, {}, readers);
  check_sound(parts);
  CHECK(count(parts, "_Send") <= 24 + 24 / 4);
}

TEST_CASE("who waits for a constant waits for what the constant was built after, in every part",
          "[passes][partition]") {
  for (const bool by_edge : {true, false}) {
    Placed g(devices(2));
    const auto source = random_uniform<float>(g.graph, {});
    Output<float> late;
    {
      const auto after = g.graph.control_dependencies({source.operation()});
      late = constant(g.graph, 3.0f);
    }
    Output<float> far;
    {
      const auto on = g.on(1);
      if (by_edge) {
        far = identity(late);
      } else {
        const auto after = g.graph.control_dependencies({late.operation()});
        far = random_uniform<float>(g.graph, {});
      }
    }
    const Partitions parts = g.split({}, {far});
    check_sound(parts);
    REQUIRE(parts.parts.size() == 2);
    const StepGraph& there = parts.parts[1].graph;
    const StepNode& reader = there.node(there.fetches[0].node);
    REQUIRE((by_edge ? reader.num_inputs : reader.num_controls) == 1);
    const StepNodeId waits = by_edge ? there.inputs_of(reader)[0].node : there.controls_of(reader)[0];
    CHECK(there.node(waits).op == &op_def<Const>);
    CHECK(there.node(waits)->attrs_as<Const>().value.num_elements() == (by_edge ? 1 : 0));
    REQUIRE(there.node(waits).num_controls == 1);
    CHECK(there.node(there.controls_of(there.node(waits))[0]).op == &op_def<Recv>);
    CHECK(count(parts, "_Send") == 1);
  }
}

TEST_CASE("a long chain of constants that were built after one another is split", "[passes][partition]") {
  Placed g(devices(2));
  const auto first = random_uniform<float>(g.graph, {});
  Operation last = first.operation();
  for (int i = 0; i < 100'000; ++i) {
    const auto after = g.graph.control_dependencies({last});
    last = constant(g.graph, 1.0f).operation();
  }
  const auto on = g.on(1);
  const auto after = g.graph.control_dependencies({last});
  const Partitions parts = g.split({}, {random_uniform<float>(g.graph, {})});
  check_sound(parts);
  CHECK(count(parts, "_Send") == 1);
}

TEST_CASE("all of a list is in host memory where its argument is, however long", "[passes][partition]") {
  Placed g(devices(1, true));
  KernelEntry add_n = *standard_cpu_kernels().find("AddN"), unpack_row = *standard_cpu_kernels().find("Unpack");
  add_n.host_inputs = 1;
  unpack_row.host_outputs = 1;
  g.kernels = KernelTables({KernelTable("GPU", {add_n, unpack_row})});
  std::vector<AnyOutput> feeds;
  std::vector<Output<float>> xs;
  for (int i = 0; i < 70; ++i) feeds.push_back(xs.emplace_back(placeholder<float>(g.graph, {2})));
  feeds.push_back(placeholder<float>(g.graph, {80, 2}));
  const auto rows = unpack(Output<float>(feeds.back()), 80);
  const Partitions parts = g.split(feeds, {dflow::add_n(xs), rows[79]});
  REQUIRE(parts.parts.size() == 1);
  CHECK(parts.parts[0].feeds.size() == 70);
  REQUIRE(parts.sends.size() == 1);
  CHECK(parts.sends[0].index == 70);
  CHECK(parts.parts[0].fetches == std::vector<std::size_t>{1});
  REQUIRE(parts.receives.size() == 1);
  CHECK(parts.receives[0].index == 0);
  check_sound(parts);
}

TEST_CASE("partitions of random graphs are sound", "[passes][partition]") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 rng(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(rng() % n); };
    const bool own_memory = seed % 3 == 0;
    const int count_devices = 1 + static_cast<int>(below(4));
    Placed g(devices(count_devices, own_memory));
    std::vector<Output<float>> edges{placeholder<float>(g.graph, {}), constant(g.graph, 1.0f),
                                     random_uniform<float>(g.graph, {})};
    for (int i = 0; i < 40; ++i) {
      const auto on =
          g.graph.device(str_cat(own_memory ? "/gpu:" : "/cpu:", below(static_cast<std::size_t>(count_devices))));
      std::vector<Operation> waits_for;
      if (below(4) == 0) waits_for.push_back(edges[below(edges.size())].operation());
      const auto after = g.graph.control_dependencies(waits_for);
      const Output<float> x = edges[below(edges.size())], y = edges[below(edges.size())];
      switch (below(4)) {
        case 0:
          edges.push_back(identity(x));
          break;
        case 1:
          edges.push_back(constant(g.graph, 2.0f));
          break;
        case 2:
          edges.push_back(with_dependencies({y.operation()}, x));
          break;
        default:
          edges.push_back(x + y);
          break;
      }
    }
    std::vector<AnyOutput> feeds{edges[0]}, fetches;
    if (below(2) == 0) feeds.push_back(edges[3 + below(edges.size() - 3)]);
    std::vector<Operation> targets;
    for (std::size_t i = below(5); i > 0; --i) fetches.push_back(edges[below(edges.size())]);
    for (std::size_t i = below(3); i > 0; --i) targets.push_back(edges[below(edges.size())].operation());
    const Partitions parts = g.split(feeds, fetches, targets);
    if (parts.parts.size() != 1 || !parts.parts[0].graph.nodes.empty()) check_sound(parts);
    // Each fetch has one way to the client.
    std::multiset<std::size_t> got;
    for (const Partition& part : parts.parts) got.insert(part.fetches.begin(), part.fetches.end());
    for (const ClientEdge& edge : parts.receives) got.insert(edge.index);
    for (const ClientFetch& fetch : parts.known) got.insert(fetch.fetch);
    std::multiset<std::size_t> wanted;
    for (std::size_t f = 0; f < fetches.size(); ++f) wanted.insert(f);
    CHECK(got == wanted);
  }
}

TEST_CASE("the first part of a body ends after a part that changes state or sends it nothing", "[passes][partition]") {
  const bool first_waits = GENERATE(true, false), changes = GENERATE(false, true), sends = GENERATE(false, true);
  CAPTURE(first_waits, changes, sends);
  Placed g(devices(2));
  const auto x = placeholder<float>(g.graph, {});
  const auto there = exp(x), result = relu(sends ? there : x);
  std::vector<NodeId> targets{there.node_id()};
  if (changes) {
    targets.push_back(Variable<float>(g.graph, 0.0f).assign_add(constant(g.graph, 1.0f)).node_id());
  }
  const Endpoint fed[] = {x.endpoint()}, fetched[] = {result.endpoint()};
  PruneScratch scratch;
  StepGraph body = prune(*g.graph.store(), fed, fetched, targets, scratch,
                         [](NodeId, StepNode& node) { node.placed_on = node.op == &op_def<Relu> ? 0 : 1; });
  const BodyEdges edges{.devices = {0, 1}, .feeds_at = {{0, 1}}, .fetches_at = {{0}}, .first_waits = first_waits};
  const std::vector<StepGraph> parts =
      partition_body(std::move(body), edges, g.infos, std::vector<KernelTables>(2, g.kernels));
  REQUIRE(parts.size() == 2);
  const auto is_wait = [&](StepNodeId id) { return parts[0].node(id).op == &op_def<Recv>; };
  const auto end = std::find_if(parts[0].targets.begin(), parts[0].targets.end(), is_wait);
  CHECK((end != parts[0].targets.end()) == (first_waits && (changes || !sends)));
  if (end == parts[0].targets.end()) return;
  // The nodes that have run when the token is sent.
  const std::string token = parts[0].node(*end)->attrs_as<Recv>().tensor_name;
  std::set<StepNodeId> before;
  std::set<std::string_view> ops;
  for (std::size_t i = parts[1].nodes.size(); i-- > 0;) {
    const StepNodeId id(i);
    const StepNode& node = parts[1].node(id);
    const bool is_send = node.op == &op_def<Send> && node->attrs_as<Send>().tensor_name == token;
    if (!is_send && !before.contains(id)) continue;
    ops.insert(node.op->name);
    for (const StepEndpoint input : parts[1].inputs_of(node)) before.insert(input.node);
    for (const StepNodeId control : parts[1].controls_of(node)) before.insert(control);
  }
  CHECK(ops.contains("Exp"));
  CHECK(ops.contains("AssignAdd") == changes);
}

TEST_CASE("a node that depends on a later one is refused", "[passes][partition]") {
  Placed g(devices(2));
  const auto y = identity(random_uniform<float>(g.graph, {}));
  const Endpoint fetch[] = {y.endpoint()};
  StepGraph step = prune(*g.graph.store(), {}, fetch, {});
  for (StepNode& node : step.nodes) node.placed_on = 0;
  step.nodes.back().placed_on = 1;
  std::swap(step.nodes.back(), step.nodes.front());
  try {
    static_cast<void>(partition(std::move(step), g.infos, kernels_for(g.infos), the_client()));
    FAIL("was taken");
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
  }
}
