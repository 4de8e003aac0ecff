// Expected values of arrays and stacks of tensors from TensorFlow's tests: python/kernel_tests/tensor_array_ops_test.py
// and stack_ops_test.py, version 0.8. Only numbers are taken from them. docs/departures.md lists the differences of an
// array that is a value: the later of two writes holds, and nothing is closed.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

using Floats = std::vector<float>;

df::Output<float> given(df::Graph& graph, const df::Shape& shape, const Floats& of) {
  return df::identity(df::constant(graph, df::Tensor<float>(shape, std::span<const float>(of))));
}

/// The gradients of several ys, weighted, by several xs.
std::vector<df::AnyOutput> weighted_gradients(std::vector<std::pair<df::AnyOutput, df::AnyOutput>> weighted,
                                              std::vector<df::AnyOutput> xs) {
  std::vector<df::AnyOutput> ys, weights, dense;
  for (const auto& [y, weight] : weighted) {
    ys.push_back(y);
    weights.push_back(weight);
  }
  const std::vector<df::Gradient> all = df::gradients(ys, xs, {.grad_ys = weights});
  for (std::size_t i = 0; i < xs.size(); ++i) dense.push_back(df::densify(all[i], xs[i]));
  return dense;
}

/// Checks the value of each edge, as functions and as frames.
void check_arrays(const df::Graph& graph, const std::vector<std::pair<df::AnyOutput, Floats>>& wanted) {
  for (const bool lowers : {false, true}) {
    df::PassOptions passes;
    passes.lower_control_flow = lowers;
    df::Session session(graph, {.passes = passes});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      INFO("result " << i << ", lowered: " << lowers);
      std::vector<df::AnyTensor> result(1);
      session.run_erased({}, nullptr, {}, {&wanted[i].first, 1}, {}, result);
      const auto got = result[0].span<float>();
      CHECK(Floats(got.begin(), got.end()) == wanted[i].second);
    }
  }
}

}  // namespace

TEST_CASE("arrays give what TensorFlow's tests publish") {
  df::Graph graph;
  const auto at = [&](int i) { return df::constant(graph, i); };
  const auto number = [&](float of) { return given(graph, df::Shape{}, {of}); };
  std::vector<std::pair<df::AnyOutput, Floats>> wanted;
  // WriteRead: elements of several shapes.
  auto array = df::TensorArray<float>(graph, 3)
                   .write(at(0), given(graph, {1, 2}, {4, 5}))
                   .write(at(1), given(graph, {1, 1}, {1}))
                   .write(at(2), number(-3));
  wanted.insert(wanted.end(), {{array.read(at(0)), {4, 5}}, {array.read(at(1)), {1}}, {array.read(at(2)), {-3}}});
  // WritePack
  auto rows = df::TensorArray<float>(graph, 3)
                  .write(at(0), given(graph, {1, 2}, {4, 5}))
                  .write(at(1), given(graph, {1, 2}, {6, 7}))
                  .write(at(2), given(graph, {1, 2}, {8, 9}));
  wanted.emplace_back(rows.stack(), Floats{4, 5, 6, 7, 8, 9});
  // EmptyTensorArrayPack
  auto empty = df::TensorArray<float>(graph, 3);
  for (int i = 0; i < 3; ++i) empty = empty.write(at(i), df::fill<float>(graph, {0, 1}, 0.0f));
  wanted.emplace_back(df::cast<float>(df::shape(empty.stack())), Floats{3, 0, 1});
  // UnpackRead
  auto scalars = df::TensorArray<float>::unstack(given(graph, {3}, {1, 2, 3}));
  auto vectors = df::TensorArray<float>::unstack(given(graph, {3, 2}, {1, -1, 2, -2, 3, -3}));
  auto nothing = df::TensorArray<float>::unstack(df::fill<float>(graph, {3, 0}, 0.0f));
  wanted.insert(wanted.end(), {{scalars.read(at(2)), {3}}, {vectors.read(at(1)), {2, -2}}, {nothing.read(at(2)), {}}});
  // MultiTensorArray, SizeTensorArray
  auto first = df::TensorArray<float>(graph, 1).write(at(0), number(4)).read(at(0));
  auto second = df::TensorArray<float>(graph, 1).write(at(0), number(5)).read(at(0));
  wanted.emplace_back(first + second, Floats{9});
  wanted.emplace_back(df::cast<float>(df::TensorArray<float>(graph, 3).size()), Floats{3});
  check_arrays(graph, wanted);
}

TEST_CASE("gradients of arrays are what TensorFlow's tests publish") {
  df::Graph graph;
  const auto at = [&](int i) { return df::constant(graph, i); };
  std::vector<std::pair<df::AnyOutput, Floats>> wanted;
  const auto expect = [&](const std::vector<df::AnyOutput>& slopes, const std::vector<Floats>& values) {
    REQUIRE(slopes.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) wanted.emplace_back(slopes[i], values[i]);
  };
  {  // GradientWriteRead
    auto x0 = given(graph, {1, 2}, {4, 5}), x1 = given(graph, df::Shape{}, {3});
    auto array = df::TensorArray<float>(graph, 3).write(at(0), x0).write(at(1), x1);
    auto r0 = array.read(at(0)), again = array.read(at(0)), r1 = array.read(at(1));
    auto w0 = given(graph, {1, 2}, {2, 3}), w1 = given(graph, {1, 2}, {1, -1}), w2 = given(graph, df::Shape{}, {-2});
    expect(weighted_gradients({{r0, w0}}, {x0}), {{2, 3}});
    expect(weighted_gradients({{r0, w0}, {again, w1}}, {x0}), {{3, 2}});
    expect(weighted_gradients({{r1, w2}}, {x1}), {{-2}});
    expect(weighted_gradients({{r0, w0}, {again, w1}, {r1, w2}}, {x0, x1}), {{3, 2}, {-2}});
  }
  {  // GradientWritePackConcatAndRead
    auto x0 = given(graph, {2}, {-1, 1}), x1 = given(graph, {2}, {-10, 10});
    auto array = df::TensorArray<float>(graph, 2).write(at(0), x0).write(at(1), x1);
    expect(weighted_gradients({{array.stack(), given(graph, {2, 2}, {2, 3, 4, 5})},
                               {array.read(at(0)), given(graph, {2}, {-0.5f, 1.5f})},
                               {df::reshape(array.stack(), {4}), given(graph, {4}, {20, 30, 40, 50})}},
                              {x0, x1}),
           {{21.5f, 34.5f}, {44, 55}});
  }
  {  // GradientUnpackRead
    auto x = given(graph, {2, 2}, {1, -1, 10, -10});
    auto array = df::TensorArray<float>::unstack(x);
    expect(weighted_gradients({{array.read(at(0)), given(graph, {2}, {2, 3})},
                               {array.read(at(0)), given(graph, {2}, {-1.5f, 1.5f})},
                               {array.read(at(1)), given(graph, {2}, {4, 5})}},
                              {x}),
           {{0.5f, 4.5f, 4, 5}});
  }
  {  // WhileLoopWritePackGradients
    Floats upwards, downwards, hundreds;
    for (int i = 0; i < 15; ++i) upwards.push_back(static_cast<float>(i));
    for (int i = 0; i < 15; ++i) downwards.push_back(static_cast<float>(-i));
    for (int i = 100; i < 105; ++i) hundreds.push_back(static_cast<float>(i));
    auto rows = given(graph, {3, 5}, upwards), state = given(graph, {5}, {1, 1, 1, 1, 1});
    auto var = given(graph, {5}, hundreds);
    auto written = std::get<1>(
        df::while_loop([](auto i, auto, auto) { return i < 3; },
                       [&](auto i, auto array, auto state) {
                         const df::Output<float> row = df::gather(rows, i);
                         return std::tuple{i + 1, array.write(i, row + var + state), df::Output<float>(state + row)};
                       },
                       std::tuple{at(0), df::TensorArray<float>(graph, 3), state}, {.parallel_iterations = 3}));
    wanted.emplace_back(written.stack(),
                        Floats{101, 103, 105, 107, 109, 106, 109, 112, 115, 118, 116, 120, 124, 128, 132});
    expect(weighted_gradients({{written.stack(), given(graph, {3, 5}, downwards)}}, {rows, var, state}),
           {{-15, -18, -21, -24, -27, -15, -17, -19, -21, -23, -10, -11, -12, -13, -14},
            {-15, -18, -21, -24, -27},
            {-15, -18, -21, -24, -27}});
  }
  {  // SumOfTwoReadVariablesWithoutRepeatGrad
    auto a = given(graph, {3}, {1, 2, 3}), b = given(graph, {3}, {4, 5, 6}), g = given(graph, {3}, {-1, -2, -3});
    auto array = df::TensorArray<float>(graph, 2).write(at(0), a).write(at(1), b);
    auto c = array.read(at(0)) + array.read(at(1));
    expect(weighted_gradients({{c, g}}, {a}), {{-1, -2, -3}});
    expect(weighted_gradients({{c, g}}, {b}), {{-1, -2, -3}});
    expect(weighted_gradients({{c, g}}, {a, b}), {{-1, -2, -3}, {-1, -2, -3}});
  }
  check_arrays(graph, wanted);
}

TEST_CASE("of two writes to one place of an array the later holds, and has the gradient") {
  df::Graph graph;
  auto a = given(graph, df::Shape{}, {3}), b = given(graph, df::Shape{}, {4});
  auto two = df::constant(graph, 2);
  auto array = df::TensorArray<float>(graph, 3, df::Shape{}).write(two, a).write(two, b);
  auto read = array.read(two);
  auto [da, db] = df::gradients(read * 5.0f, a, b);
  check_arrays(graph, {{read, {4}}, {da, {0}}, {db, {5}}, {array.stack(), {0, 0, 4}}});
}

TEST_CASE("stacks give what TensorFlow's tests publish") {
  df::Graph graph;
  // StackPushPop, MultiStack
  auto pair = df::TensorStack<float>(graph).push(given(graph, {1, 2}, {4, 5})).pop();
  auto four = df::TensorStack<float>(graph).push(given(graph, df::Shape{}, {4})).pop();
  auto five = df::TensorStack<float>(graph).push(given(graph, df::Shape{}, {5})).pop();
  // StackWhileSwap: ten times 2,000 ones.
  auto [i, pushed] = df::while_loop([](auto i, auto) { return i < 10; },
                                    [&](auto i, auto stack) {
                                      return std::tuple{i + 1, stack.push(df::fill<float>(graph, {2000}, 1.0f))};
                                    },
                                    std::tuple{df::constant(graph, 0), df::TensorStack<float>(graph, {2000})});
  auto sum = std::get<2>(df::while_loop([](auto i, auto, auto) { return i > 0; },
                                        [](auto i, auto stack, auto sum) {
                                          auto [rest, top] = stack.pop();
                                          return std::tuple{i - 1, rest, df::Output<float>(sum + top)};
                                        },
                                        std::tuple{i, pushed, df::fill<float>(graph, {2000}, 0.0f)}));
  check_arrays(graph, {{pair.second, {4, 5}}, {four.second + five.second, {9}}, {sum, Floats(2000, 10.0f)}});
}
