#include <dflow/passes/expand_collectives.hpp>

#include <dflow/core/device_name.hpp>
#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/passes/partition.hpp>
#include <dflow/passes/prune.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;

namespace {

/// A graph with nodes placed by hand, on tasks of one device each, or on two devices of each task.
struct PlacedCollective {
  Graph graph;
  std::vector<DeviceInfo> infos;
  KernelTables kernels = OpSet(standard_ops).kernels();

  explicit PlacedCollective(int devices, int per_task = 1) {
    for (int i = 0; i < devices; ++i) {
      DeviceInfo& info = infos.emplace_back();
      info.type = "CPU";
      info.name = str_cat("/job:worker/replica:0/task:", i / per_task, "/device:CPU:", i % per_task);
      info.incarnation = 100 + static_cast<std::uint64_t>(i);
    }
  }

  ScopeGuard on(int device) { return graph.device(infos[static_cast<std::size_t>(device)].name); }

  std::vector<Output<float>> values(const PlaceholderShape& shape, int count = -1) {
    std::vector<Output<float>> values;
    for (int i = 0; i < (count < 0 ? static_cast<int>(infos.size()) : count); ++i) {
      const auto there = on(i);
      values.push_back(-placeholder<float>(graph, shape));
    }
    return values;
  }

  template <class T = float>
  StepGraph expand(const std::vector<Output<T>>& fetches, std::vector<Operation> targets = {},
                   const std::vector<Output<T>>& fed = {}, std::span<const CollectiveDevice> here = {}) const {
    std::vector<Endpoint> in, out;
    for (const auto& feed : fed) in.push_back(feed.endpoint());
    std::vector<NodeId> nodes;
    for (const auto& fetch : fetches) out.push_back(fetch.endpoint());
    for (const Operation& target : targets) nodes.push_back(target.node_id());
    for (std::size_t i = 0; i < graph.store()->size(); ++i) {
      const Node& node = graph.store()->node(NodeId(i));
      if (node.op->role == OpRole::placeholder) in.push_back({NodeId(i), 0});
    }
    PruneScratch scratch;
    StepGraph step = prune(*graph.store(), in, out, nodes, scratch, [&](NodeId, StepNode& node) {
      node.placed_on = 0;
      for (std::size_t d = 0; d < infos.size(); ++d) {
        if (node->device == infos[d].name) node.placed_on = static_cast<std::int32_t>(d);
      }
    });
    expand_collectives(step, infos, here);
    require_topological_order(step);
    return step;
  }

  /// How many bytes each task sends to others, and gets from them; feeds and fetches are the client's.
  struct Traffic {
    std::map<std::string, std::int64_t> sent, received;
    std::size_t messages = 0;
  };
  Traffic traffic(StepGraph step) const {
    DeviceInfo client;
    client.name = "/job:client/replica:0/task:0/device:CLIENT:0";
    client.type = "CLIENT";
    const Partitions parts =
        partition(std::move(step), infos, std::vector<KernelTables>(infos.size(), kernels), client);
    Traffic traffic;
    for (const Partition& part : parts.parts) {
      for (const StepNode& node : part.graph.nodes) {
        if (node.op->role != OpRole::recv) continue;
        const auto& attrs = node->attrs_as<Recv>();
        if (attrs.send_device == client.name) continue;
        const auto task = [](const std::string& device) { return device.substr(0, device.find("/device")); };
        if (task(attrs.send_device) == task(attrs.recv_device)) continue;
        const std::int64_t bytes = attrs.shape.num_elements().value_or(0) * 4;
        traffic.sent[task(attrs.send_device)] += bytes;
        traffic.received[task(attrs.recv_device)] += bytes;
        ++traffic.messages;
      }
    }
    return traffic;
  }
};

std::size_t count_nodes(const StepGraph& step, std::string_view op) {
  return static_cast<std::size_t>(
      std::count_if(step.nodes.begin(), step.nodes.end(), [&](const StepNode& node) { return node.op->name == op; }));
}

}  // namespace

TEST_CASE("no collective is left, and nodes have names of their own, after that of the user", "[collective]") {
  PlacedCollective placed(3);
  const auto taken = constant(placed.graph, 1.0f, {.name = "sums/_AddN_0"});
  auto sums = all_reduce(placed.values({30000}), ReduceBy::mean, {.name = "sums"});
  const auto rows = all_gather(placed.values({2}));
  sums.insert(sums.end(), rows.begin(), rows.end());
  sums.push_back(taken);
  const StepGraph step = placed.expand(sums);
  std::set<std::string> names;
  for (const StepNode& node : step.nodes) {
    CHECK(node.op->role != OpRole::collective);
    CHECK(names.insert(node->name).second);
    check_step_node_name(node->name, node.op->name, node->where);
  }
  CHECK(std::any_of(names.begin(), names.end(), [](const auto& name) { return name.starts_with("sums + AddN"); }));
}

TEST_CASE("members may be given in braces", "[collective]") {
  PlacedCollective placed(2);
  const auto values = placed.values({3});
  CHECK(all_reduce({values[0], values[1]}).size() == 2);
  CHECK(all_reduce({values[0], values[1]}, ReduceBy::maximum)[1].graph() == placed.graph.store());
  CHECK(all_gather({values[0], values[1], values[0]}).size() == 3);
}

TEST_CASE("values in one memory are reduced at once, and the result is shared", "[collective]") {
  PlacedCollective placed(4, 4);
  const StepGraph step = placed.expand(all_reduce(placed.values({100000})));
  CHECK(count_nodes(step, "AddN") == 1);
  CHECK(count_nodes(step, "Concat") == 0);
  const std::set<std::int32_t> makers = [&] {
    std::set<std::int32_t> nodes;
    for (const StepEndpoint fetch : step.fetches) nodes.insert(static_cast<std::int32_t>(fetch.node.position()));
    return nodes;
  }();
  CHECK(makers.size() == 1);
}

TEST_CASE("a large all_reduce moves no more bytes per task however many there are", "[collective]") {
  constexpr std::int64_t size = 64 * 3 * 4 * 5 * 100;
  for (const int tasks : {2, 3, 4, 5}) {
    PlacedCollective placed(tasks);
    const auto traffic = placed.traffic(placed.expand(all_reduce(placed.values({size}))));
    INFO(tasks << " tasks");
    // 2 (n - 1) / n of its bytes: the least (Patarasuk and Yuan 2009).
    const std::int64_t least = 2 * (tasks - 1) * size * 4 / tasks;
    for (const auto& [task, bytes] : traffic.sent) CHECK(bytes == least);
    for (const auto& [task, bytes] : traffic.received) CHECK(bytes == least);
    CHECK(traffic.sent.size() == static_cast<std::size_t>(tasks));
  }
}

TEST_CASE("a small all_reduce, and one of unknown shape, waits for one transfer", "[collective]") {
  for (const bool is_static : {true, false}) {
    PlacedCollective placed(4);
    const auto shape = is_static ? PlaceholderShape({100}) : PlaceholderShape({dynamic});
    const StepGraph step = placed.expand(all_reduce(placed.values(shape)));
    CHECK(count_nodes(step, "Slice") == 0);
    CHECK(placed.traffic(step).messages == 12);
  }
}

TEST_CASE("values of one task cross to others once", "[collective]") {
  PlacedCollective placed(6, 2);
  const auto traffic = placed.traffic(placed.expand(all_reduce(placed.values({100}))));
  CHECK(traffic.messages == 6);
}

TEST_CASE("a result that nobody reads is not computed", "[collective]") {
  constexpr std::int64_t size = 64 * 4 * 1000;
  PlacedCollective placed(4);
  const auto sums = all_reduce(placed.values({size}));
  const auto traffic = placed.traffic(placed.expand({sums[2]}));
  const std::string reader = "/job:worker/replica:0/task:2";
  CHECK(traffic.received.at(reader) == 2 * 3 * size);  // parts of its own part, and the reduced parts of others
  CHECK(traffic.received.at("/job:worker/replica:0/task:1") == 3 * size);
  PlacedCollective small(4);
  const auto few = all_reduce(small.values({10}));
  CHECK(small.traffic(small.expand({few[2]})).messages == 3);
}

TEST_CASE("a result that is fed is not computed", "[collective]") {
  PlacedCollective placed(3);
  const auto sums = all_reduce(placed.values({10}));
  const StepGraph step = placed.expand({sums[0], sums[2]}, {}, {sums[0]});
  CHECK(count_nodes(step, "AddN") == 1);
  CHECK(step.node(step.fetches[1].node).placed_on == 2);
  CHECK(std::find(step.feeds.begin(), step.feeds.end(), step.fetches[0]) != step.feeds.end());
}

TEST_CASE("parts are cut by constants that are made once", "[collective]") {
  constexpr std::int64_t tasks = 6;
  PlacedCollective placed(tasks);
  const StepGraph step = placed.expand(all_reduce(placed.values({64 * tasks * 1000})));
  CHECK(count_nodes(step, "Slice") == tasks * tasks);
  // Constants say where parts begin and how long they are; each task that cuts and joins has three more.
  CHECK(count_nodes(step, "Const") <= 4 * tasks + 1);
}

TEST_CASE("strings are gathered and broadcast in host memory, whatever device they are said to be on", "[collective]") {
  for (const bool has_host : {true, false}) {
    PlacedCollective placed(6, 3);
    for (std::size_t i = 0; i < placed.infos.size(); ++i) {
      if (i % 3 == 2 && has_host) continue;
      placed.infos[i].type = "GPU";
      placed.infos[i].memory = str_cat("GPU:", i % 3);
    }
    std::vector<Output<std::string>> values;
    for (const int device : {0, 1, 4}) {
      const auto there = placed.on(device);
      values.push_back(placeholder<std::string>(placed.graph, {2}));
    }
    const auto rows = all_gather(values, {.name = "rows"});
    if (!has_host) {
      const Status status = status_of([&] { return placed.expand(rows).nodes.size(); });
      INFO(status.to_string());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(mentions(status, "rows"));
      CHECK(mentions(status, "expand_collectives_test.cpp"));
      continue;
    }
    const StepGraph step = placed.expand(rows);
    CHECK(count_nodes(step, "Concat") == 2);
    for (const StepNode& node : step.nodes) {
      if (node.op->role != OpRole::placeholder) CHECK(node.placed_on % 3 == 2);
    }
    const auto copies = broadcast_to_devices(values[0], {placed.infos[1].name, placed.infos[3].name});
    const StepGraph copied = placed.expand(copies);
    for (const StepNode& node : copied.nodes) {
      if (node->name.find(" + ") != std::string::npos) CHECK(node.placed_on % 3 == 2);
    }
  }
}

TEST_CASE("a large broadcast leaves its root once", "[collective]") {
  constexpr std::int64_t size = 64 * 3 * 1000;
  PlacedCollective placed(4);
  const auto value = placed.values({size}, 1)[0];
  std::vector<std::string> devices;
  for (const DeviceInfo& info : placed.infos) devices.push_back(info.name);
  const auto traffic = placed.traffic(placed.expand(broadcast_to_devices(value, devices)));
  CHECK(traffic.sent.at("/job:worker/replica:0/task:0") == size * 4);
  for (int task = 1; task < 4; ++task) {
    const std::string name = str_cat("/job:worker/replica:0/task:", task);
    CHECK(traffic.received.at(name) == size * 4);
    CHECK(traffic.sent.at(name) == 2 * size * 4 / 3);
  }
}

TEST_CASE("a broadcast to one device is a copy, and to none that is read nothing", "[collective]") {
  PlacedCollective placed(2);
  const auto value = placed.values({50000}, 1)[0];
  const auto copies = broadcast_to_devices(value, {placed.infos[1].name, placed.infos[0].name});
  const StepGraph step = placed.expand({copies[0]});
  CHECK(count_nodes(step, "Slice") == 0);
  CHECK(placed.traffic(step).messages == 1);
  CHECK(placed.traffic(placed.expand({copies[1]})).messages == 0);
}

TEST_CASE("who waits for a collective waits for its results, and it for what it waits for", "[collective]") {
  PlacedCollective placed(2);
  const auto values = placed.values({3});
  const Operation first = no_op(placed.graph);
  const auto sums = [&] {
    const auto waits = placed.graph.control_dependencies({first});
    return all_reduce(values);
  }();
  const StepGraph step = placed.expand({sums[0]}, {sums[0].operation()});
  REQUIRE(step.targets.size() == 1);
  CHECK(step.targets[0] == step.fetches[0].node);
  CHECK(step.controls_of(step.node(step.targets[0])).size() == 1);
  const StepGraph alone = placed.expand({}, {sums[0].operation()});
  CHECK(alone.targets.size() == 2);
}

namespace {

/// Computes the collectives in `kinds`, on any devices.
class SomeCollectives final : public DeviceCollectives {
 public:
  std::set<CollectiveKind> kinds{CollectiveKind::sum, CollectiveKind::product, CollectiveKind::gather,
                                 CollectiveKind::broadcast};
  std::vector<DType> asked;

  bool can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const>) override {
    asked.push_back(dtype);
    return kinds.count(kind) != 0;
  }
};

}  // namespace

TEST_CASE("devices that compute together get a node each instead of transfers", "[collective]") {
  PlacedCollective placed(3);
  SomeCollectives together;
  const std::vector<CollectiveDevice> here(3, {nullptr, &together});
  const auto large = placed.values({30000}), unknown = placed.values({dynamic}), small = placed.values({10});
  const auto nodes = [&](const std::vector<Output<float>>& results) {
    const StepGraph step = placed.expand(results, {}, {}, here);
    const std::size_t count = count_nodes(step, "_MemberCollective");
    if (count != 0) CHECK(placed.traffic(step).messages == 0);
    return count;
  };
  for (const ReduceBy reduction : {ReduceBy::sum, ReduceBy::mean, ReduceBy::product}) {
    CHECK(nodes(all_reduce(large, reduction)) == 3);
    CHECK(nodes(all_reduce(unknown, reduction)) == 3);
    CHECK(nodes(all_reduce(small, reduction)) == 0);
  }
  for (const ReduceBy reduction : {ReduceBy::minimum, ReduceBy::maximum})
    CHECK(nodes(all_reduce(large, reduction)) == 0);
  CHECK(nodes(all_gather(large)) == 3);
  CHECK(nodes(all_gather(unknown)) == 0);
  CHECK(nodes(all_gather(std::vector<Output<float>>{large[0], large[1], small[2]})) == 0);
  const std::vector<std::string> others{placed.infos[1].name, placed.infos[2].name};
  CHECK(nodes(broadcast_to_devices(large[0], others)) == 3);
  CHECK(nodes(broadcast_to_devices(large[0], {others[0]})) == 0);
  // Not all want the result, or not all compute together.
  const auto sums = all_reduce(large);
  CHECK(nodes({sums[0], sums[2]}) == 0);
  SomeCollectives apart;
  const std::vector<CollectiveDevice> not_all{{nullptr, &together}, {nullptr, &apart}, {nullptr, &together}};
  CHECK(count_nodes(placed.expand(sums, {}, {}, not_all), "_MemberCollective") == 0);
  together.kinds = {CollectiveKind::gather};
  CHECK(nodes(sums) == 0);
  CHECK(nodes(all_gather(large)) == 3);
}

TEST_CASE("what devices compute together is of elements that are wide enough", "[collective]") {
  PlacedCollective placed(2);
  SomeCollectives together;
  const std::vector<CollectiveDevice> here(2, {nullptr, &together});
  std::vector<Output<Half>> halves;
  std::vector<Output<std::int32_t>> numbers;
  const auto values = placed.values({50000});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto there = placed.on(static_cast<int>(i));
    const Output<float>& value = values[i];
    halves.push_back(cast<Half>(value));
    numbers.push_back(cast<std::int32_t>(value));
  }
  const auto expand = [&](const std::vector<AnyOutput>& results) {
    std::vector<Output<float>> fetches;
    for (const AnyOutput& each : results) fetches.push_back(Output<float>::unchecked(each));
    placed.expand(fetches, {}, {}, here);
    REQUIRE_FALSE(together.asked.empty());
    return together.asked.back();
  };
  const auto erased = [](const auto& edges) { return std::vector<AnyOutput>(edges.begin(), edges.end()); };
  CHECK(expand(erased(all_reduce(halves))) == DType::float32);
  CHECK(expand(erased(all_gather(halves))) == DType::float16);
  CHECK(expand(erased(all_reduce(numbers))) == DType::int32);
  CHECK(expand(erased(all_reduce(numbers, ReduceBy::mean))) == DType::int64);
}
