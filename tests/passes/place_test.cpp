#include <dflow/passes/place.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

struct OnlyCpu : Op<"OnlyCpu", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

struct Wide : Op<"Wide", TypeList<float, double>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

struct Npu {
  static constexpr std::string_view type = "NPU";
};

DeviceInfo device(std::string name, std::string type = "CPU") {
  DeviceInfo info;
  info.name = std::move(name);
  info.type = std::move(type);
  return info;
}

std::vector<DeviceInfo> cpus(int count) {
  std::vector<DeviceInfo> infos;
  for (int i = 0; i < count; ++i) infos.push_back(device(str_cat("/job:localhost/replica:0/task:0/device:CPU:", i)));
  return infos;
}

Status status_where(const Placement& placement, const AnyOutput& edge) {
  try {
    static_cast<void>(placement.device_of(edge.node_id()));
  } catch (const Error& error) {
    return error.status();
  }
  return {};
}

std::vector<KernelTables> kernels(int devices) {
  static const OpSet all_ops = standard_ops;
  return std::vector<KernelTables>(static_cast<std::size_t>(devices), all_ops.kernels());
}

}  // namespace

template <>
struct dflow::Kernel<Wide, Npu, float> {
  void operator()(KernelContext&, const Tensor<float>&, Tensor<float>&) const {}
};

TEST_CASE("a node goes where its constraint says, else to its first producer, else to the first device",
          "[passes][place]") {
  Graph graph;
  const auto x = random_uniform<float>(graph, {});
  Output<float> y;
  {
    const auto on = graph.device("/cpu:2");
    y = x * 2.0f;
  }
  const auto z = y + x, w = constant(graph, 1.0f) + y;
  Placement placement(cpus(3), kernels(3), false);
  placement.extend(*graph.store());
  CHECK(placement.device_of(x.node_id()) == 0);
  CHECK(placement.device_of(y.node_id()) == 2);
  CHECK(placement.device_of(z.node_id()) == 2);
  CHECK(placement.device_of(w.node_id()) == 2);  // a constant draws nothing to where it stands
}

TEST_CASE("the first producer decides alone, even if the node may not go to its device", "[passes][place]") {
  Graph graph;
  const auto made_on = [&](const char* device) {
    const auto on = graph.device(device);
    return random_uniform<float>(graph, {});
  };
  const auto here = made_on("/cpu:0"), there = made_on("/cpu:2"), npu = apply<Wide>(here);
  const auto after_npu = npu + there;  // it has no kernel on the NPU
  const auto after_here = here + there;
  const auto constant_first = constant(graph, 1.0f) + there;  // a constant is on no device
  Output<float> elsewhere;
  {
    const auto on = graph.device("/device:CPU:*");
    elsewhere = npu * there;
  }
  std::vector<DeviceInfo> all = cpus(3);
  all.insert(all.begin() + 1, device("/job:localhost/replica:0/task:0/device:NPU:0", "NPU"));
  KernelTables tables = OpSet(standard_ops).kernels();
  const KernelTable of_npu = kernels_of<Npu>(ops<Wide>);
  tables.add(of_npu);
  Placement placement(all, std::vector<KernelTables>(4, tables), false);
  placement.extend(*graph.store());
  CHECK(placement.device_of(npu.node_id()) == 1);
  CHECK(placement.device_of(there.node_id()) == 3);
  CHECK(placement.device_of(after_npu.node_id()) == 0);
  CHECK(placement.device_of(elsewhere.node_id()) == 0);
  CHECK(placement.device_of(after_here.node_id()) == 0);
  CHECK(placement.device_of(constant_first.node_id()) == 3);
}

TEST_CASE("who asks for a device of a type that there is none of is told how to have one", "[passes][place]") {
  Graph graph;
  const auto on_a = [&](const char* device) {
    const auto on = graph.device(device);
    return random_uniform<float>(graph, {});
  };
  const auto gpu = on_a("/gpu:0"), tpu = on_a("/device:TPU:0"), far = on_a("/cpu:7");
  Placement placement(cpus(2), kernels(2), false);
  placement.extend(*graph.store());
  const Status of_gpu = status_where(placement, gpu), of_tpu = status_where(placement, tpu),
               of_far = status_where(placement, far);
  CHECK(of_gpu.code() == Code::invalid_argument);
  CHECK(mentions(of_gpu, "dflow::cuda"));
  CHECK(mentions(of_gpu, "soft placement"));
  CHECK_FALSE(mentions(of_tpu, "dflow::cuda"));
  CHECK(mentions(of_tpu, "soft placement"));
  CHECK_FALSE(mentions(of_far, "soft placement"));
}

TEST_CASE("users of a handle are together, whoever of them says where", "[passes][place]") {
  Graph graph;
  const Variable<float> v(graph, constant(graph, 0.0f), {.name = "v"});
  Operation bump;
  {
    const auto on = graph.device("/cpu:1");
    bump = v.assign_add(constant(graph, 1.0f));
  }
  Placement placement(cpus(2), kernels(2), false);
  placement.extend(*graph.store());
  const std::size_t here = placement.device_of(v.handle().node_id());
  CHECK(placement.device_of(bump.node_id()) == here);
  CHECK(placement.device_of(v.node_id()) == here);
  CHECK(placement.device_of(v.initializer().node_id()) == here);
}

TEST_CASE("what has been placed stays where it is when nodes are added", "[passes][place]") {
  Graph graph;
  Placement placement(cpus(3), kernels(3), false), at_once(cpus(3), kernels(3), false);
  std::mt19937 rng(3);
  std::vector<Output<float>> edges{random_uniform<float>(graph, {})};
  std::vector<std::size_t> placed;
  for (int i = 0; i < 300; ++i) {
    const std::size_t from = rng() % edges.size();
    if (rng() % 4 == 0) {
      const auto beside = graph.colocate_with(edges[rng() % edges.size()]);
      edges.push_back(edges[from] + 1.0f);
    } else {
      const auto on = graph.device(rng() % 3 == 0 ? str_cat("/cpu:", rng() % 3) : std::string());
      edges.push_back(edges[from] * edges[rng() % edges.size()]);
    }
    if (rng() % 3 != 0) continue;
    placement.extend(*graph.store());
    for (const NodeId id : IndexRange<NodeId>(graph.num_nodes())) {
      const std::size_t here = placement.device_of(id);
      if (id.position() < placed.size()) {
        if (placed[id.position()] != here) FAIL("node " << id.value() << " has moved");
      } else {
        placed.push_back(here);
      }
    }
  }
  placement.extend(*graph.store());
  for (const Output<float>& edge : edges) {
    const Node& node = edge.node();
    if (node.colocated_with.is_valid())
      CHECK(placement.device_of(edge.node_id()) == placement.device_of(node.colocated_with));
  }
}

TEST_CASE("colocation wins over the scope around it; a scope inside adds its constraint", "[passes][place]") {
  Graph graph;
  Output<float> a, b, c;
  {
    const auto on = graph.device("/cpu:1");
    a = random_uniform<float>(graph, {});
  }
  {
    const auto on = graph.device("/cpu:0");
    const auto beside = graph.colocate_with(a);
    b = a + 1.0f;
    const auto inside = graph.device("/cpu:0");
    c = a + 2.0f;
  }
  Placement placement(cpus(2), kernels(2), false), soft(cpus(2), kernels(2), true);
  placement.extend(*graph.store());
  soft.extend(*graph.store());
  CHECK(placement.device_of(b.node_id()) == 1);
  CHECK(status_where(placement, c).code() == Code::invalid_argument);
  CHECK(status_where(placement, a).ok());
  CHECK(soft.device_of(c.node_id()) == 1);
}

TEST_CASE("errors are those of a node, and name it", "[passes][place]") {
  Graph graph;
  Output<float> nowhere, elsewhere;
  {
    const auto on = graph.device("/cpu:7");
    nowhere = random_uniform<float>(graph, {}, {}, {.name = "nowhere"});
  }
  {
    const auto on = graph.device("/job:worker");
    elsewhere = random_uniform<float>(graph, {});
  }
  const auto unknown = apply<OnlyCpu>(random_uniform<float>(graph, {}));
  const auto fine = random_uniform<float>(graph, {});
  Placement placement(cpus(2), kernels(2), false);
  placement.extend(*graph.store());
  const Status status = status_where(placement, nowhere);
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.node() == "nowhere");
  CHECK(std::string(status.message()).find("CPU:1") != std::string::npos);  // what there is
  CHECK(status_where(placement, elsewhere).code() == Code::invalid_argument);
  CHECK(status_where(placement, unknown).code() == Code::not_found);
  CHECK(status_where(placement, fine).ok());
  // Softly the number may be another one, the job not.
  Placement soft(cpus(2), kernels(2), true);
  soft.extend(*graph.store());
  CHECK(soft.device_of(nowhere.node_id()) == 0);
  CHECK(status_where(soft, elsewhere).code() == Code::invalid_argument);
  CHECK(status_where(soft, unknown).code() == Code::not_found);
}

TEST_CASE("a node goes to a device that has a kernel for it; softly also against its constraint", "[passes][place]") {
  Graph graph;
  Output<float> gpu;
  {
    const auto on = graph.device("/gpu:0");
    gpu = random_uniform<float>(graph, {});
  }
  const auto free = random_uniform<float>(graph, {});
  const std::vector<DeviceInfo> devices = {device("/job:localhost/replica:0/task:0/device:GPU:0", "GPU"),
                                           device("/job:localhost/replica:0/task:0/device:CPU:0")};
  Placement placement(devices, kernels(2), false), soft(devices, kernels(2), true);
  placement.extend(*graph.store());
  soft.extend(*graph.store());
  CHECK(placement.device_of(free.node_id()) == 1);
  CHECK(status_where(placement, gpu).code() == Code::not_found);
  CHECK(soft.device_of(gpu.node_id()) == 1);
}

TEST_CASE("a node without a kernel says where it may go and what is missing there", "[passes][place]") {
  Graph graph;
  Output<double> wide;
  Output<float> only_cpu;
  {
    const auto on = graph.device("/device:NPU:0");
    wide = apply<Wide>(constant(graph, 1.0), {}, {.name = "wide"});
    only_cpu = apply<OnlyCpu>(constant(graph, 1.0f));
  }
  const auto nowhere = apply<Wide>(constant(graph, 1.0));
  const KernelTable npu = kernels_of<Npu>(ops<Wide>);
  KernelTables tables = OpSet(standard_ops).kernels();
  tables.add(npu);
  const std::string npu_name = "/job:localhost/replica:0/task:0/device:NPU:0";
  Placement placement({device(npu_name, "NPU"), device("/job:localhost/replica:0/task:0/device:CPU:0")},
                      {tables, tables}, false);
  placement.extend(*graph.store());
  const Status status = status_where(placement, wide);
  CHECK(status.code() == Code::not_found);
  CHECK(status.node() == "wide");
  CHECK(std::string(status.message()) == "op Wide of double has no kernel on what '/device:NPU:0' allows, " + npu_name +
                                             ": its NPU kernel is for other element types");
  CHECK(status_where(placement, only_cpu).to_string().find("the session's tables have no NPU kernel of it") !=
        std::string::npos);
  CHECK(std::string(status_where(placement, nowhere).message()) ==
        "op Wide of double has no kernel on " + npu_name +
            ", /job:localhost/replica:0/task:0/device:CPU:0: its NPU kernel is for other element types, the session's "
            "tables have no CPU kernel of it");
}

TEST_CASE("many variables in one group and long chains are placed", "[passes][place]") {
  Graph graph;
  Output<float> y = random_uniform<float>(graph, {});
  for (int i = 0; i < 30'000; ++i) {
    const auto beside = graph.colocate_with(y);
    y = identity(y);
  }
  Placement placement(cpus(2), kernels(2), false);
  placement.extend(*graph.store());
  CHECK(placement.device_of(y.node_id()) == 0);
}

TEST_CASE("placement is extended and read by several threads while the graph grows", "[passes][place]") {
  Graph graph;
  Output<float> y = random_uniform<float>(graph, {});
  Placement placement(cpus(3), kernels(3), false);
  std::atomic<bool> ends{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!ends) {
        const std::size_t count = graph.num_nodes();
        placement.extend(*graph.store());
        for (const NodeId id : IndexRange<NodeId>(count)) wrong += placement.device_of(id) < 3 ? 0 : 1;
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    const auto on = graph.device(str_cat("/cpu:", i % 3));
    y = y * 2.0f;
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("the text of a placement has a line per node", "[passes][place]") {
  StepGraph graph;
  Node node;
  node.op = &op_def<NoOp>;
  node.name = "n";
  node.device = "/cpu:*";
  graph.append(node, 1);
  DeviceInfo devices[2];
  devices[0].name = "/cpu:0";
  devices[1].name = "/cpu:1";
  CHECK(placement_text(graph, devices) == "n: NoOp -> /cpu:1\n");
}
