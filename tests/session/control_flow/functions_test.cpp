// Functions of the graph: built, called, saved, and made wrong.
#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

TEST_CASE("functions are saved with their graph, and imported under other names beside it") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto [i, y] =
      df::while_loop([&](auto i, auto) { return i < 3; },
                     [&](auto i, auto v) {
                       return std::tuple{i + 1, df::cond(
                                                    v > 10.0f, [&] { return v - x; }, [&] { return v * 3.0f; })};
                     },
                     std::tuple{df::constant(graph, 0), x}, {}, {.name = "y"});
  CHECK((i.is_valid() && y.is_valid()));
  const df::GraphDef def = df::to_graph_def(graph);
  CHECK(def.version == df::GraphDef::functions_version);
  const auto run = [](df::Graph& of, const std::string& prefix) {
    const auto edge = [&](const std::string& name, std::int32_t output) {
      return df::Output<float>(df::AnyOutput(of.store(), {of.store()->find(prefix + name), output}));
    };
    df::Session session(of);
    return session.run({{edge("x", 0), df::Tensor<float>(4.0f)}}, edge("y", 1)).scalar();
  };
  const float expected = 24;  // 4, 12, 8, 24
  CHECK(run(graph, "") == expected);
  const std::string binary = df::to_binary(def);
  const std::vector<df::GraphDef> forms{df::from_binary(std::as_bytes(std::span<const char>(binary))),
                                        df::from_json(df::to_json(def))};
  for (const df::GraphDef& read : forms) {
    CHECK(read == def);
    df::Graph copy = df::import_graph(read, df::standard_op_table());
    CHECK(run(copy, "") == expected);
    df::import_graph_into(copy, read, df::standard_op_table(), {.prefix = "again"});
    CHECK(run(copy, "again/") == expected);
    df::GraphDef shuffled = read;
    std::reverse(shuffled.nodes.begin(), shuffled.nodes.end());
    df::Graph other = df::import_graph(shuffled, df::standard_op_table());
    CHECK(run(other, "") == expected);
  }
  df::GraphDef old = def;
  old.version = 1;
  CHECK(df::to_binary(old) == binary);  // the author of a def need not know its version
  CHECK(df::to_json(old) == df::to_json(def));
}

TEST_CASE("a graph whose functions are wrong is refused, when it is imported or when it runs") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto y = df::cond(
      x > 0.0f, [&] { return x * 2.0f; }, [&] { return -x; }, {.name = "y"});
  CHECK(y.is_valid());
  const df::GraphDef def = df::to_graph_def(graph);
  const auto node = [](df::GraphDef& of, std::string_view op, int which = 0) -> df::NodeDef& {
    for (df::NodeDef& each : of.nodes) {
      if (each.op == op && which-- == 0) return each;
    }
    throw std::out_of_range("no such node");
  };
  const auto imported = [&](const auto& change) {
    df::GraphDef changed = def;
    change(changed);
    return status_of([&] {
      df::Graph copy = df::import_graph(changed, df::standard_op_table());
      df::Session session(copy, {.passes = df::testing::each_form()});
      const auto edge = [&](const char* name) {
        return df::Output<float>(df::AnyOutput(copy.store(), {copy.store()->find(name), 0}));
      };
      return session.run({{edge("x"), df::Tensor<float>(4.0f)}}, edge("y"));
    });
  };
  CHECK(imported([](auto&) {}).ok());
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = ""; }), "no value outside of it"));
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = "x"; }), "'x' is no function"));
  CHECK(mentions(imported([&](auto& of) { node(of, "Mul").function = "nowhere"; }), "is not in the graph"));
  CHECK(mentions(imported([&](auto& of) { node(of, "If").attrs[0].second = df::FunctionName{"nowhere"}; }),
                 "has no function 'nowhere'"));
  CHECK(mentions(imported([&](auto& of) { node(of, "If").inputs.resize(1); }), "'x'"));
  CHECK(mentions(imported([&](auto& of) {  // its input is not fed: another call must give it
                   df::NodeDef begin, argument;
                   begin.name = "f";
                   begin.op = "Function";
                   argument.name = "f/a";
                   argument.op = "FunctionArgument";
                   argument.types = {{"dtype", df::DType::float32}};
                   argument.function = node(of, "Function").function = "f";
                   node(of, "Neg").inputs[0] = "f/a";
                   node(of, "Function", 1).function = "f";
                   of.nodes.insert(of.nodes.begin(), {begin, argument});
                 }),
                 "reads 'f/a', which its call does not give it"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults", 1).function = "y/then"; }), "results"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults").inputs.clear(); }), "gives 0 results"));
  CHECK(mentions(imported([&](auto& of) { node(of, "FunctionResults").inputs.push_back("x"); }), "gives 2 results"));
  CHECK(mentions(imported([&](auto& of) {
                   df::NodeDef& begin = of.nodes.emplace_back();
                   begin.name = "lonely";
                   begin.op = "Function";
                   node(of, "If").attrs[0].second = df::FunctionName{"lonely"};
                 }),
                 "is not finished"));
}

TEST_CASE("a function is built once and called often, with what it sees, and has gradients") {
  df::Graph graph;
  auto a = df::placeholder<float>(graph, {});
  auto b = df::placeholder<float>(graph, {});
  df::Variable<float> w(graph, df::Tensor<float>(3.0f), {.name = "w"});
  int num_built = 0;
  auto scaled = df::function(graph, "scaled_norm", [&](df::Output<float> x, df::Output<float> y) {
    ++num_built;
    return std::tuple{w * df::sqrt(x * x + y * y), x - y};
  });
  CHECK(scaled.name() == "scaled_norm");
  const auto [norm, difference] = scaled(a, b);
  const auto again = std::get<0>(scaled(norm, difference));
  auto summed =
      df::while_loop([&](auto v) { return v < 1000.0f; }, [&](auto v) { return std::get<0>(scaled(v, b)); }, a);
  CHECK(num_built == 1);
  const auto [ga, gb, gw] = df::gradients(again, a, b, w);
  auto ga_b = df::gradients(ga, b);
  auto gs = df::gradients(summed, a);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto f = [](double x, double y, double v) {
    const double n = v * std::sqrt(x * x + y * y);
    return v * std::sqrt(n * n + (x - y) * (x - y));
  };
  const auto loop = [](double x, double y) {
    while (x < 1000) x = 3 * std::sqrt(x * x + y * y);
    return x;
  };
  const auto run = [&](const auto& edge) {
    return session.run({{a, df::Tensor<float>(2.0f)}, {b, df::Tensor<float>(0.5f)}}, edge).scalar();
  };
  constexpr double h = 1e-4;
  CHECK(run(again) == Approx(f(2, 0.5, 3)));
  CHECK(run(summed) == Approx(loop(2, 0.5)));
  CHECK(run(ga) == Approx((f(2 + h, 0.5, 3) - f(2 - h, 0.5, 3)) / (2 * h)));
  CHECK(run(gb) == Approx((f(2, 0.5 + h, 3) - f(2, 0.5 - h, 3)) / (2 * h)));
  CHECK(run(gw) == Approx((f(2, 0.5, 3 + h) - f(2, 0.5, 3 - h)) / (2 * h)));
  CHECK(run(gs) == Approx((loop(2 + h, 0.5) - loop(2 - h, 0.5)) / (2 * h)));
  const double mixed =
      (f(2 + h, 0.5 + h, 3) - f(2 + h, 0.5 - h, 3) - f(2 - h, 0.5 + h, 3) + f(2 - h, 0.5 - h, 3)) / (4 * h * h);
  CHECK(run(ga_b) == Approx(mixed).epsilon(1e-3));
}

TEST_CASE("arguments of a function have the shapes that it declares") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 3});
  const auto twice = [](df::Output<float> v) { return df::matmul(v, v, {.transpose_b = true}); };
  auto gram = df::function(graph, "gram", twice, {.shapes = {{df::dynamic, 3}}});
  auto y = gram(x);
  auto open = df::function(graph, "open", twice);
  CHECK(open(df::placeholder<float>(graph, {4, 5})).shape() == df::PartialShape({4, 4}));
  CHECK(open(df::placeholder<float>(graph, {df::dynamic, 2})).shape().rank() == 2);
  CHECK(contains(error_of([&] { return open(df::placeholder<float>(graph, {4})); }), "[4]"));
  CHECK(y.shape().rank() == 2);
  CHECK(contains(error_of([&] {
                   return gram(df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4})));
                 }),
                 "argument 0 of function 'gram' has shape [2,2], not [?,3]"));
  CHECK(contains(error_of([&] {
                   return df::function(graph, "gram", twice, {.shapes = {{3}, {3}}});
                 }),
                 "2 shapes are declared for 1 arguments"));
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{x, df::Tensor<float>({1, 3}, {1, 2, 3})}}, y).span()[0] == 14);
}

TEST_CASE("calls of one function run in three threads at once") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto grow = df::function(graph, "grow", [](df::Output<float> v) {
    return df::while_loop([](auto u) { return u < 1e6f; }, [](auto u) { return u * 1.5f; }, v);
  });
  auto y = grow(x) + grow(x * 2.0f);
  df::Session session(graph, {.passes = df::testing::each_form()});
  auto step = session.prepare(df::feeds(x), df::fetches(y));
  const auto grown = [](float v) {
    while (v < 1e6f) v *= 1.5f;
    return v;
  };
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 200; ++i) {
        const auto v = static_cast<float>(i + t);
        num_wrong += step(df::Tensor<float>(v)).scalar() != grown(v) + grown(v * 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("calls of one function that fail leave those beside them and behind them as they are") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto root = df::function(graph, "root", [](df::Output<float> v) { return df::check_numerics(df::sqrt(v), "root"); });
  auto twice = df::function(graph, "twice", [root](df::Output<float> v) { return root(v) + root(v * 4.0f); });
  auto y = twice(x) + root(x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  auto step = session.prepare(df::feeds(x), df::fetches(y));
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const bool fails = (i + t) % 3 == 0;
        try {
          const float got = step(df::Tensor<float>(fails ? -1.0f : static_cast<float>(i * i))).scalar();
          num_wrong += fails || got != static_cast<float>(4 * i);
        } catch (const df::Error& error) {
          num_wrong += !fails || error.code() != df::Code::invalid_argument;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_wrong == 0);
}

TEST_CASE("functions that call each other twice cost what they say, and nested too deep they are refused",
          "[one_thread]") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto f = df::function(graph, "f", [](df::Output<float> v) { return v + 1.0f; });
  for (int level = 0; level < 18; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) { return f(f(v)); });
  }
  auto y = f(x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{x, df::Tensor<float>(0.0f)}}, y).scalar() == 1 << 18);
  // Twice as many levels would be 4^18 bodies, if calls did not share them.
  for (int level = 0; level < 22; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) {
      return df::cond(
          v < 0.0f, [&] { return f(f(v)); }, [&] { return v; });
    });
  }
  CHECK(session.run({{x, df::Tensor<float>(3.0f)}}, f(x)).scalar() == 3);
  for (int level = 0; level < 300; ++level) {
    f = df::function(graph, "f", [f](df::Output<float> v) { return f(v); });
  }
  CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(0.0f)}}, f(x)); }) == df::Code::resource_exhausted);
}

TEST_CASE("a body sends and receives nothing") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  const std::string task = "/job:localhost/replica:0/task:0/device:CPU:0";
  auto y = df::cond(
      x > 0.0f,
      [&] {
        return df::Output<float>(df::build<df::Recv>(
            *graph.store(), {}, {.tensor_name = "t", .send_device = task, .recv_device = task, .shape = {}}, {},
            df::type_args<float>()));
      },
      [&] { return x; });
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(code_of([&] { return session.run({{x, df::Tensor<float>(1.0f)}}, y); }) == df::Code::unimplemented);
}

namespace {

df::NodeDef& node_of(df::GraphDef& def, std::string_view op, int which = 0) {
  for (df::NodeDef& each : def.nodes) {
    if (each.op == op && which-- == 0) return each;
  }
  throw std::out_of_range("no such node");
}

void set_attr(df::NodeDef& node, std::string_view name, df::AttrValue value) {
  for (auto& [key, held] : node.attrs) {
    if (key == name) return static_cast<void>(held = std::move(value));
  }
  node.attrs.emplace_back(name, std::move(value));
}

}  // namespace

TEST_CASE("a graph whose function was made to call itself forever is given up") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {}, {.name = "x"});
  auto inner = df::function(graph, "inner", [](df::Output<float> v) { return v * 2.0f; });
  auto outer = df::function(graph, "outer", [&](df::Output<float> v) { return inner(v) + inner(v + 1.0f); });
  auto y = outer(x, {.name = "y"});
  CHECK(y.is_valid());
  df::GraphDef def = df::to_graph_def(graph);
  for (const int which : {0, 1}) set_attr(node_of(def, "Call", which), "function", df::FunctionName{"outer"});
  df::Graph copy = df::import_graph(def, df::standard_op_table());
  const df::Output<float> fed(copy.output("x")), fetched(copy.output("y"));
  df::Session session(copy, {.passes = df::testing::each_form()});
  const df::Status status = status_of([&] { return session.run({{fed, df::Tensor<float>(1.0f)}}, fetched); });
  CHECK(status.code() == df::Code::resource_exhausted);
  CHECK(mentions(status, "a function may call itself forever"));
  const auto gradient = df::gradients(fetched, fed);
  CHECK(code_of([&] {
          return session.run({{fed, df::Tensor<float>(1.0f)}}, gradient);
        }) == df::Code::resource_exhausted);
  // The graph goes on.
  CHECK(session.run({{fed, df::Tensor<float>(1.0f)}}, fed * 3.0f).scalar() == 3);
}

TEST_CASE("what a body relies on of its arguments, and a gradient of what was kept, is not believed but looked at") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic}, {.name = "x"});
  auto twice = df::function(graph, "twice", [](df::Output<float> v) { return v * 2.0f; });
  auto y = df::while_loop([](auto v) { return df::reduce_sum(v) < 100.0f; }, [&](auto v) { return twice(v) * v; }, x,
                          {}, {.name = "y"});
  auto gx = df::gradients(y, x);
  const std::string gradient = gx.name();
  const auto run = [&](const auto& change) {
    df::GraphDef def = df::to_graph_def(graph);
    change(def);
    return status_of([&] {
      df::Graph copy = df::import_graph(def, df::standard_op_table());
      df::Session session(copy, {.passes = df::testing::each_form()});
      return session.run({{df::Output<float>(copy.output("x")), df::Tensor<float>({3}, {1, 2, 3})}},
                         df::Output<float>(copy.output(gradient)));
    });
  };
  CHECK(run([](auto&) {}).ok());
  const df::Status refused =
      run([](df::GraphDef& def) { set_attr(node_of(def, "FunctionArgument"), "shape", df::PartialShape({2})); });
  CHECK(refused.code() == df::Code::invalid_argument);
  CHECK(mentions(refused, "[3]"));
  CHECK(mentions(refused, "[2]"));
  int num_refused = 0, num_elements = 0;
  for (int which = 0;; ++which) {
    df::GraphDef def = df::to_graph_def(graph);
    try {
      node_of(def, "KeptElement", which);
    } catch (const std::out_of_range&) {
      break;
    }
    ++num_elements;
    for (const df::DType dtype : {df::DType::float64, df::DType::string, df::DType::int32}) {
      num_refused += !run([&](df::GraphDef& of) { node_of(of, "KeptElement", which).types[0].second = dtype; }).ok();
    }
    CHECK(mentions(
        run([&](df::GraphDef& of) { set_attr(node_of(of, "KeptElement", which), "shape", df::PartialShape({7})); }),
        "[7]"));
  }
  CHECK(num_elements > 0);
  CHECK(num_refused == 3 * num_elements);
}

TEST_CASE("calls run in prepared, asynchronous, partial and traced steps, on each of three devices") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  auto more = df::placeholder<float>(graph, {});
  std::vector<df::Output<float>> ys;
  for (int device = 0; device < 3; ++device) {
    const auto on = graph.device("/cpu:" + std::to_string(device));
    ys.push_back(df::while_loop([&](auto v) { return v < 50.0f; },
                                [&](auto v) {
                                  return df::cond(
                                      v > 5.0f, [&] { return v * 3.0f; }, [&] { return v + more; });
                                },
                                x));
  }
  df::Session session(graph, {.num_cpu_devices = 3});
  const df::Tensor<float> one(1.0f), two(2.0f);  // 1, 3, 5, 7, 21, 63
  for (int run = 0; run < 3; ++run) {
    const auto [a, b, c] = session.run({{x, one}, {more, two}}, ys[0], ys[1], ys[2]);
    CHECK(a.scalar() == 63);
    CHECK(b.scalar() == 63);
    CHECK(c.scalar() == 63);
  }
  auto step = session.prepare(df::feeds(x, more), df::fetches(ys[1] + ys[2]));
  for (int run = 0; run < 3; ++run) CHECK(step(one, two).scalar() == 126);
  std::promise<float> got;
  session.run_async({{x, one}, {more, two}}, ys[2], [&](const df::Status& status, const df::Tensor<float>& value) {
    got.set_value(status.ok() ? value.scalar() : -1);
  });
  CHECK(got.get_future().get() == 63);
  auto partial = session.partial_run(df::feeds(x, more), df::fetches(ys[0], ys[1]));
  CHECK(partial.feed(x, one).feed(more, two).fetch(ys[1]).scalar() == 63);
  CHECK(partial.fetch(ys[0]).scalar() == 63);
  df::RunMetadata metadata;
  session.run({.trace = true}, &metadata, {{x, one}, {more, two}}, ys[0]);
  int num_products = 0;
  for (const df::NodeStats& node : metadata.stats.nodes)
    num_products += node.node.find("then/Mul") != std::string::npos;
  CHECK(num_products == 2);  // 7 to 21, 21 to 63
  auto apart = df::cond(
      x > 0.0f,
      [&] {
        const auto on = graph.device("/cpu:1");
        return x * 2.0f;
      },
      [&] {
        const auto on = graph.device("/cpu:2");
        return x * 3.0f;
      });
  df::Session strict(graph, {.num_cpu_devices = 3});
  CHECK(strict.run({{x, one}}, apart).scalar() == 2);
  CHECK(strict.run({{x, df::Tensor<float>(-1.0f)}}, apart).scalar() == -3);
}
