// Collectives between the devices of one session: of host memory, and of memories of their own.
#include <dflow/ops/collective/collective.hpp>

#include "support/collective_members.hpp"
#include "support/proof_device.hpp"

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/passes/expand_collectives.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Devices of one kind: the type, and a session's list of `count` of them and the CPU.
struct CollectiveRig {
  std::string type;
  std::vector<std::shared_ptr<Device>> devices;

  SessionOptions options() const { return {.devices = devices}; }
};

CollectiveRig cpu_rig(std::size_t count) {
  CollectiveRig rig{"CPU", {}};
  const auto pool = std::make_shared<WorkStealingPool>(2);
  for (std::size_t i = 0; i < count; ++i) {
    rig.devices.push_back(std::make_shared<CpuDevice>(
        CpuDeviceOptions{.name = str_cat("/job:localhost/replica:0/task:0/device:CPU:", i), .pool = pool}));
  }
  return rig;
}

CollectiveRig proof_rig(std::size_t count) {
  CollectiveRig rig = cpu_rig(1);
  rig.type = Proof::type;
  for (std::size_t i = 0; i < count; ++i) rig.devices.push_back(std::make_shared<ProofDevice>(static_cast<int>(i)));
  return rig;
}

/// The number of members, and the number of devices that they are on.
struct MemberCount {
  std::size_t members, devices;
};
constexpr MemberCount member_counts[] = {{1, 1}, {2, 2}, {3, 3}, {5, 3}};

/// Small, empty, a scalar, and large.
template <class T>
std::vector<Shape> collective_shapes() {
  return {{2, 3}, {0, 4}, {}, {5, static_cast<std::int64_t>(max_whole_bytes / sizeof(T)) / 5 + 17}};
}

}  // namespace

TEST_CASE("all_reduce gives each member what its values make together, for all element types", "[collective]") {
  for (const bool is_proof : {false, true}) {
    for (const MemberCount count : member_counts) {
      const CollectiveRig rig = is_proof ? proof_rig(count.devices) : cpu_rig(count.devices);
      INFO(rig.type << ", " << count.members << " members on " << count.devices);
      for_each_type<NumberTypes>([&]<class T>() {
        Graph graph;
        std::vector<Members<T>> members;
        std::vector<std::vector<Output<T>>> results;
        for (const Shape& shape : collective_shapes<T>()) {
          members.emplace_back(graph, member_devices(rig.type, count.members, count.devices), shape);
        }
        members.emplace_back(graph, member_devices(rig.type, count.members, count.devices), Shape{4}, false);
        Session session(graph, rig.options());
        for (const ReduceBy reduction : all_reductions) {
          if (!can_reduce<T>(reduction)) continue;
          for (const Members<T>& each : members) {
            const auto edges = all_reduce(each.values, reduction);
            const Tensor<T> wanted = reduced(each.tensors, reduction);
            const std::vector<Tensor<T>> got = results_of(session, each.feeds(), edges);
            INFO(dtype_name(dtype_of<T>) << " " << wanted.shape().to_string() << ", reduction "
                                         << static_cast<int>(reduction));
            for (const Tensor<T>& result : got) CHECK(are_equal(result, wanted));
          }
        }
      });
    }
  }
}

TEST_CASE("all_gather gives each member the rows of all, for all element types", "[collective]") {
  for (const bool is_proof : {false, true}) {
    for (const MemberCount count : member_counts) {
      const CollectiveRig rig = is_proof ? proof_rig(count.devices) : cpu_rig(count.devices);
      INFO(rig.type << ", " << count.members << " members on " << count.devices);
      std::vector<Shape> shapes;
      for (std::size_t i = 0; i < count.members; ++i) shapes.push_back({static_cast<std::int64_t>((i * 2) % 5), 3});
      for_each_type<AllTypes>([&]<class T>() {
        if (is_proof && std::is_same_v<T, std::string>) return;
        for (const bool is_static : {true, false}) {
          Graph graph;
          const Members<T> members(graph, member_devices(rig.type, count.members, count.devices), shapes, is_static);
          const auto edges = all_gather(members.values);
          Session session(graph, rig.options());
          const Tensor<T> wanted = gathered(members.tensors);
          INFO(dtype_name(dtype_of<T>) << ", shapes are known: " << is_static);
          for (const Tensor<T>& result : results_of(session, members.feeds(), edges)) {
            CHECK(are_equal(result, wanted));
          }
        }
      });
    }
  }
}

TEST_CASE("broadcast_to_devices gives each device the value, for all element types", "[collective]") {
  for (const bool is_proof : {false, true}) {
    for (const MemberCount count : member_counts) {
      const CollectiveRig rig = is_proof ? proof_rig(count.devices) : cpu_rig(count.devices);
      INFO(rig.type << ", " << count.members << " members on " << count.devices);
      for_each_type<AllTypes>([&]<class T>() {
        if (is_proof && std::is_same_v<T, std::string>) return;
        for (const Shape& shape : collective_shapes<T>()) {
          Graph graph;
          const auto devices = member_devices(rig.type, count.members, count.devices);
          const Members<T> root(graph, {devices.back()}, shape);
          const auto edges = broadcast_to_devices(root.values[0], devices);
          Session session(graph, rig.options());
          INFO(dtype_name(dtype_of<T>) << " " << shape.to_string());
          for (const Tensor<T>& result : results_of(session, root.feeds(), edges)) {
            CHECK(are_equal(result, root.tensors[0]));
          }
        }
      });
    }
  }
}

TEST_CASE("a constant is reduced and broadcast as any value", "[collective]") {
  const CollectiveRig rig = proof_rig(3);
  Graph graph;
  std::vector<Output<float>> values;
  std::vector<Tensor<float>> tensors;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto on = graph.device(str_cat("/device:PROOF:", i));
    tensors.push_back(member_value<float>(i, {40000}));
    values.push_back(constant(graph, tensors.back()));
  }
  const auto sums = all_reduce(values);
  const auto copies = broadcast_to_devices(values[1], member_devices("PROOF", 3, 3));
  Session session(graph, rig.options());
  for (const auto& result : results_of(session, {}, sums)) CHECK(are_equal(result, reduced(tensors, ReduceBy::sum)));
  for (const auto& result : results_of(session, {}, copies)) CHECK(are_equal(result, tensors[1]));
}

TEST_CASE("sums, means and products of 16-bit floats are rounded once, and do not overflow on the way",
          "[collective]") {
  for (const MemberCount count : {MemberCount{2, 2}, MemberCount{3, 3}, MemberCount{4, 2}}) {
    const CollectiveRig rig = proof_rig(count.devices);
    for (const std::int64_t size : {std::int64_t{4}, std::int64_t{70000}}) {
      Graph graph;
      Members<Half> members(graph, member_devices("PROOF", count.members, count.devices), Shape{size});
      // 2048 + 1 is 2048 in half; so is 2048 + 1 + 1 where each sum is rounded.
      for (std::size_t i = 0; i < count.members; ++i) {
        members.tensors[i] = Tensor<Half>::full({size}, Half(i == 0 ? 2048.0f : 1.0f));
      }
      Session session(graph, rig.options());
      const auto feeds = members.feeds();
      const float wanted = static_cast<float>(Half(2048.0f + static_cast<float>(count.members - 1)));
      for (const auto& sum : results_of(session, feeds, all_reduce(members.values))) {
        CHECK(static_cast<float>(sum.span()[0]) == wanted);
        CHECK(static_cast<float>(sum.span()[static_cast<std::size_t>(size - 1)]) == wanted);
      }
      for (Tensor<Half>& each : members.tensors) each = Tensor<Half>::full({size}, Half(60000.0f));
      for (const auto& mean : results_of(session, members.feeds(), all_reduce(members.values, ReduceBy::mean))) {
        CHECK(static_cast<float>(mean.span()[1]) == static_cast<float>(Half(60000.0f)));
      }
      for (std::size_t i = 0; i < count.members; ++i) {
        members.tensors[i] = Tensor<Half>::full({size}, Half(i + 1 == count.members ? 0.001f : 1000.0f));
      }
      for (const auto& product : results_of(session, members.feeds(), all_reduce(members.values, ReduceBy::product))) {
        float exact = static_cast<float>(Half(0.001f));
        for (std::size_t i = 1; i < count.members; ++i) exact *= 1000.0f;
        CHECK(static_cast<float>(product.span()[1]) == Approx(static_cast<float>(Half(exact))).epsilon(1e-3));
      }
    }
  }
}

TEST_CASE("what is not a number makes minimum and maximum of it one, in each member", "[collective]") {
  const CollectiveRig rig = proof_rig(3);
  Graph graph;
  Members<float> members(graph, member_devices("PROOF", 3, 3), Shape{3});
  for (std::size_t i = 0; i < 3; ++i) members.tensors[i].span()[i] = std::numeric_limits<float>::quiet_NaN();
  Session session(graph, rig.options());
  for (const ReduceBy reduction : {ReduceBy::minimum, ReduceBy::maximum}) {
    for (const auto& result : results_of(session, members.feeds(), all_reduce(members.values, reduction))) {
      for (const float element : result.span()) CHECK(std::isnan(element));
    }
  }
}

TEST_CASE("members get the same bits, in each step", "[collective]") {
  const CollectiveRig rig = proof_rig(3);
  Graph graph;
  Members<float> members(graph, member_devices("PROOF", 3, 3), Shape{50000});
  for (std::size_t i = 0; i < 3; ++i) {
    float number = 0.1f + static_cast<float>(i);
    for (float& element : members.tensors[i].span()) element = number = std::sin(number) * 3 + 1e-3f;
  }
  const auto sums = all_reduce(members.values, ReduceBy::mean);
  Session session(graph, rig.options());
  const auto first = results_of(session, members.feeds(), sums);
  for (int run = 0; run < 5; ++run) {
    for (const auto& result : results_of(session, members.feeds(), sums)) CHECK(are_equal(result, first[0]));
  }
}

TEST_CASE("shapes that differ in the step are an error that names both, whatever the reduction", "[collective]") {
  for (const bool is_proof : {false, true}) {
    const CollectiveRig rig = is_proof ? proof_rig(2) : cpu_rig(2);
    Graph graph;
    Members<float> members(graph, member_devices(rig.type, 2, 2), {Shape{1, 3}, Shape{2, 3}}, false);
    Session session(graph, rig.options());
    for (const ReduceBy reduction : all_reductions) {
      const auto results = all_reduce(members.values, reduction);
      const Status status = status_of([&] { return results_of(session, members.feeds(), results).size(); });
      INFO(status.to_string());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(mentions(status, "[1,3]"));
      CHECK(mentions(status, "[2,3]"));
      CHECK(mentions(status, "collectives_test.cpp"));
    }
  }
}

TEST_CASE("a result alone, an operation and what waits for it run without the other results", "[collective]") {
  for (const bool is_proof : {false, true}) {
    const CollectiveRig rig = is_proof ? proof_rig(3) : cpu_rig(3);
    for (const std::int64_t size : {std::int64_t{3}, std::int64_t{40000}}) {
      Graph graph;
      const Members<float> members(graph, member_devices(rig.type, 3, 3), Shape{size});
      const auto sums = all_reduce(members.values);
      const auto after = [&] {
        const auto waits = graph.control_dependencies({sums[0].operation()});
        return identity(members.values[1]);
      }();
      Session session(graph, rig.options());
      const auto alone = results_of(session, members.feeds(), std::vector<Output<float>>{sums[2]});
      CHECK(are_equal(alone[0], reduced(members.tensors, ReduceBy::sum)));
      const auto waited = results_of(session, members.feeds(), std::vector<Output<float>>{after});
      CHECK(are_equal(waited[0], members.tensors[1]));
      std::vector<AnyTensor> none;
      const std::vector<Operation> target{sums[1].operation()};
      session.run_erased({}, nullptr, members.feeds(), {}, target, none);
    }
  }
}

TEST_CASE("what is built on a result is where its member's value is", "[collective]") {
  const CollectiveRig rig = cpu_rig(3);
  Graph graph;
  const Members<float> members(graph, member_devices("CPU", 3, 3), Shape{2});
  const auto sums = all_reduce(members.values);
  const auto negated = -sums[2];
  const auto rows = square(all_gather(sums)[1]);
  Session session(graph, rig.options());
  results_of(session, members.feeds(), std::vector<Output<float>>{negated, rows});
  const std::string log = session.placement_log();
  INFO(log);
  CHECK(contains(log, str_cat(negated.node().name, ": Neg -> /job:localhost/replica:0/task:0/device:CPU:2")));
  CHECK(contains(log, str_cat(rows.node().name, ": Square -> /job:localhost/replica:0/task:0/device:CPU:1")));
}

TEST_CASE("a result that is fed is that, beside those that are computed", "[collective]") {
  const CollectiveRig rig = cpu_rig(2);
  Graph graph;
  const Members<float> members(graph, member_devices("CPU", 2, 2), Shape{2});
  const auto sums = all_reduce(members.values);
  const Output<float> doubled = sums[0] * 2.0f, tripled = sums[1] * 3.0f;
  Session session(graph, rig.options());
  auto feeds = members.feeds();
  feeds.emplace_back(sums[0], Tensor<float>({2}, {10, 20}));
  const auto got = results_of(session, feeds, std::vector<Output<float>>{doubled, tripled});
  CHECK(got[0](1) == 40);
  CHECK(got[1](1) == 3 * reduced(members.tensors, ReduceBy::sum)(1));
}

TEST_CASE("what waits for something waits with its results", "[collective]") {
  const CollectiveRig rig = cpu_rig(2);
  Graph graph;
  Variable<float> count(graph, Tensor<float>(0.0f), {.name = "count"});
  const Members<float> members(graph, member_devices("CPU", 2, 2), Shape{2});
  const Operation add = count.assign_add(constant(graph, Tensor<float>(1.0f)));
  const auto sums = [&] {
    const auto waits = graph.control_dependencies({add});
    return all_reduce(members.values);
  }();
  const auto after = [&] {
    const auto waits = graph.control_dependencies({sums[1].operation()});
    return count.read();
  }();
  Session session(graph, rig.options());
  session.run(initialize_variables(graph));
  for (int run = 1; run < 4; ++run) {
    const auto got = results_of(session, members.feeds(), std::vector<Output<float>>{after});
    CHECK(got[0].scalar() == static_cast<float>(run));
  }
}

TEST_CASE("collectives run in the bodies of branches, loops and functions, in each form", "[collective]") {
  for (const bool is_proof : {false, true}) {
    const CollectiveRig rig = is_proof ? proof_rig(3) : cpu_rig(3);
    for (int form = 0; form < 3; ++form) {
      PassOptions passes;
      passes.lower_control_flow = form == 1;
      passes.raise_control_flow = form == 2;
      Graph graph;
      const auto on = [&](int i) { return graph.device(str_cat("/device:", rig.type, ":", i)); };
      const auto x = placeholder<float>(graph, {20000});
      const auto n = placeholder<std::int32_t>(graph, {});
      const auto yes = placeholder<bool>(graph, {});
      // On device i, x * (i + 1); their sum is 6 x.
      const auto sum_of = [&](const Output<float>& value) {
        std::vector<Output<float>> values;
        for (int i = 0; i < 3; ++i) {
          const auto there = on(i);
          values.push_back(value * static_cast<float>(i + 1));
        }
        return all_reduce(values);
      };
      const auto branch = cond(
          yes, [&] { return Output<float>(sum_of(x)[1] + 0.0f); }, [&] { return Output<float>(x - 1.0f); });
      const auto [last, power] = while_loop([&](auto i, auto) { return i < n; },
                                            [&](auto i, auto v) {
                                              const auto sums = sum_of(v);
                                              return std::tuple{i + 1, Output<float>(sums[2] * 0.5f)};
                                            },
                                            std::tuple{constant(graph, 0), x});
      const auto dx = Output<float>(gradients(Output<float>(power), x));
      SessionOptions options = rig.options();
      options.passes = passes;
      Session session(graph, options);
      for (const bool side : {true, false}) {
        const std::vector<Feed> feeds{
            {x, Tensor<float>::full({20000}, 2)}, {n, Tensor<std::int32_t>(3)}, {yes, Tensor<bool>(side)}};
        const auto got = results_of(session, feeds, std::vector<Output<float>>{branch, power, dx});
        INFO(rig.type << ", form " << form);
        CHECK(got[0](19999) == (side ? 12 : 1));
        CHECK(got[1](0) == 54);
        CHECK(got[2](777) == 27);
      }
    }
  }
}

TEST_CASE("what is dead in one member is dead in all", "[collective]") {
  const CollectiveRig rig = cpu_rig(2);
  Graph graph;
  const auto yes = placeholder<bool>(graph, {});
  const auto x = placeholder<float>(graph, {2});
  const auto y = cond(
      yes,
      [&] {
        std::vector<Output<float>> values;
        for (int i = 0; i < 2; ++i) {
          const auto on = graph.device(str_cat("/cpu:", i));
          values.push_back(x + static_cast<float>(i));
        }
        return all_reduce(values)[1];
      },
      [&] { return identity(x); });
  for (const bool lowers : {false, true}) {
    SessionOptions options = rig.options();
    options.passes.lower_control_flow = lowers;
    Session session(graph, options);
    for (int run = 0; run < 10; ++run) {
      for (const bool side : {true, false}) {
        const std::vector<Feed> feeds{{yes, Tensor<bool>(side)}, {x, Tensor<float>({2}, {1, 2})}};
        CHECK(results_of(session, feeds, std::vector<Output<float>>{y})[0](1) == (side ? 5 : 2));
      }
    }
  }
}

TEST_CASE("steps with collectives run side by side, and a thousand of them leave nothing", "[collective]") {
  const CollectiveRig rig = proof_rig(3);
  Graph graph;
  const Members<float> members(graph, member_devices("PROOF", 3, 3), Shape{20000});
  const auto sums = all_reduce(members.values);
  Session session(graph, rig.options());
  const Tensor<float> wanted = reduced(members.tensors, ReduceBy::sum);
  results_of(session, members.feeds(), sums);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int run = 0; run < 250; ++run) {
          for (const auto& result : results_of(session, members.feeds(), sums)) wrong += !are_equal(result, wanted);
        }
      });
    }
  }
  CHECK(wrong == 0);
  for (const auto& device : rig.devices) {
    if (device->context().type != Proof::type) continue;
    auto& allocator = static_cast<ProofAllocator&>(*device->context().allocator);
    // Memory that the stream holds is released in stream order.
    for (int i = 0; i < 5000 && allocator.stats().bytes_in_use != 0; ++i) std::this_thread::yield();
    CHECK(allocator.stats().bytes_in_use <= std::size_t{64} << 10);  // constants of the plan
  }
}

TEST_CASE("a graph with collectives is saved and imported, and gives the same", "[collective]") {
  const CollectiveRig rig = proof_rig(3);
  GraphDef def;
  std::vector<std::string> fetches;
  std::vector<std::string> names;
  std::vector<Tensor<float>> tensors;
  {
    Graph graph;
    const Members<float> members(graph, member_devices("PROOF", 3, 3), Shape{3, 2});
    for (const auto& each : all_reduce(members.values, ReduceBy::maximum)) fetches.push_back(each.name());
    for (const auto& each : all_gather(members.values)) fetches.push_back(each.name());
    for (const auto& each : broadcast_to_devices(members.values[1], member_devices("PROOF", 3, 3))) {
      fetches.push_back(each.name());
    }
    for (const auto& each : members.fed) names.push_back(each.name());
    tensors = members.tensors;
    def = to_graph_def(graph);
  }
  Graph graph = import_graph(def, standard_op_table());
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < names.size(); ++i) feeds.emplace_back(graph.output(names[i]), tensors[i]);
  std::vector<Output<float>> edges;
  for (const std::string& each : fetches) edges.emplace_back(graph.output(each));
  Session session(graph, rig.options());
  const auto got = results_of(session, feeds, edges);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(are_equal(got[i], reduced(tensors, ReduceBy::maximum)));
    CHECK(are_equal(got[3 + i], gathered(tensors)));
    CHECK(are_equal(got[6 + i], tensors[1]));
  }
}

TEST_CASE("gradients of collectives are those by finite differences", "[collective]") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
    const CollectiveRig rig = proof_rig(3);
    for (const ReduceBy reduction : all_reductions) {
      for (const bool uses_one : {false, true}) {
        Graph graph;
        Members<double> members(graph, member_devices("PROOF", count, 3), Shape{2, 2});
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t e = 0; e < 4; ++e) {
            members.tensors[i].span()[e] = 0.7 + 0.3 * std::sin(static_cast<double>(3 * i + 5 * e));
          }
        }
        const auto results = all_reduce(members.values, reduction);
        Output<double> y = square(results.back());
        for (std::size_t i = 0; !uses_one && i + 1 < count; ++i) y = y + results[i] * static_cast<double>(i + 1);
        Session session(graph, rig.options());
        const GradientCheck check = check_gradients(session, y, members.feeds());
        INFO(count << " members, reduction " << static_cast<int>(reduction) << ": " << check.to_string());
        CHECK(check.is_ok());
      }
    }
    for (const bool is_static : {true, false}) {
      Graph graph;
      std::vector<Shape> shapes;
      for (std::size_t i = 0; i < count; ++i) shapes.push_back({static_cast<std::int64_t>(i + 1), 2});
      const Members<double> members(graph, member_devices("PROOF", count, 3), shapes, is_static);
      const auto results = all_gather(members.values);
      const Output<double> y = square(results.back()) + sin(results.front());
      const auto copies = broadcast_to_devices(members.values[0], member_devices("PROOF", count, 3));
      Output<double> z = square(copies[0]);
      for (std::size_t i = 1; i < count; ++i) z = z + copies[i] * static_cast<double>(i);
      Session session(graph, rig.options());
      const GradientCheck of_gather = check_gradients(session, y, members.feeds());
      INFO(count << " members: " << of_gather.to_string());
      CHECK(of_gather.is_ok());
      const GradientCheck of_copies = check_gradients(session, z, {members.feeds()[0]});
      INFO(of_copies.to_string());
      CHECK(of_copies.is_ok());
    }
  }
}

TEST_CASE("elements that equal the maximum share its gradient", "[collective]") {
  const CollectiveRig rig = cpu_rig(3);
  Graph graph;
  Members<float> members(graph, member_devices("CPU", 3, 3), Shape{2});
  members.tensors = {Tensor<float>({2}, {1, 5}), Tensor<float>({2}, {3, 2}), Tensor<float>({2}, {3, 1})};
  const auto largest = all_reduce(members.values, ReduceBy::maximum);
  std::vector<Output<float>> dx;
  for (const auto& value : members.fed) dx.push_back(Output<float>(gradients(largest[0] * 4.0f, value)));
  Session session(graph, rig.options());
  const auto got = results_of(session, members.feeds(), dx);
  CHECK(got[0](0) == 0);
  CHECK(got[1](0) == 2);
  CHECK(got[2](0) == 2);
  CHECK(got[0](1) == 4);
  CHECK(got[1](1) == 0);
}

TEST_CASE("the gradient of a mean does not overflow in 16 bits", "[collective]") {
  const CollectiveRig rig = proof_rig(2);
  Graph graph;
  const Members<Half> members(graph, member_devices("PROOF", 2, 2), Shape{2});
  const auto means = all_reduce(members.values, ReduceBy::mean);
  const AnyOutput dy = constant(graph, Tensor<Half>::full({2}, Half(40000.0f)));
  const std::vector<AnyOutput> xs(members.fed.begin(), members.fed.end());
  Session session(graph, rig.options());
  for (const std::size_t count : {1u, 2u}) {
    const std::vector<AnyOutput> ys(means.begin(), means.begin() + static_cast<std::ptrdiff_t>(count));
    const std::vector<AnyOutput> dys(count, dy);
    std::vector<Output<Half>> dx;
    for (const Gradient& each : gradients(std::span(ys), std::span(xs), {.grad_ys = dys})) dx.emplace_back(each.dense);
    for (const auto& each : results_of(session, members.feeds(), dx)) {
      CHECK(static_cast<float>(each.span()[1]) == (count == 1 ? 20000.0f : 40000.0f));
    }
  }
}

TEST_CASE("strings said to be on devices of another memory are gathered and broadcast", "[collective]") {
  const CollectiveRig rig = proof_rig(2);
  for (const bool is_soft : {false, true}) {
    Graph graph;
    std::vector<Output<std::string>> values;
    std::vector<Feed> feeds;
    for (int i = 0; i < 2; ++i) {
      const auto on = graph.device(str_cat("/device:PROOF:", i));
      values.push_back(placeholder<std::string>(graph, {1}));
      feeds.emplace_back(values.back(), Tensor<std::string>({1}, {i == 0 ? "a" : "b"}));
      if (is_soft) values.back() = identity(values.back());
    }
    SessionOptions options = rig.options();
    options.soft_placement = is_soft;
    Session session(graph, options);
    for (const auto& rows : results_of(session, feeds, all_gather(values))) {
      CHECK(are_equal(rows, Tensor<std::string>({2}, {"a", "b"})));
    }
    if (!is_soft) continue;
    for (const auto& copy :
         results_of(session, feeds, broadcast_to_devices(values[1], {"/cpu:0", "/device:PROOF:0"}))) {
      CHECK(are_equal(copy, Tensor<std::string>({1}, {"b"})));
    }
  }
}

TEST_CASE("all_gather knows the rows of its results as far as it knows those of its values", "[collective]") {
  Graph graph;
  const auto gathered = [&](const std::vector<PartialShape>& shapes) {
    std::vector<AnyOutput> values;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto on = graph.device(str_cat("/cpu:", i));
      values.push_back(placeholder<float>(graph, shapes[i]));
    }
    return dflow::detail::any_all_gather(values).front().shape().to_string();
  };
  const PartialShape unknown = PartialShape::unknown();
  CHECK(gathered({{2, 3}, {4, 3}}) == "[6,3]");
  CHECK(gathered({{2, dynamic}, {4, 3}}) == "[6,3]");
  CHECK(gathered({{dynamic, 3}, {4, 3}}) == "[?,3]");
  CHECK(gathered({{4, 3}, {dynamic, 3}, {4, 3}}) == "[?,3]");
  CHECK(gathered({unknown, {4, 3}}) == "[?,3]");
  CHECK(gathered({{4, 3}, unknown}) == "[?,3]");
  CHECK(gathered({unknown, unknown}) == "<unknown>");
  const std::int64_t half = std::int64_t{1} << 62;
  CHECK(gathered({{half}, {half - 1}}) == str_cat("[", half - 1 + half, "]"));
  CHECK(mentions(status_of([&] { gathered({{half}, {half}}); }), "the result is too large to be counted"));
  CHECK(mentions(status_of([&] { gathered({{2, 3}, {4}}); }), "the values have different ranks: [?,3] and [4]"));
}
