// Programs with branches, loops and functions, whose results do not depend on where they run.
#pragma once

#include <dflow/dflow.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace dflow::testing {

/// What to fetch, of a graph that was given two fed scalars: `x` = 1.5 and `n` = 4.
using ControlFlowResults = std::vector<Output<float>>;

struct ControlFlowProgram {
  std::string name;
  std::function<ControlFlowResults(Graph&, Output<float> x, Output<std::int32_t> n)> build;
  std::vector<float> wanted;
};

inline ControlFlowResults loop_with_branches(Graph&, Output<float> x, Output<std::int32_t>) {
  // 1.5, 3, 4.5, 13.5, 40.5, 121.5
  auto y = while_loop([](auto v) { return v < 50.0f; },
                      [&](auto v) {
                        return cond(
                            v < 4.0f, [&] { return v + x; }, [&] { return v * 3.0f; });
                      },
                      x);
  return {y, gradients(y, x)};
}

inline ControlFlowResults loop_in_a_loop(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  // The sum of x^(i j) for i and j below n.
  auto [i, sum] = while_loop([&](auto i, auto) { return i < n; },
                             [&](auto i, auto sum) {
                               auto [j, inner] =
                                   while_loop([&](auto j, auto) { return j < n; },
                                              [&](auto j, auto inner) {
                                                return std::tuple{j + 1, inner + pow(x, cast<float>(i * j))};
                                              },
                                              std::tuple{constant(graph, 0), sum});
                               return std::tuple{i + 1, inner};
                             },
                             std::tuple{constant(graph, 0), constant(graph, 0.0f)});
  return {sum, gradients(sum, x), cast<float>(i)};
}

inline ControlFlowResults functions_in_branches(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  auto scaled = function(graph, "scaled", [&](Output<float> v) { return v * x; });
  auto twice = function(graph, "twice", [&](Output<float> v) { return scaled(scaled(v)); });
  auto y = case_of(n - 3, std::tuple{[&] { return x * 1.0f; }, [&] { return twice(x); }, [&] { return scaled(x); }});
  return {y, gradients(y, x), twice(twice(x))};
}

inline ControlFlowResults matrices(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  auto w = fill<float>(graph, {3, 3}, 0.25f) * x;
  auto [i, product] = while_loop([&](auto i, auto) { return i < n; },
                                 [&](auto i, auto product) {
                                   return std::tuple{i + 1, tanh(matmul(product, w))};
                                 },
                                 std::tuple{constant(graph, 0), w});
  auto sum = reduce_sum(product);
  return {sum, gradients(sum, x)};
}

inline ControlFlowResults recursion(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  // x to the power n.
  auto power = recursive_function<Output<float>(Output<std::int32_t>)>(
      graph, "power", [&](const auto& self, Output<std::int32_t> k) {
        return cond(
            k < 1, [&] { return Output<float>(ones_like(x)); }, [&] { return Output<float>(x * self(k - 1)); });
      });
  auto y = power(n);
  auto dy = Output<float>(gradients(y, x));
  return {y, dy, gradients(dy, x)};
}

/// `wanted` are closed forms: 81 x and 81; sum x^(i j) and its derivative; x^3, 3 x^2, x^5; x^4 and its first two
/// derivatives; and with a_0 = x / 4, a_k = tanh(3 x a_(k-1) / 4): 9 a_4 and its derivative.
inline std::vector<ControlFlowProgram> control_flow_programs() {
  return {{"loop with branches", loop_with_branches, {121.5f, 81}},
          {"loop in a loop", loop_in_a_loop, {86.037109375f, 355.78515625f, 4}},
          {"functions in branches", functions_in_branches, {3.375f, 6.75f, 7.59375f}},
          {"recursion", recursion, {5.0625f, 13.5f, 27}},
          {"matrices", matrices, {4.129082153303187f, 9.338249375454696f}}};
}

}  // namespace dflow::testing
