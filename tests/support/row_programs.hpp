// Programs with arrays, loops over rows and recurrent networks. Their results do not depend on the devices.
#pragma once

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow::testing {

using Scalar = Output<float>;

/// A function of x, with its known value at x = 1.5 and its first two derivatives.
struct RowProgram {
  std::string name;
  std::function<Scalar(Graph&, Scalar x)> build;
  std::vector<float> wanted;
};

/// The sum of an array that a loop writes and reads: x, 2 x, then two elements, each the product of the two before it.
inline Scalar written_array(Graph& graph, Scalar x) {
  auto array = TensorArray<float>(graph, 4, Shape{}).write(constant(graph, 0), x);
  auto [i, all] = while_loop([](auto i, auto) { return i < 2; },
                             [](auto i, auto array) {
                               return std::tuple{i + 1, array.write(i + 2, array.read(i) * array.read(i + 1))};
                             },
                             std::tuple{constant(graph, 0), array.write(constant(graph, 1), x * 2.0f)});
  return reduce_sum(all.stack());
}

inline Scalar gathered_array(Graph& graph, Scalar x) {
  auto rows = TensorArray<float>::unstack(pack({x, x * x, x * x * x}));
  return reduce_prod(rows.gather(constant(graph, Tensor<std::int32_t>({3}, {2, 0, 2}))));
}

inline Output<float> three_rows(Scalar x) { return pack({x, x * 2.0f, x * 3.0f}); }

inline Scalar stacked_and_popped(Graph& graph, Scalar x) {
  auto [i, pushed] = while_loop([](auto i, auto) { return i < 3; },
                                [&](auto i, auto stack) {
                                  return std::tuple{i + 1, stack.push(x * cast<float>(i + 1))};
                                },
                                std::tuple{constant(graph, 0), TensorStack<float>(graph, Shape{})});
  return std::get<1>(while_loop([](auto stack, auto) { return stack.size() > 0; },
                                [](auto stack, auto product) {
                                  auto [rest, top] = stack.pop();
                                  return std::tuple{rest, Scalar(product * top)};
                                },
                                std::tuple{pushed, x}));
}

/// x; x^2 and x; x^3, x^2 and x. `shape` is the declared shape of the rows.
inline Scalar grown_rows(Graph& graph, Scalar x, const PartialShape& shape) {
  auto one = reshape(x, {1});
  return reduce_sum(std::get<1>(while_loop([](auto i, auto) { return i < 2; },
                                           [&](auto i, auto rows) {
                                             return std::tuple{i + 1, concat(0, {rows * x, one})};
                                           },
                                           std::tuple{constant(graph, 0), one}, {.shapes = {Shape{}, shape}})));
}

/// Cells of two units with kernels of 1/4, over x / 2, x, 3 x / 2.
template <class Cell>
Scalar recurrent(Scalar x, const Cell& cell) {
  return reduce_sum(std::get<0>(dynamic_rnn(cell, reshape(three_rows(x) * 0.5f, {1, 3, 1}))));
}

/// Closed forms: x + 2 x + 2 x^2 + 4 x^3; x^7; 6 x^4; x^3 + x^2 + x; 14 x^3. With s = f(s, row): x^4 + x^3 + 2 x^2 + 3
/// x, 3 x^3 + 2 x^2 + x and x^4 + 2 x^3 + 4 x^2 + 6 x. The numbers of the recurrent networks come from TensorFlow 2.21:
/// its formulas in float64.
inline std::vector<RowProgram> row_programs() {
  const auto horner = [](Graph&, Scalar x) { return [x](auto state, auto row) { return Scalar(state * x + row); }; };
  return {
      {"array", written_array, {22.5f, 36, 40}},
      {"gathered array", gathered_array, {17.0859375f, 79.734375f, 318.9375f}},
      {"stack", stacked_and_popped, {30.375f, 81, 162}},
      {"rows that grow", [](Graph& g, Scalar x) { return grown_rows(g, x, {dynamic}); }, {7.125f, 10.75f, 11}},
      {"rows of any shape",
       [](Graph& g, Scalar x) { return grown_rows(g, x, PartialShape::unknown()); },
       {7.125f, 10.75f, 11}},
      {"map",
       [](Graph&, Scalar x) { return reduce_sum(map([x](auto row) { return Scalar(row * row * x); }, three_rows(x))); },
       {47.25f, 94.5f, 126}},
      {"foldl", [=](Graph& g, Scalar x) { return foldl(horner(g, x), three_rows(x), x); }, {17.4375f, 29.25f, 40}},
      {"foldr",
       [=](Graph& g, Scalar x) { return foldr(horner(g, x), three_rows(x), Scalar(x * 0.0f)); },
       {16.125f, 27.25f, 31}},
      {"scan",
       [=](Graph& g, Scalar x) { return reduce_sum(scan(horner(g, x), three_rows(x), x)); },
       {29.8125f, 45, 53}},
      {"long short-term memory",
       [](Graph&, Scalar x) { return recurrent(x, LstmCell(2, {.kernel_initializer = init::constant(0.25)})); },
       {1.2117177422292953f, 0.8973273639031275f, -0.07295624893268068f}},
      {"gated recurrent units",
       [](Graph&, Scalar x) { return recurrent(x, GruCell(2, {.kernel_initializer = init::constant(0.25)})); },
       {0.6654842961301568f, 0.27685238405122414f, -0.19655179009311818f}}};
}

/// `spread`: the devices of nodes that compute and hold nothing; others are where `device` says.
inline DeviceFunction row_devices(std::string device, std::vector<std::string> spread, std::size_t draw) {
  return [device = std::move(device), spread = std::move(spread), draw](const Node& node) {
    const bool is_plain = node.op->role == OpRole::ordinary && !node.op->is_stateful &&
                          node.op->name.find("List") == std::string_view::npos &&
                          node.op->name.find("Kept") == std::string_view::npos;
    if (!is_plain || spread.empty()) return device;
    const std::size_t i = std::hash<std::string>()(node.name + std::to_string(draw)) % (2 * spread.size());
    return i < spread.size() ? spread[i] : device;
  };
}

inline void check_row_program(const RowProgram& program, const DeviceFunction& device, const SessionOptions& options) {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  std::vector<Scalar> results;
  {
    const auto on = graph.device(device);
    results.push_back(program.build(graph, x));
    for (int order = 1; order <= 2; ++order) results.push_back(gradients(results.back(), x));
  }
  Session session(graph, options);
  if (!global_variables(graph).empty()) session.run(initialize_variables(graph));
  const Tensor<float> at(1.5f);
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

inline std::vector<PassOptions> passes_of_each_form() {
  std::vector<PassOptions> all(3);
  all[1].lower_control_flow = true;
  all[2].lower_control_flow = all[2].raise_control_flow = true;
  return all;
}

}  // namespace dflow::testing
