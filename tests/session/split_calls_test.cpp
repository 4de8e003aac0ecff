// Branches, loops and functions whose bodies are on several devices.
#include <dflow/dflow.hpp>
#include <dflow/graph/step_graph.hpp>

#include "catch.hpp"
#include "errors.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

const df::SessionOptions on_three_devices{.num_cpu_devices = 3};

/// Sessions that the same must come out of: a thread, several, and with what else a session may do to calls.
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

/// Devices of nodes with that op that the bodies of calls in a prepared step have.
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
  for (int run = 0; run < 3; ++run) {
    const auto [count, half] = session.run({{n, df::Tensor<std::int32_t>(20000)}}, i, sum);
    CHECK(count.scalar() == 20000);
    CHECK(half.scalar() == 10000.0f);
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
  const auto total = [&] {
    const auto on = graph.device("/cpu:1");
    return df::Variable<float>(graph, df::constant(graph, 0.0f), {.name = "total"});
  }();
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
  // Without those devices all of it is on one.
  df::Session soft(graph, {.soft_placement = true});
  CHECK(soft.run({{x, one}, {n, four}}, y).scalar() == wanted);
  df::Session strict(graph, {.num_cpu_devices = 2});
  CHECK(code_of([&] { return strict.run({{x, one}, {n, four}}, y); }) == df::Code::invalid_argument);
}

TEST_CASE("raw control flow on two devices is refused, by name", "[split]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto p = df::placeholder<bool>(graph, {});
  auto [no, yes] = df::frames::switch_on(x, p);
  auto other = [&] {
    const auto on = graph.device("/cpu:1");
    return df::Output<float>(yes * 2.0f);
  }();
  auto merged = df::frames::merge({no, other}).value;
  df::Session session(graph, on_three_devices);
  const auto run = [&] { return session.run({{x, df::Tensor<float>(1.0f)}, {p, df::Tensor<bool>(true)}}, merged); };
  CHECK(mentions(df::Status(status_of(run)), "Mul"));
  CHECK(code_of(run) == df::Code::unimplemented);
}
