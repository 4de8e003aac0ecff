// Programs with branches, loops and functions. Their results do not depend on the devices.
#pragma once

#include <dflow/dflow.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace dflow::testing {

/// The edges to fetch, in a graph with two fed scalars: `x` = 1.5 and `n` = 4.
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

/// The gradient of the weights is one product after its loop.
inline ControlFlowResults row_times_matrix(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  auto w = fill<float>(graph, {3, 3}, 0.25f) * x;
  auto [i, row] = while_loop([&](auto i, auto) { return i < n; },
                             [&](auto i, auto row) {
                               return std::tuple{i + 1, tanh(matmul(row, w))};
                             },
                             std::tuple{constant(graph, 0), slice(w, {1, 0}, {1, 3})});
  auto sum = reduce_sum(row);
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

/// The values of `wanted` are closed forms: 81 x and 81; sum x^(i j) and its derivative; x^3, 3 x^2, x^5; x^4 and its
/// first two derivatives. With a_0 = x / 4 and a_k = tanh(3 x a_(k-1) / 4): 9 a_4 and 3 a_4 and their derivatives.
inline std::vector<ControlFlowProgram> control_flow_programs() {
  return {{"loop with branches", loop_with_branches, {121.5f, 81}},
          {"loop in a loop", loop_in_a_loop, {86.037109375f, 355.78515625f, 4}},
          {"functions in branches", functions_in_branches, {3.375f, 6.75f, 7.59375f}},
          {"recursion", recursion, {5.0625f, 13.5f, 27}},
          {"matrices", matrices, {4.129082153303187f, 9.338249375454696f}},
          {"row times matrix", row_times_matrix, {1.376360717767729f, 3.112749791818232f}}};
}

// ---- in the raw form ----

/// i and v = first; while (asks(i, v)) {i, v} = body(i, v).
template <class Asks, class Body>
std::tuple<Output<std::int32_t>, Output<float>> raw_loop(const std::string& name, Asks asks, Body body,
                                                         Output<std::int32_t> first_i, Output<float> first_v) {
  namespace raw = dflow::frames;
  auto i = raw::merge({raw::enter(first_i, name)});
  auto v = raw::merge({raw::enter(first_v, name)});
  auto goes_on = raw::loop_cond(asks(i.value, v.value));
  auto [last_i, now_i] = raw::switch_on(i.value, goes_on);
  auto [last_v, now_v] = raw::switch_on(v.value, goes_on);
  auto [next_i, next_v] = body(now_i, now_v);
  raw::next_iteration(next_i, i);
  raw::next_iteration(next_v, v);
  return {raw::exit(last_i), raw::exit(last_v)};
}
template <Element E>
Output<E> raw_constant(Output<E> x, const std::string& frame) {
  return dflow::frames::enter(x, frame, {.is_constant = true});
}

/// `x` to the power `n` + 1.
inline Output<float> raw_power(const std::string& name, Output<float> x, Output<std::int32_t> n) {
  auto times = raw_constant(x, name);
  auto limit = raw_constant(n, name);
  return std::get<1>(raw_loop(
      name, [&](auto i, auto) { return i < limit; },
      [&](auto i, auto v) {
        return std::tuple{Output<std::int32_t>(i + 1), Output<float>(v * times)};
      },
      n - n, x));
}

inline ControlFlowResults raw_loop_in_a_loop(Graph& graph, Output<float> x, Output<std::int32_t> n) {
  auto x_outer = raw_constant(x, "outer");
  auto n_outer = raw_constant(n, "outer");
  auto [i, sum] = raw_loop(
      "outer", [&](auto i, auto) { return i < n_outer; },
      [&](auto i, auto sum) {
        auto i_inner = raw_constant(i, "inner");
        auto x_inner = raw_constant(x_outer, "inner");
        auto n_inner = raw_constant(n_outer, "inner");
        auto inner = std::get<1>(raw_loop(
            "inner", [&](auto j, auto) { return j < n_inner; },
            [&](auto j, auto v) {
              return std::tuple{Output<std::int32_t>(j + 1), Output<float>(v + pow(x_inner, cast<float>(i_inner * j)))};
            },
            i - i, sum));
        return std::tuple{Output<std::int32_t>(i + 1), inner};
      },
      constant(graph, 0), constant(graph, 0.0f));
  return {sum, cast<float>(i)};
}

inline ControlFlowResults raw_branch_in_a_loop(Graph& graph, Output<float> x, Output<std::int32_t>) {
  auto step = raw_constant(x, "f");
  auto [i, v] = raw_loop(
      "f", [&](auto, auto v) { return v < 50.0f; },
      [&](auto i, auto v) {
        auto is_small = v < 4.0f;
        auto [large, small] = frames::switch_on(v, is_small);
        auto by = std::get<1>(frames::switch_on(step, is_small));
        auto next = frames::merge({Output<float>(small + by), Output<float>(large * 3.0f)}).value;
        return std::tuple{Output<std::int32_t>(i + 1), next};
      },
      constant(graph, 0), x);
  return {v, cast<float>(i)};
}

inline ControlFlowResults raw_loop_in_a_branch(Graph&, Output<float> x, Output<std::int32_t> n) {
  const auto both = [&](auto is_on) {
    auto [off, on] = frames::switch_on(x, is_on);
    auto limit = std::get<1>(frames::switch_on(n, is_on));
    auto merged = frames::merge({Output<float>(off * 2.0f), raw_power("power", on, limit)});
    return std::tuple{merged.value, cast<float>(merged.index)};
  };
  auto [taken, one] = both(n > 3);
  auto [other, zero] = both(n > 4);
  return {taken, one, other, zero};
}

inline ControlFlowResults raw_branch_in_a_branch(Graph&, Output<float> x, Output<std::int32_t> n) {
  ControlFlowResults results;
  for (const float limit : {1.0f, 2.0f}) {
    for (const int other : {3, 4}) {
      auto below = x < limit;
      auto [no, yes] = frames::switch_on(x, below);
      auto more = std::get<0>(frames::switch_on(n, below)) > other;
      auto [less_x, more_x] = frames::switch_on(no, more);
      auto inner = frames::merge({Output<float>(less_x * 10.0f), Output<float>(more_x * 100.0f)});
      results.push_back(frames::merge({inner.value, Output<float>(yes + 0.25f)}).value);
    }
  }
  return results;
}

/// Closed forms: x^5; sums of powers, as above; 81 x and its five iterations; x^5 and 2 x with the taken side; 100 x,
/// 10 x, x + 1/4 twice.
inline std::vector<ControlFlowProgram> raw_control_flow_programs() {
  return {{"raw loop",
           [](Graph&, Output<float> x, Output<std::int32_t> n) { return ControlFlowResults{raw_power("power", x, n)}; },
           {7.59375f}},
          {"raw loop in a loop", raw_loop_in_a_loop, {86.037109375f, 4}},
          {"raw branch in a loop", raw_branch_in_a_loop, {121.5f, 5}},
          {"raw loop in a branch", raw_loop_in_a_branch, {7.59375f, 1, 3, 0}},
          {"raw branch in a branch", raw_branch_in_a_branch, {150, 15, 1.75f, 1.75f}}};
}

}  // namespace dflow::testing
