#include "support/proof_device.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/variable_state.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"

#include <array>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

using Devices = std::vector<std::shared_ptr<Device>>;

std::shared_ptr<CpuDevice> cpu_device() {
  return std::make_shared<CpuDevice>(CpuDeviceOptions{.kernels = {.reproducible = true}});
}
Devices proof_and_cpu() { return {std::make_shared<ProofDevice>(), cpu_device()}; }

Tensor<float> waves(const Shape& shape) {
  Tensor<float> tensor(shape);
  for (std::size_t i = 0; i < tensor.span().size(); ++i)
    tensor.span()[i] = static_cast<float>(i * 7 % 23) * 0.125f - 1.25f;
  return tensor;
}

/// Says on which device the next layer is.
using LayerPlace = std::function<std::string(int layer)>;

/// The loss and the training operation of a step, with its feeds.
struct Training {
  Output<float> loss;
  Operation train;
  std::vector<Feed> feeds;
};
using Build = Training (*)(Graph&, const LayerPlace&);

Training mlp(Graph& graph, const LayerPlace& place, const train::Optimizer& optimizer) {
  const auto x = placeholder<float>(graph, {8, 5}), y = placeholder<float>(graph, {8, 2});
  Output<float> hidden, loss;
  {
    const auto on = graph.device(place(0));
    hidden = dense(x, 7, {.activation = Activation::tanh});
  }
  {
    const auto on = graph.device(place(1));
    hidden = dense(hidden, 6, {.activation = Activation::relu});
  }
  const auto on = graph.device(place(2));
  loss = reduce_mean(square(dense(hidden, 2) - y));
  return {loss, optimizer.minimize(loss), {{x, waves({8, 5})}, {y, waves({8, 2})}}};
}
Training mlp_by_descent(Graph& graph, const LayerPlace& place) {
  return mlp(graph, place, train::GradientDescent(0.1f));
}
Training mlp_by_adam(Graph& graph, const LayerPlace& place) { return mlp(graph, place, train::Adam(0.01f)); }

Training convolutions(Graph& graph, const LayerPlace& place) {
  const auto x = placeholder<float>(graph, {4, 6, 6, 2});
  const auto labels = placeholder<std::int32_t>(graph, {4});
  Output<float> maps, loss;
  {
    const auto on = graph.device(place(0));
    maps = max_pool(conv2d(x, 3, 3, {.activation = Activation::relu}), 2);
  }
  const auto on = graph.device(place(1));
  loss = reduce_mean(sparse_softmax_cross_entropy(dense(flatten(maps), 3), labels));
  return {loss,
          train::Adam(0.01f).minimize(loss),
          {{x, waves({4, 6, 6, 2})}, {labels, Tensor<std::int32_t>({4}, {0, 2, 1, 2})}}};
}

Training embeddings(Graph& graph, const LayerPlace& place) {
  const auto ids = placeholder<std::int32_t>(graph, {3, 2});
  const auto y = placeholder<float>(graph, {3, 1});
  Output<float> rows, loss;
  {
    const auto on = graph.device(place(0));
    rows = reshape(embedding<float>(ids, 9, 4), {3, 8});
  }
  const auto on = graph.device(place(1));
  loss = reduce_mean(square(dense(rows, 1) - y));
  return {loss,
          train::Adam(0.05f).minimize(loss),
          {{ids, Tensor<std::int32_t>({3, 2}, {1, 8, 1, 0, 3, 8})}, {y, waves({3, 1})}}};
}

Training thinned(Graph& graph, const LayerPlace& place) {
  const auto x = placeholder<float>(graph, {8, 5});
  Output<float> hidden, loss;
  {
    const auto on = graph.device(place(0));
    hidden = dropout(dense(x, 16, {.activation = Activation::tanh}), 0.5f, {.seed = 17});
  }
  const auto on = graph.device(place(1));
  loss = reduce_mean(square(dense(hidden, 1) - 1.0f));
  return {loss, train::Momentum(0.05f, 0.9f).minimize(loss), {{x, waves({8, 5})}}};
}

Training normalized(Graph& graph, const LayerPlace& place) {
  const auto x = placeholder<float>(graph, {8, 5});
  Output<float> hidden, loss;
  {
    const auto on = graph.device(place(0));
    hidden = batch_normalization(dense(x, 6));
  }
  const auto on = graph.device(place(1));
  loss = reduce_mean(square(dense(hidden, 1) - 1.0f));
  const auto after = graph.control_dependencies(graph.collection("update_ops"));
  return {loss, train::GradientDescent(0.1f).minimize(loss), {{x, waves({8, 5})}}};
}

/// The losses of some steps.
std::vector<AnyTensor> trained(Build build, const LayerPlace& place, Devices devices) {
  Graph graph({.seed = 11});
  const Training training = build(graph, place);
  const Operation initialize = initialize_variables(graph);
  Session session(graph, {.devices = std::move(devices), .soft_placement = true});
  session.run(initialize);
  std::vector<AnyTensor> results;
  const std::array<AnyOutput, 1> loss{training.loss};
  const std::array<Operation, 1> train{training.train};
  for (int step = 0; step < 5; ++step) {
    std::promise<void> done;
    session.run_async_erased({}, training.feeds, loss, train, [&](Status status, std::vector<AnyTensor> values) {
      if (status.ok()) {
        results.push_back(values.at(0));
        done.set_value();
      } else {
        done.set_exception(std::make_exception_ptr(Error(status)));
      }
    });
    done.get_future().get();
  }
  return results;
}

std::string nowhere(int) { return ""; }

}  // namespace

TEST_CASE("a training gives the same bits on the device, split with the CPU, and on the CPU", "[runtime][proof]") {
  const std::array<std::pair<std::string_view, Build>, 6> builds{{{"descent", mlp_by_descent},
                                                                  {"adam", mlp_by_adam},
                                                                  {"convolutions", convolutions},
                                                                  {"embeddings", embeddings},
                                                                  {"dropout", thinned},
                                                                  {"batch norm", normalized}}};
  for (const auto& [name, build] : builds) {
    INFO(name);
    const std::vector<AnyTensor> expected = trained(build, nowhere, {cpu_device()});
    CHECK_FALSE(bitwise_equal(expected.front(), expected.back()));
    const auto check = [&](std::string_view how, const LayerPlace& place, Devices devices) {
      INFO(how);
      const std::vector<AnyTensor> got = trained(build, place, std::move(devices));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO(i);
        CHECK(bitwise_equal(got[i], expected[i]));
      }
    };
    check("alone", nowhere, {std::make_shared<ProofDevice>()});
    check("first", nowhere, proof_and_cpu());
    const auto split = [](int first) {
      return [first](int layer) {
        return (layer + first) % 2 == 0 ? std::string("/device:PROOF:0") : std::string("/cpu:0");
      };
    };
    check("begins on the device", split(0), proof_and_cpu());
    check("begins on the CPU", split(1), proof_and_cpu());
    check("two of its kind", [](int layer) { return str_cat("/device:PROOF:", layer % 2); },
          {std::make_shared<ProofDevice>(0), std::make_shared<ProofDevice>(1), cpu_device()});
  }
}

TEST_CASE("an error found late names op, node, device and line, ends the step, and the session goes on",
          "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic}, {.name = "x"});
  const auto ids = placeholder<std::int32_t>(graph, {dynamic}, {.name = "ids"});
  const auto checked = check_numerics(x * 2.0f, "no number", {.name = "checked"});
  const int checked_line = __LINE__ - 1;
  const auto rows = gather(x, ids, {.name = "rows"});
  const int rows_line = __LINE__ - 1;
  const auto positive = assert_that(reduce_min(x) > 0.0f, {x}, {}, {.name = "positive"});
  const int positive_line = __LINE__ - 1;
  const auto guarded = with_dependencies({positive}, x * 3.0f);
  Session session(graph, {.devices = proof_and_cpu()});
  const Tensor<float> good({2}, {1, 2}), bad({2}, {1, std::numeric_limits<float>::infinity()}), negative({2}, {1, -1});
  const Tensor<std::int32_t> inside({2}, {1, 0}), outside({2}, {1, 2});

  const auto check = [](const Status& status, std::string_view op, std::string_view node, int line) {
    INFO(status.to_string());
    CHECK_FALSE(status.ok());
    CHECK(status.op() == op);
    CHECK(status.node() == node);
    CHECK(status.device() == "/job:localhost/replica:0/task:0/device:PROOF:0");
    CHECK(static_cast<int>(status.where().line()) == line);
  };
  for (int round = 0; round < 3; ++round) {
    check(status_of([&] { session.run({{x, bad}}, checked + 1.0f); }), "CheckNumerics", "checked", checked_line);
    CHECK(session.run({{x, good}}, checked)(1) == 4);
    check(status_of([&] { session.run({{x, good}, {ids, outside}}, rows); }), "Gather", "rows", rows_line);
    CHECK(session.run({{x, good}, {ids, inside}}, rows)(0) == 2);
    check(status_of([&] { session.run({{x, negative}}, guarded); }), "Assert", "positive", positive_line);
    CHECK(session.run({{x, good}}, guarded)(1) == 6);
  }
}

TEST_CASE("nobody computes with what a kernel that failed late has left behind", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic}, {.name = "x"});
  Variable<float> kept;
  Output<float> checked, large, rows;
  Operation assign;
  {
    const auto on = graph.device("/device:PROOF:0");
    large = (x * 1000.0f) * 1000.0f;  // leaves large numbers in memory that is used again
    checked = check_numerics(x, "no number", {.name = "checked"}) * 2.0f;
  }
  {
    const auto on = graph.device("/cpu:0");
    kept = Variable<float>(graph, Tensor<float>({2}, {7, 7}), {.name = "kept"});
    assign = kept.assign(checked);
    rows = gather(x, cast<std::int32_t>(checked), {.name = "rows"});
  }
  Session session(graph, {.devices = proof_and_cpu()});
  session.run(initialize_variables(graph));
  const Tensor<float> good({2}, {100, 200}), bad({2}, {std::numeric_limits<float>::infinity(), 1});
  for (int round = 0; round < 10; ++round) {
    session.run({{x, good}}, large);
    CHECK(status_of([&] { session.run({{x, bad}}, assign); }).node() == "checked");
    CHECK(session.run(kept)(0) == 7);
    session.run({{x, good}}, large);
    CHECK(status_of([&] { session.run({{x, bad}}, rows); }).node() == "checked");
  }
}

TEST_CASE("variables stay in the device's memory from step to step", "[runtime][proof]") {
  Graph graph;
  Variable<float> total(graph, Tensor<float>({2}, {1, 2}), {.name = "total"});
  const Operation add = total.assign_add(constant(graph, Tensor<float>({2}, {1, 1})));
  const auto device = std::make_shared<ProofDevice>();
  Session session(graph, {.devices = {device}});
  session.run(initialize_variables(graph));
  session.run(add);
  CHECK(session.run(total)(1) == 3);
  const auto state = device->context().resources->container()->lookup<VariableState>("total");
  const AnyTensor there = state->read();
  {
    const ProofAllocator::Access access(static_cast<ProofAllocator&>(*device->context().allocator));
    CHECK(static_cast<const float*>(there.raw_data())[1] == 3);
  }
  Session other(graph, {.devices = {device}});
  other.run(add);
  CHECK(session.run(total)(1) == 4);
}

TEST_CASE("what is empty, and what is a scalar, is fed to the device and fetched from it", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3});
  const auto scalar = placeholder<float>(graph, {});
  Session session(graph, {.devices = proof_and_cpu()});
  const auto twice = x * 2.0f;
  const auto more = scalar + 1.0f;
  const auto sum = reduce_sum(x);
  const auto [none, one, zero] =
      session.run({{x, Tensor<float>({0, 3})}, {scalar, Tensor<float>(4.0f)}}, twice, more, sum);
  CHECK(none.shape() == Shape{0, 3});
  CHECK(one.scalar() == 5);
  CHECK(zero.scalar() == 0);
  const auto [fed, same] = session.run({{x, Tensor<float>({0, 3})}, {scalar, Tensor<float>(4.0f)}}, x, scalar);
  CHECK(fed.shape() == Shape{0, 3});
  CHECK(same.scalar() == 4);
}

TEST_CASE("ops on strings go to the CPU, and to nobody where there is none", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<std::string>(graph, {dynamic}, {.name = "x"});
  const auto y = reshape(x, {2, 1}, {.name = "y"});
  const auto in = Tensor<std::string>({2}, {"a", "b"});
  Session both(graph, {.devices = proof_and_cpu()});
  CHECK(both.run({{x, in}}, y)(1, 0) == "b");
  CHECK(both.placement_log().find("y: Reshape -> /job:localhost/replica:0/task:0/device:CPU:0") != std::string::npos);
  Session alone(graph, {.devices = {std::make_shared<ProofDevice>()}});
  const Status status = status_of([&] { alone.run({{x, in}}, y); });
  CHECK(status.code() == Code::not_found);
  CHECK(status.node() == "y");
}

TEST_CASE("branches and loops run on the device in each form, and raw ones that have their form", "[runtime][proof]") {
  const PassOptions passes = each_form();
  Graph graph;
  const auto x = placeholder<float>(graph, {4});
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto is_large = reduce_sum(x) > 6.0f;
  const auto branch = cond(
      is_large, [&] { return x * 2.0f; }, [&] { return x * x; });
  const auto choice = case_of(n, std::tuple{[&] { return x * 2.0f; }, [&] { return x * 3.0f; }, [&] { return -x; }});
  const auto [i, loop] = while_loop(
      [&](auto i, auto v) { return logical_and(i < n, reduce_sum(v) < 1000.0f); },
      [&](auto i, auto v) {
        return std::tuple{i + 1, cond(
                                     reduce_sum(v) > 20.0f, [&] { return v + x; }, [&] { return v * 2.0f; })};
      },
      std::tuple{constant(graph, 0), x});
  const auto [off, on] = frames::switch_on(x, is_large);
  const auto merged = frames::merge({off * x, on * 2.0f}).value;
  const auto alone = on + 1.0f;
  const auto always = std::get<1>(frames::switch_on(x, constant(graph, true)));
  const auto called = cond(
      reduce_sum(always) > 1.0f, [&] { return always * 2.0f; }, [&] { return always; });
  const auto between = std::get<1>(frames::switch_on(called, constant(graph, true)));
  Session session(graph, {.devices = {std::make_shared<ProofDevice>()}, .passes = passes});
  const auto at = [&](float value, std::int32_t count, const Output<float>& wanted) {
    return session.run({{x, Tensor<float>::full({4}, value)}, {n, count}}, wanted)(3);
  };
  for (int round = 0; round < 2; ++round) {
    CHECK(at(2, 0, branch) == 4);
    CHECK(at(1.5f, 0, branch) == 2.25f);
    CHECK(at(2, 0, choice) == 4);
    CHECK(at(2, 1, choice) == 6);
    CHECK(at(2, 5, choice) == -2);
    CHECK(at(2, 0, loop) == 2);
    CHECK(at(2, 4, loop) == 12);
    CHECK(at(2, 1000, loop) == 250);
    CHECK(at(3, 0, merged) == 6);
    CHECK(at(1, 0, merged) == 1);
  }
  // The loop of frames reads the side.
  const Status status = status_of([&] { at(2, 0, alone); });
  CHECK(status.code() == Code::unimplemented);
  CHECK(status.op() == "Switch");
  CHECK(at(2, 0, always) == 2);
  CHECK(at(2, 0, called) == 4);
  CHECK(code_of([&] { at(2, 0, between); }) == Code::unimplemented);
}

TEST_CASE("an edge between two such devices is copied from one memory to the other", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  Output<float> y = x;
  for (int i = 0; i < 6; ++i) {
    const auto on = graph.device(str_cat("/device:PROOF:", i % 2));
    y = y * 2.0f + x;
  }
  Session session(graph, {.devices = {std::make_shared<ProofDevice>(0), std::make_shared<ProofDevice>(1)}});
  for (int round = 0; round < 10; ++round) CHECK(session.run({{x, Tensor<float>({2}, {1, 2})}}, y)(1) == 254);
  CHECK(session.run({{x, Tensor<float>({0})}}, y).shape() == Shape{0});
}

TEST_CASE("steps from four threads share the device", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  Variable<float> total(graph, 0.0f, {.name = "total"});
  const auto y = reduce_sum(x * x) + total.read() * 0.0f;
  const Operation count = total.assign_add(constant(graph, 1.0f));
  for (const bool with_cpu : {false, true}) {
    Session session(graph, {.devices = with_cpu ? proof_and_cpu() : Devices{std::make_shared<ProofDevice>()}});
    session.run(initialize_variables(graph));
    std::array<int, 4> wrong{};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const float v = static_cast<float>(t * 50 + i);
          if (session.run({{x, Tensor<float>({2}, {v, 1})}}, y, count).scalar() != v * v + 1)
            ++wrong[static_cast<std::size_t>(t)];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::array<int, 4>{});
    CHECK(session.run(total).scalar() == 200);
  }
}

TEST_CASE("asynchronous steps end with their values, and outlive the session and the handles on the device",
          "[runtime][proof]") {
  std::vector<std::future<float>> futures;
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = x * 2.0f;
    Session session(graph, {.devices = {std::make_shared<ProofDevice>()}});
    for (int i = 0; i < 40; ++i) {
      auto outcome = std::make_shared<std::promise<float>>();
      futures.push_back(outcome->get_future());
      session.run_async({{x, Tensor<float>(static_cast<float>(i))}}, y,
                        [outcome](Status status, const Tensor<float>& value) {
                          outcome->set_value(status.ok() ? value.scalar() : -1.0f);
                        });
    }
  }
  for (int i = 0; i < 40; ++i) CHECK(futures[static_cast<std::size_t>(i)].get() == static_cast<float>(2 * i));
}

TEST_CASE("a tensor that stays in the device's memory outlives the device", "[runtime][proof]") {
  AnyTensor kept;
  {
    Graph graph;
    Variable<float> total(graph, Tensor<float>({2}, {1, 2}), {.name = "total"});
    const auto device = std::make_shared<ProofDevice>();
    Session session(graph, {.devices = {device}});
    session.run(initialize_variables(graph));
    kept = device->context().resources->container()->lookup<VariableState>("total")->read();
  }
  CHECK(kept.shape() == Shape{2});
  kept.reset();
}

TEST_CASE("a traced step names the device's nodes", "[runtime][proof]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  const auto y = mul(x, x, {.name = "y"});
  Session session(graph, {.devices = proof_and_cpu()});
  RunMetadata metadata;
  session.run({.trace = true}, &metadata, {{x, Tensor<float>({3}, {1, 2, 3})}}, y);
  bool is_there = false;
  for (const NodeStats& node : metadata.stats.nodes) {
    if (node.node != "y") continue;
    is_there = true;
    CHECK(node.device == "/job:localhost/replica:0/task:0/device:PROOF:0");
    CHECK(node.output_bytes == 12);
    CHECK(node.output_shapes.find('3') != std::string::npos);
  }
  CHECK(is_there);
  CHECK_FALSE(chrome_trace(metadata.stats).empty());
}
