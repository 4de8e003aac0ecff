// Arrays, loops over rows and recurrent networks on one device, over devices and over tasks.
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include "catch.hpp"
#include "cluster_harness.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

using Scalar = df::Output<float>;

/// A function of x, of which the value at x = 1.5 and its first two derivatives are known.
struct RowProgram {
  std::string name;
  std::function<Scalar(df::Graph&, Scalar x)> build;
  std::vector<float> wanted;
};

/// The sum of an array that a loop writes and reads: x, 2 x, and each of the two others the product of two before it.
Scalar written_array(df::Graph& graph, Scalar x) {
  auto array = df::TensorArray<float>(graph, 4, df::Shape{}).write(df::constant(graph, 0), x);
  auto [i, all] = df::while_loop([](auto i, auto) { return i < 2; },
                                 [](auto i, auto array) {
                                   return std::tuple{i + 1, array.write(i + 2, array.read(i) * array.read(i + 1))};
                                 },
                                 std::tuple{df::constant(graph, 0), array.write(df::constant(graph, 1), x * 2.0f)});
  return df::reduce_sum(all.stack());
}

Scalar gathered_array(df::Graph& graph, Scalar x) {
  auto rows = df::TensorArray<float>::unstack(df::pack({x, x * x, x * x * x}));
  return df::reduce_prod(rows.gather(df::constant(graph, df::Tensor<std::int32_t>({3}, {2, 0, 2}))));
}

df::Output<float> three_rows(Scalar x) { return df::pack({x, x * 2.0f, x * 3.0f}); }

Scalar stacked_and_popped(df::Graph& graph, Scalar x) {
  auto [i, pushed] = df::while_loop([](auto i, auto) { return i < 3; },
                                    [&](auto i, auto stack) {
                                      return std::tuple{i + 1, stack.push(x * df::cast<float>(i + 1))};
                                    },
                                    std::tuple{df::constant(graph, 0), df::TensorStack<float>(graph, df::Shape{})});
  return std::get<1>(df::while_loop([](auto stack, auto) { return stack.size() > 0; },
                                    [](auto stack, auto product) {
                                      auto [rest, top] = stack.pop();
                                      return std::tuple{rest, Scalar(product * top)};
                                    },
                                    std::tuple{pushed, x}));
}

/// x; x^2 and x; x^3, x^2 and x. `shape`: what is said of the rows.
Scalar grown_rows(df::Graph& graph, Scalar x, const df::PartialShape& shape) {
  auto one = df::reshape(x, {1});
  return df::reduce_sum(
      std::get<1>(df::while_loop([](auto i, auto) { return i < 2; },
                                 [&](auto i, auto rows) {
                                   return std::tuple{i + 1, df::concat(0, {rows * x, one})};
                                 },
                                 std::tuple{df::constant(graph, 0), one}, {.shapes = {df::Shape{}, shape}})));
}

/// Of cells of two units whose kernels are 1/4, over x / 2, x, 3 x / 2.
template <class Cell>
Scalar recurrent(Scalar x, const Cell& cell) {
  return df::reduce_sum(std::get<0>(df::dynamic_rnn(cell, df::reshape(three_rows(x) * 0.5f, {1, 3, 1}))));
}

/// Closed forms: x + 2 x + 2 x^2 + 4 x^3; x^7; 6 x^4; x^3 + x^2 + x; 14 x^3; with s = f(s, row): x^4 + x^3 + 2 x^2 + 3
/// x, 3 x^3 + 2 x^2 + x and x^4 + 2 x^3 + 4 x^2 + 6 x; the recurrent networks' numbers are those of TensorFlow 2.21, of
/// their formulas in float64.
std::vector<RowProgram> row_programs() {
  const auto horner = [](df::Graph&, Scalar x) {
    return [x](auto state, auto row) { return Scalar(state * x + row); };
  };
  return {
      {"array", written_array, {22.5f, 36, 40}},
      {"gathered array", gathered_array, {17.0859375f, 79.734375f, 318.9375f}},
      {"stack", stacked_and_popped, {30.375f, 81, 162}},
      {"rows that grow", [](df::Graph& g, Scalar x) { return grown_rows(g, x, {df::dynamic}); }, {7.125f, 10.75f, 11}},
      {"rows of any shape",
       [](df::Graph& g, Scalar x) { return grown_rows(g, x, df::PartialShape::unknown()); },
       {7.125f, 10.75f, 11}},
      {"map",
       [](df::Graph&, Scalar x) {
         return df::reduce_sum(df::map([x](auto row) { return Scalar(row * row * x); }, three_rows(x)));
       },
       {47.25f, 94.5f, 126}},
      {"foldl",
       [=](df::Graph& g, Scalar x) { return df::foldl(horner(g, x), three_rows(x), x); },
       {17.4375f, 29.25f, 40}},
      {"foldr",
       [=](df::Graph& g, Scalar x) { return df::foldr(horner(g, x), three_rows(x), Scalar(x * 0.0f)); },
       {16.125f, 27.25f, 31}},
      {"scan",
       [=](df::Graph& g, Scalar x) { return df::reduce_sum(df::scan(horner(g, x), three_rows(x), x)); },
       {29.8125f, 45, 53}},
      {"long short-term memory",
       [](df::Graph&, Scalar x) {
         return recurrent(x, df::LstmCell(2, {.kernel_initializer = df::init::constant(0.25)}));
       },
       {1.2117177422292953f, 0.8973273639031275f, -0.07295624893268068f}},
      {"gated recurrent units",
       [](df::Graph&, Scalar x) {
         return recurrent(x, df::GruCell(2, {.kernel_initializer = df::init::constant(0.25)}));
       },
       {0.6654842961301568f, 0.27685238405122414f, -0.19655179009311818f}}};
}

/// `spread`: the devices of nodes that compute and hold nothing; others are where `device` says.
df::DeviceFunction row_devices(std::string device, std::vector<std::string> spread, std::size_t draw) {
  return [device = std::move(device), spread = std::move(spread), draw](const df::Node& node) {
    const bool is_plain = node.op->role == df::OpRole::ordinary && !node.op->is_stateful &&
                          node.op->name.find("List") == std::string_view::npos &&
                          node.op->name.find("Kept") == std::string_view::npos;
    if (!is_plain || spread.empty()) return device;
    const std::size_t i = std::hash<std::string>()(node.name + std::to_string(draw)) % (2 * spread.size());
    return i < spread.size() ? spread[i] : device;
  };
}

void check_row_program(const RowProgram& program, const df::DeviceFunction& device, const df::SessionOptions& options) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {});
  std::vector<Scalar> results;
  {
    const auto on = graph.device(device);
    results.push_back(program.build(graph, x));
    for (int order = 1; order <= 2; ++order) results.push_back(df::gradients(results.back(), x));
  }
  df::Session session(graph, options);
  if (!df::global_variables(graph).empty()) session.run(df::initialize_variables(graph));
  const df::Tensor<float> at(1.5f);
  for (int run = 0; run < 2; ++run) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO("derivative " << i);
      CHECK(session.run({{x, at}}, results[i]).scalar() == Approx(program.wanted[i]));
    }
    const auto [y, dy, ddy] = session.run({{x, at}}, results[0], results[1], results[2]);
    CHECK(y.scalar() == Approx(program.wanted[0]));
    CHECK(dy.scalar() == Approx(program.wanted[1]));
    CHECK(ddy.scalar() == Approx(program.wanted[2]));
  }
}

std::vector<df::PassOptions> passes_of_each_form() {
  std::vector<df::PassOptions> all(3);
  all[1].lower_control_flow = true;
  all[2].lower_control_flow = all[2].raise_control_flow = true;
  return all;
}

}  // namespace

TEST_CASE("arrays, loops over rows and recurrent networks give the same on one device and over three", "[split]") {
  for (const RowProgram& program : row_programs()) {
    for (const df::PassOptions& passes : passes_of_each_form()) {
      INFO(program.name << ", lowered: " << passes.lower_control_flow << ", raised: " << passes.raise_control_flow);
      check_row_program(program, row_devices("", {}, 0), {.passes = passes});
      check_row_program(program, row_devices("/cpu:1", {}, 0), {.num_cpu_devices = 3, .passes = passes});
      for (std::size_t draw = 0; draw < 4; ++draw) {
        INFO("draw " << draw);
        check_row_program(program, row_devices("", {"/cpu:0", "/cpu:1", "/cpu:2"}, draw),
                          {.num_cpu_devices = 3, .passes = passes});
      }
    }
  }
}

TEST_CASE("arrays, loops over rows and recurrent networks give the same in one task and over three", "[split]") {
  MemoryCluster cluster({{"ps", 2}, {"worker", 1}});
  const std::vector<std::string> tasks{"/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0"};
  for (const RowProgram& program : row_programs()) {
    for (const df::PassOptions& passes : passes_of_each_form()) {
      INFO(program.name << ", lowered: " << passes.lower_control_flow << ", raised: " << passes.raise_control_flow);
      const df::SessionOptions options{.target = cluster.server("worker", 0).target(), .passes = passes};
      check_row_program(program, row_devices(tasks[1], {}, 0), options);
      for (std::size_t draw = 0; draw < 2; ++draw) {
        INFO("draw " << draw);
        check_row_program(program, row_devices(tasks[0], tasks, draw), options);
      }
    }
  }
}
