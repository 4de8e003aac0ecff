// Branches, loops and functions with bodies on several devices.
#include <dflow/dflow.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/proof_device.hpp"
#include "support/sanitized.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

const df::SessionOptions on_three_devices{.num_cpu_devices = 3};

/// Sessions that must give the same results: with one thread, with several, and with other treatments of calls.
std::vector<df::SessionOptions> sessions_of_three_devices() {
  std::vector<df::SessionOptions> all(4, on_three_devices);
  all[0].num_threads = 1;
  all[1].num_threads = 3;
  all[2].passes.lower_control_flow = true;
  all[3].passes.constant_folding = all[3].passes.common_subexpressions = all[3].passes.fusion = false;
  return all;
}

/// x plus 1 on device 0, times 2 on device 1, minus 3 on device 2, `n` times.
df::Output<float> three_device_loop(df::Graph& graph, df::Output<float> x, df::Output<std::int32_t> n) {
  auto [i, y] = df::while_loop([&](auto i, auto) { return i < n; },
                               [&](auto i, auto v) {
                                 const auto on = [&](int device, const auto& build) {
                                   const auto here = graph.device("/cpu:" + std::to_string(device));
                                   return df::Output<float>(build());
                                 };
                                 auto a = on(0, [&] { return v + 1.0f; });
                                 auto b = on(1, [&] { return a * 2.0f; });
                                 auto c = on(2, [&] { return b - 3.0f; });
                                 return std::tuple{i + 1, c};
                               },
                               std::tuple{df::constant(graph, 0), x});
  return y;
}

float three_device_loop_in_cpp(float x, int n) {
  for (int i = 0; i < n; ++i) x = (x + 1.0f) * 2.0f - 3.0f;
  return x;
}

df::Variable<float> total_on_device_1(df::Graph& graph) {
  const auto on = graph.device("/cpu:1");
  return df::Variable<float>(graph, df::constant(graph, 0.0f), {.name = "total"});
}

/// The devices of nodes with that op in the bodies of calls in a prepared step.
std::set<std::string> devices_of_body_nodes(const std::vector<df::DeviceGraph>& parts, const std::string& op) {
  std::set<std::string> devices;
  for (const df::DeviceGraph& part : parts) {
    std::vector<const df::StepGraph*> to_do{part.graph.get()};
    while (!to_do.empty()) {
      const df::StepGraph& graph = *to_do.back();
      to_do.pop_back();
      for (const df::StepNode& node : graph.nodes) {
        if (&graph != part.graph.get() && node.op->name == op) devices.insert(part.device);
        const df::StepCall* const call = graph.call_of(node);
        for (std::size_t b = 0; call != nullptr && b < call->bodies.size(); ++b) {
          if (call->bodies[b] != nullptr) to_do.push_back(call->bodies[b].get());
        }
      }
    }
  }
  return devices;
}

}  // namespace

TEST_CASE("a loop's body runs where its nodes are placed, on three devices", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto y = three_device_loop(graph, x, n);
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    auto step = session.prepare(df::feeds(x, n), df::fetches(y));
    const std::vector<df::DeviceGraph> parts = step.device_graphs();
    REQUIRE(parts.size() == 3);
    CHECK(devices_of_body_nodes(parts, "Add") == std::set<std::string>{parts[0].device});
    CHECK(devices_of_body_nodes(parts, "Mul") == std::set<std::string>{parts[1].device});
    CHECK(devices_of_body_nodes(parts, "Sub") == std::set<std::string>{parts[2].device});
    for (const int iterations : {0, 1, 2, 7, 20}) {
      for (int run = 0; run < 3; ++run) {
        CHECK(step(df::Tensor<float>(1.25f), df::Tensor<std::int32_t>(iterations)).scalar() ==
              three_device_loop_in_cpp(1.25f, iterations));
      }
    }
  }
}

TEST_CASE("a split loop of 20,000 iterations counts right, and again", "[split]") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto [i, sum] = df::while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto sum) {
                                   const auto on = graph.device("/cpu:1");
                                   return std::tuple{i + 1, sum + 0.5f};
                                 },
                                 std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
  df::Session session(graph, on_three_devices);
  constexpr std::int32_t many = df::testing::is_sanitized ? 2000 : 20000;
  for (int run = 0; run < 3; ++run) {
    const auto [count, half] = session.run({{n, df::Tensor<std::int32_t>(many)}}, i, sum);
    CHECK(count.scalar() == many);
    CHECK(half.scalar() == 0.5f * many);
  }
}

TEST_CASE("gradients of split loops, branches, functions and recursion are those of whole ones, to the bit",
          "[split]") {
  const auto build = [](df::Graph& graph, df::Output<float> x, df::Output<std::int32_t> n, bool is_split) {
    const auto on = [&graph, is_split](int device) {
      return graph.device(is_split ? "/cpu:" + std::to_string(device) : std::string());
    };
    auto w = df::fill<float>(graph, {4, 4}, 0.3f) * x;
    auto [i, product] = df::while_loop([&](auto i, auto) { return i < n; },
                                       [&](auto i, auto v) {
                                         auto next = [&] {
                                           const auto here = on(1);
                                           return df::Output<float>(df::tanh(df::matmul(v, w)));
                                         }();
                                         const auto here = on(2);
                                         return std::tuple{i + 1, df::Output<float>(next + v * 0.5f)};
                                       },
                                       std::tuple{df::constant(graph, 0), w});
    auto loop = df::Output<float>(df::reduce_sum(product));
    auto branch = df::cond(
        x > 1.0f,
        [&] {
          const auto here = on(1);
          return df::Output<float>(df::exp(x) * loop);
        },
        [&] {
          const auto here = on(2);
          return df::Output<float>(df::sin(x));
        });
    auto power = df::recursive_function<df::Output<float>(df::Output<std::int32_t>)>(
        graph, "power", [&](const auto& self, df::Output<std::int32_t> k) {
          return df::cond(
              k < 1, [&] { return df::Output<float>(df::ones_like(x)); },
              [&] {
                auto rest = df::Output<float>(self(k - 1));
                const auto here = on(2);
                return df::Output<float>(x * rest);
              });
        });
    auto rows = df::reduce_sum(df::map(
        [&](auto row) {
          const auto here = on(1);
          return df::Output<float>(row * row * x);
        },
        df::pack({x, branch, loop})));
    auto y = df::Output<float>(branch + power(n) + rows);
    auto dy = df::Output<float>(df::gradients(y, x));
    return std::vector<df::Output<float>>{y, dy, df::gradients(dy, x)};
  };
  df::Graph whole, split;
  auto x_whole = df::placeholder<float>(whole, {}), x_split = df::placeholder<float>(split, {});
  auto n_whole = df::placeholder<std::int32_t>(whole, {}), n_split = df::placeholder<std::int32_t>(split, {});
  const auto wanted = build(whole, x_whole, n_whole, false), got = build(split, x_split, n_split, true);
  df::Session plain(whole);
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(split, options);
    CHECK(devices_of_body_nodes(session.prepare(df::feeds(x_split, n_split), df::fetches(got[1])).device_graphs(),
                                "MatMul")
              .size() == 1);
    for (const float value : {0.5f, 1.25f}) {
      for (const int iterations : {0, 1, 4}) {
        for (std::size_t k = 0; k < got.size(); ++k) {
          INFO("x " << value << ", n " << iterations << ", order " << k);
          const df::Tensor<float> at(value);
          const df::Tensor<std::int32_t> count(iterations);
          CHECK(session.run({{x_split, at}, {n_split, count}}, got[k]).scalar() ==
                plain.run({{x_whole, at}, {n_whole, count}}, wanted[k]).scalar());
        }
      }
    }
  }
}

TEST_CASE("a body updates a variable of another device, and who reads after the call sees it", "[split]") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto total = total_on_device_1(graph);
  auto last = df::while_loop([&](auto i) { return i < n; },
                             [&](auto i) {
                               const auto bump = total.assign_add(df::cast<float>(i));
                               const auto after = graph.control_dependencies({bump});
                               return i + 1;
                             },
                             df::constant(graph, 0));
  // By a control edge from the call's result, and by its value alone.
  auto waited = [&] {
    const auto after = graph.control_dependencies({last.operation()});
    return total.read();
  }();
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    session.run(df::initialize_variables(graph));
    for (int run = 1; run <= 3; ++run) {
      const auto [count, seen] = session.run({{n, df::Tensor<std::int32_t>(5)}}, last, waited);
      CHECK(count.scalar() == 5);
      CHECK(seen.scalar() == static_cast<float>(10 * run));
      CHECK(session.run(total.read()).scalar() == static_cast<float>(10 * run));
    }
  }
}

TEST_CASE("calls of one split function in one step do not take each other's tensors", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto f = df::function(graph, "f",
                        [&](df::Output<float> v) {
                          auto a = [&] {
                            const auto on = graph.device("/cpu:1");
                            return df::Output<float>(v * 2.0f);
                          }();
                          const auto on = graph.device("/cpu:2");
                          return df::Output<float>(a + v);
                        },
                        {.shapes = {df::PartialShape({})}});
  auto g = df::function(graph, "g", [&](df::Output<float> v) { return df::Output<float>(f(f(v)) - f(v * 0.5f)); },
                        {.shapes = {df::PartialShape({})}});
  // f(v) = 3 v; g(v) = 9 v - 1.5 v
  std::vector<df::Output<float>> all;
  for (int k = 0; k < 8; ++k) all.push_back(g(x + static_cast<float>(k)));
  auto [i, looped] = df::while_loop([&](auto i, auto) { return i < 3; },
                                    [&](auto i, auto v) {
                                      return std::tuple{i + 1, df::Output<float>(g(v) / 7.5f + f(v) / 3.0f)};
                                    },
                                    std::tuple{df::constant(graph, 0), x});
  auto sum = df::Output<float>(df::add_n(all));
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    for (int run = 0; run < 3; ++run) {
      const auto [a, b] = session.run({{x, df::Tensor<float>(2.0f)}}, sum, looped);
      CHECK(a.scalar() == 7.5f * (8 * 2.0f + 28.0f));
      CHECK(b.scalar() == Approx(16.0f));
    }
  }
}

TEST_CASE("an error in a part of a split loop names its node and leaves the session working", "[split]") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto at = df::placeholder<std::int32_t>(graph, {});
  auto table = df::constant(graph, df::Tensor<float>({3}, {1, 2, 3}));
  auto [i, sum] = df::while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto sum) {
                                   const auto on = graph.device("/cpu:1");
                                   auto value = df::gather(table, df::minimum(i, at), {.name = "look_up"});
                                   return std::tuple{i + 1, df::Output<float>(sum + value)};
                                 },
                                 std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    const auto run = [&](int count, int last) {
      return session.run({{n, df::Tensor<std::int32_t>(count)}, {at, df::Tensor<std::int32_t>(last)}}, sum).scalar();
    };
    for (int again = 0; again < 3; ++again) {
      CHECK(run(5, 2) == 12);
      const df::Status status = status_of([&] { return run(5, 4); });
      CHECK(mentions(status, "look_up"));
      CHECK(mentions(status, "device:CPU:1"));
    }
  }
}

TEST_CASE("a split loop without an end ends with its deadline, and when it is stopped", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto y = df::while_loop([&](auto v) { return v > 0.0f; },
                          [&](auto v) {
                            const auto on = graph.device("/cpu:2");
                            return df::Output<float>(v * 1.0f);
                          },
                          x);
  df::Session session(graph, on_three_devices);
  for (int run = 0; run < 3; ++run) {
    CHECK(code_of([&] {
            return session.run({.deadline = std::chrono::milliseconds(30)}, {{x, df::Tensor<float>(1.0f)}}, y);
          }) == df::Code::deadline_exceeded);
    CHECK(session.run({{x, df::Tensor<float>(-2.0f)}}, y).scalar() == -2);
  }
}

TEST_CASE("a recursive function over devices ends at the limit of calls", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto f = df::recursive_function<df::Output<float>(df::Output<float>)>(
      graph, "down", [&](const auto& self, df::Output<float> v) {
        return df::cond(
            v < 1.0f, [&] { return v; },
            [&] {
              auto less = [&] {
                const auto on = graph.device("/cpu:1");
                return df::Output<float>(v - 1.0f);
              }();
              return df::Output<float>(self(less) + x * 0.0f);
            });
      });
  auto y = f(x);
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    for (int run = 0; run < 3; ++run) {
      CHECK(session.run({{x, df::Tensor<float>(200.5f)}}, y).scalar() == 0.5f);
      CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(1e6f)}}, y); }) == df::Code::resource_exhausted);
    }
  }
}

TEST_CASE("split calls run in asynchronous, partial and traced steps, and under a node's soft placement", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto y = three_device_loop(graph, x, n);
  df::Session session(graph, on_three_devices);
  const df::Tensor<float> one(1.0f);
  const df::Tensor<std::int32_t> four(4);
  const float wanted = three_device_loop_in_cpp(1.0f, 4);
  std::vector<std::promise<float>> got(3);
  for (std::promise<float>& each : got) {
    session.run_async({{x, one}, {n, four}}, y, [&](const df::Status& status, const df::Tensor<float>& value) {
      each.set_value(status.ok() ? value.scalar() : -1);
    });
  }
  for (std::promise<float>& each : got) CHECK(each.get_future().get() == wanted);
  auto partial = session.partial_run(df::feeds(x, n), df::fetches(y));
  CHECK(partial.feed(x, one).feed(n, four).fetch(y).scalar() == wanted);
  df::RunMetadata metadata;
  CHECK(session.run({.trace = true}, &metadata, {{x, one}, {n, four}}, y).scalar() == wanted);
  int num_products = 0;
  for (const df::NodeStats& node : metadata.stats.nodes) num_products += node.op == "Mul";
  CHECK(num_products == 4);
  // Without the three devices, all nodes are on one.
  df::Session soft(graph, {.soft_placement = true});
  CHECK(soft.run({{x, one}, {n, four}}, y).scalar() == wanted);
  df::Session strict(graph, {.num_cpu_devices = 2});
  CHECK(code_of([&] { return strict.run({{x, one}, {n, four}}, y); }) == df::Code::invalid_argument);
}

TEST_CASE("gradients of split calls are built in any device's scope", "[split]") {
  for (const char* scope : {"/cpu:0", "/cpu:1", "/cpu:2"}) {
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {});
    auto n = df::placeholder<std::int32_t>(graph, {});
    const auto around = graph.device("/cpu:0");
    auto f = df::function(graph, "f",
                          [&](df::Output<float> v) {
                            const auto on = graph.device("/cpu:1");
                            return df::Output<float>(df::sin(v) * x);
                          },
                          {.shapes = {df::PartialShape({})}});
    auto [i, y] = df::while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto v) {
                                   return std::tuple{i + 1, df::Output<float>(f(v) * 1.0f)};
                                 },
                                 std::tuple{df::constant(graph, 0), x});
    const auto on = graph.device(scope);
    auto dy = df::Output<float>(df::gradients(y, x));
    auto ddy = df::Output<float>(df::gradients(dy, x));
    df::Session session(graph, on_three_devices), whole(graph, {.soft_placement = true});
    for (const df::Output<float>& each : {dy, ddy}) {
      const auto at = [&](df::Session& of) {
        return of.run({{x, df::Tensor<float>(0.5f)}, {n, df::Tensor<std::int32_t>(3)}}, each).scalar();
      };
      CHECK(at(session) == at(whole));
    }
  }
}

TEST_CASE("a split call begins when all of its inputs are there", "[split]") {
  for (const bool is_branch : {false, true}) {
    df::Graph graph;
    const auto total = total_on_device_1(graph);
    auto yes = df::placeholder<bool>(graph, {});
    auto m = df::placeholder<float>(graph, {200, 200});
    df::Output<float> slow = m;
    for (int k = 0; k < 30; ++k) slow = df::matmul(slow, m);
    auto old = [&] {
      const auto after = graph.control_dependencies({slow.operation()});
      const auto on = graph.device("/cpu:1");
      return total.read();
    }();
    const auto body = [&](df::Output<float> v) {
      const auto bump = total.assign_add(df::constant(graph, 10.0f));
      const auto after = graph.control_dependencies({bump});
      return df::Output<float>(df::identity(v));
    };
    const auto on = graph.device("/cpu:0");
    auto f = df::function(graph, "f", body, {.shapes = {df::PartialShape({})}});
    auto y = is_branch ? df::cond(
                             yes, [&] { return body(old); }, [&] { return df::Output<float>(old); })
                       : df::Output<float>(f(old));
    for (const df::SessionOptions& options : sessions_of_three_devices()) {
      df::Session session(graph, options);
      session.run(df::initialize_variables(graph));
      const df::Tensor<float> value({200, 200}, std::vector<float>(40000, 0.001f));
      for (int run = 0; run < 3; ++run) {
        CHECK(session.run({{m, value}, {yes, df::Tensor<bool>(true)}}, y).scalar() == static_cast<float>(10 * run));
      }
    }
  }
}

TEST_CASE("a loop does not run ahead of its parts, whose errors end it", "[split]") {
  for (const bool fails : {false, true}) {
    df::Graph graph;
    auto n = df::placeholder<std::int32_t>(graph, {});
    const auto total = total_on_device_1(graph);
    auto f = df::function(
        graph, "f",
        [&](df::Output<std::int32_t> i) {
          auto big = df::Output<float>(df::fill<float>(graph, {256, 1024}, 1.0f) * df::cast<float>(i));
          auto sum = [&] {
            const auto on = graph.device("/cpu:1");
            auto r = df::Output<float>(df::reduce_sum(df::sin(df::sin(big))));
            return fails ? df::Output<float>(df::check_numerics(df::log(r * 0.0f - 1.0f), "too large")) : r;
          }();
          const df::Operation bump = total.assign_add(sum);
          return std::tuple<df::Output<std::int32_t>, df::Operation>{df::Output<std::int32_t>(i + 1), bump};
        },
        {.shapes = {df::PartialShape({})}});
    auto last = df::while_loop([&](auto i) { return i < n; }, [&](auto i) { return std::get<0>(f(i)); },
                               df::constant(graph, 0));
    for (df::SessionOptions options : sessions_of_three_devices()) {
      options.memory_limit_bytes = std::size_t{48} << 20;  // 1 MiB an iteration
      df::Session session(graph, options);
      session.run(df::initialize_variables(graph));
      const auto run = [&](int count) { return session.run({{n, df::Tensor<std::int32_t>(count)}}, last).scalar(); };
      if (fails) {
        CHECK(mentions(status_of([&] { return run(2'000'000'000); }), "too large"));
      } else {
        constexpr int more_than_fit = df::testing::is_sanitized ? 100 : 200;
        CHECK(run(more_than_fit) == more_than_fit);
      }
    }
  }
}

TEST_CASE("a handle of another device that a body captures and nothing reads stays where it is", "[split]") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto total = total_on_device_1(graph);
  auto last = df::while_loop([&](auto i) { return i < n; },
                             [&](auto i) {
                               static_cast<void>(total.read());
                               return i + 1;
                             },
                             df::constant(graph, 0));
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    session.run(df::initialize_variables(graph));
    CHECK(session.run({{n, df::Tensor<std::int32_t>(3)}}, last).scalar() == 3);
  }
}

TEST_CASE("bodies compute on a device that has a memory of its own, split and whole", "[split]") {
  const auto devices = [] {
    std::vector<std::shared_ptr<df::Device>> both{
        std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{.pool = std::make_shared<df::WorkStealingPool>(2)})};
    both.push_back(std::make_shared<df::testing::ProofDevice>());
    return both;
  };
  for (const bool is_whole : {false, true}) {
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {});
    auto n = df::placeholder<std::int32_t>(graph, {});
    auto yes = df::placeholder<bool>(graph, {});
    const auto proof = [&] { return graph.device("/device:PROOF:0"); };
    auto [i, y] = df::while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto v) {
                                   auto a = [&] {
                                     const auto on = proof();
                                     return df::Output<float>((v * 2.0f) * (v + x));
                                   }();
                                   return std::tuple{i + 1, df::Output<float>(a + 1.0f)};
                                 },
                                 std::tuple{df::constant(graph, 0), x});
    auto dy = df::Output<float>(df::gradients(df::Output<float>(y), x));
    auto branch = [&] {
      const auto on = graph.device(is_whole ? "/device:PROOF:0" : "");
      return df::cond(
          yes,
          [&] {
            const auto here = proof();
            return df::Output<float>(x * 2.0f);
          },
          [&] { return df::Output<float>(x + 5.0f); });
    }();
    df::Session session(graph, {.devices = devices()});
    for (const bool side : {false, true}) {
      for (int run = 0; run < 3; ++run) {
        // x = 0.5: v = 2 v (v + x) + 1 is 2 and 11. Its derivative 2 v' (2 v + x) + 2 v is 4 and 40.
        const auto run_of = [&](const auto& edge) {
          return session
              .run({{x, df::Tensor<float>(0.5f)}, {n, df::Tensor<std::int32_t>(2)}, {yes, df::Tensor<bool>(side)}},
                   edge)
              .scalar();
        };
        CHECK(run_of(y) == 11);
        CHECK(run_of(dy) == 40);
        CHECK(run_of(branch) == (side ? 1.0f : 5.5f));
      }
    }
  }
}

namespace {

void set_function(df::GraphDef& def, const std::string& op, const std::string& attr, const std::string& function) {
  for (df::NodeDef& node : def.nodes) {
    for (auto& [name, value] : node.attrs) {
      if (node.op == op && name == attr) value = df::FunctionName{function};
    }
  }
}

}  // namespace

TEST_CASE("a loop on several devices whose condition calls itself is refused", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  const auto there = [&] { return graph.device("/cpu:1"); };
  auto p = df::function(graph, "p",
                        [&](df::Output<float> v) {
                          return df::cond(
                              v > 2.0f,
                              [&] {
                                auto w = df::while_loop([&](auto u) { return u > 100.0f; },
                                                        [&](auto u) { return df::Output<float>(u - 1.0f); },
                                                        df::Output<float>(v - 3.0f));
                                const auto on = there();
                                return df::Output<bool>(w > -50.0f);
                              },
                              [&] {
                                const auto on = there();
                                return df::Output<bool>(v > 100.0f);
                              });
                        },
                        {.shapes = {df::PartialShape({})}});
  static_cast<void>(p(x, {.name = "r"}));
  df::GraphDef def = df::to_graph_def(graph);
  set_function(def, "While", "condition", "p");
  df::Graph imported = df::import_graph(def, df::standard_op_table());
  df::Session session(imported, on_three_devices);
  const auto run = [&] {
    return session.run({{df::Output<float>(imported.output("x")), df::Tensor<float>(4.0f)}},
                       df::Output<bool>(imported.output("r")));
  };
  CHECK(code_of(run) == df::Code::unimplemented);
}

TEST_CASE("a graph from outside has no calls that are parts, nor bodies that receive", "[split]") {
  for (const bool has_frame : {false, true}) {
    df::Graph graph;
    auto x = df::placeholder<float>(graph, {}, {.name = "x"});
    auto w = df::while_loop([&](auto v) { return v > 0.0f; }, [&](auto v) { return df::Output<float>(v - 1.0f); }, x);
    df::GraphDef def = df::to_graph_def(graph);
    std::vector<df::NodeDef> nodes;
    const std::string device = "/job:localhost/replica:0/task:0/device:CPU:0";
    for (df::NodeDef node : def.nodes) {
      if (node.op == "While" && has_frame) {
        std::erase_if(node.attrs, [](const auto& attr) { return attr.first == "frame"; });
        node.attrs.emplace_back("frame", std::string("f"));
      }
      if (node.op == "FunctionResults" && node.function == "while/body") {
        df::NodeDef recv;
        recv.op = "_Recv";
        recv.name = "r";
        recv.function = node.function;
        recv.types = {{"tensor_type", df::DType::float32}};
        recv.attrs = {{"tensor_name", std::string("nothing")},
                      {"send_device", device},
                      {"recv_device", device},
                      {"send_device_incarnation", std::int64_t{1}}};
        nodes.push_back(recv);
        node.inputs.push_back("^r");
      }
      nodes.push_back(node);
    }
    def.nodes = nodes;
    df::Graph imported = df::import_graph(def, df::standard_op_table());
    df::Session session(imported, on_three_devices);
    const auto run = [&] {
      return session.run({.deadline = std::chrono::seconds(20)},
                         {{df::Output<float>(imported.output("x")), df::Tensor<float>(4.0f)}},
                         df::Output<float>(imported.output(w.name())));
    };
    CHECK(code_of(run) == df::Code::unimplemented);
  }
}

TEST_CASE("a call on two devices that waits for many nodes of one is waited for on the other") {
  for (const int num_before : {1, 3, 4, 5, 9}) {
    for (const int kind : {0, 1, 2}) {
      INFO(num_before << " nodes before, kind " << kind);
      df::Graph graph;
      const auto x = df::placeholder<float>(graph, {});
      std::vector<df::Operation> before;
      {
        const auto on = graph.device("/cpu:0");
        for (int i = 0; i < num_before; ++i) {
          before.push_back(df::Variable<float>(graph, 0.0f, {.name = df::str_cat("v", i)}).assign(x));
        }
      }
      df::Output<float> y, z;
      {
        const auto waits = graph.control_dependencies(before);
        const auto on = graph.device("/cpu:0");
        const auto far = [&](df::Output<float> k) {
          const auto there = graph.device("/cpu:1");
          return k * 2.0f;
        };
        if (kind == 0) {
          y = df::while_loop([&](auto k) { return k < 100.0f; },
                             [&](auto k) { return df::Output<float>(far(k) + 1.0f); }, x);
        } else if (kind == 1) {
          y = df::cond(
              x > 0.0f, [&] { return df::Output<float>(far(x) + 1.0f); }, [&] { return df::identity(x); });
        } else {
          y = df::function(graph, "f", [&](df::Output<float> k) { return df::Output<float>(far(k) + 1.0f); })(x);
        }
      }
      {
        const auto waits = graph.control_dependencies({y.operation()});
        const auto on = graph.device("/cpu:1");
        z = x + 1.0f;
      }
      df::Session session(graph, {.num_threads = 2, .num_cpu_devices = 2});
      session.run(df::initialize_variables(graph));
      CHECK(session.run({{x, 1.0f}}, z).scalar() == 2.0f);
      const auto [both_y, both_z] = session.run({{x, 1.0f}}, y, z);
      CHECK(both_z.scalar() == 2.0f);
      CHECK(both_y.scalar() == (kind == 0 ? 127.0f : 3.0f));
    }
  }
}

TEST_CASE("a call that is built on a device in a body runs there, and the call around it where it was") {
  const auto built = [](df::Graph& graph, df::Output<float> x, bool has_other) {
    const auto loop = [](df::Output<float> from) {
      return df::while_loop([](auto k) { return k < 100.0f; },
                            [](auto k) { return df::Output<float>(k * 2.0f + 1.0f); }, from);
    };
    return df::cond(
        x > 0.0f,
        [&] {
          const auto on = graph.device("/cpu:1");
          return df::Output<float>(loop(x));
        },
        [&] {
          if (!has_other) return df::Output<float>(x * 5.0f);
          const auto on = graph.device("/cpu:0");
          return df::Output<float>(loop(x + 1.0f));
        },
        {.name = "branch"});
  };
  for (const bool has_other : {false, true}) {
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {});
    const auto y = built(graph, x, has_other);
    df::Session session(graph, {.num_threads = 2, .num_cpu_devices = 2});
    CHECK(session.run({{x, 1.0f}}, y).scalar() == 127.0f);
    CHECK(session.run({{x, -1.0f}}, y).scalar() == (has_other ? 127.0f : -5.0f));
    CHECK(session.device_of(y.operation()).ends_with("CPU:0"));
  }
}

TEST_CASE("a split loop whose condition is what it captures runs on each device or on none", "[split]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {});
  const auto goes_on = df::placeholder<bool>(graph, {});
  const auto y = std::get<0>(df::while_loop([&](auto) { return goes_on; },
                                            [&](auto v) {
                                              const auto on = graph.device("/cpu:1");
                                              return std::tuple{df::check_numerics(v * v, "large")};
                                            },
                                            std::tuple{x}));
  for (const df::SessionOptions& options : sessions_of_three_devices()) {
    df::Session session(graph, options);
    CHECK(session.run({{x, 3.0f}, {goes_on, false}}, y).scalar() == 3.0f);
    const df::Status status = status_of([&] { session.run({{x, 3.0f}, {goes_on, true}}, y); });
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, "large"));
  }
}
