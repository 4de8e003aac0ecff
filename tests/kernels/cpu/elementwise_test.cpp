#include <dflow/kernels/cpu/elementwise/kernel.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <vector>

namespace df = dflow;

namespace {

struct Swish : df::ElementwiseOp<"Swish", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + exp(-x));
  }
};

struct Blend : df::ElementwiseOp<"Blend", df::TypeList<float, double, std::int32_t>> {
  template <class T>
  DFLOW_FN static T apply(T a, T b, T c) {
    return a + b * T(10) + c * T(100);
  }
};

struct WholeRoot : df::ElementwiseOp<"WholeRoot", df::TypeList<float>> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return sqrt(x);
  }
  template <class T>
  static const char* check(T x) {
    return x < T(0) ? "the root of a negative number" : nullptr;
  }
  static constexpr bool gradient_stops = true;
};

struct Larger : df::ElementwiseOp<"Larger", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return max(a, b);
  }
};

struct Smaller : df::ElementwiseOp<"Smaller", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return min(a, b);
  }
};

struct Magnitude : df::ElementwiseOp<"Magnitude", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return abs(x);
  }
};

const df::OpSet& ops_of_test() {
  static const df::OpSet table = df::standard_ops + df::ops<Swish, Blend, WholeRoot, Larger, Smaller, Magnitude>;
  return table;
}

df::SessionOptions on_threads(int threads) {
  df::SessionOptions options;
  options.ops = ops_of_test();
  options.num_threads = threads;
  return options;
}

template <class T>
df::Tensor<T> counting(const df::Shape& shape, int first = 1) {
  df::Tensor<T> tensor(shape);
  int next = first;
  for (T& x : tensor) x = static_cast<T>(next++ % 97);
  return tensor;
}

/// The element of `x` that stands at position `at` of a tensor of shape `shape`.
template <class T>
T broadcast_element(const df::Tensor<T>& x, const df::Shape& shape, std::int64_t at) {
  const auto steps = df::broadcast_strides(x.shape(), shape);
  std::int64_t offset = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    offset += at % shape.dim(d) * steps[static_cast<std::size_t>(d)];
    at /= shape.dim(d);
  }
  return x.data()[offset];
}

/// One run of a node's kernel on tensors that nobody else holds.
df::AnyTensor run_alone(const df::AnyOutput& y, df::KernelFactory make, std::vector<df::AnyTensor> slots,
                        std::uint64_t forwardable) {
  df::InlinePool pool;
  df::CpuState cpu;
  df::DeviceContext device;
  device.allocator = &df::default_cpu_allocator();
  device.pool = &pool;
  device.state = &cpu;
  std::vector<df::OutputInfo> infos;
  std::vector<df::SlotId> positions;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    infos.push_back({slots[i].dtype(), slots[i].shape()});
    positions.emplace_back(i);
  }
  const auto kernel = make({y.node(), infos, device});
  const auto count = static_cast<std::int32_t>(slots.size());
  slots.emplace_back();
  const df::KernelContext::Wiring wiring{&y.node(), positions.data(), count, df::SlotId(count), 1, forwardable};
  const df::StepContext step;
  df::KernelContext context(slots.data(), wiring, device, step);
  kernel->run(context);
  return slots.back();
}

}  // namespace

TEST_CASE("every pair of shapes that broadcasts is computed as by its definition") {
  const std::vector<std::pair<df::Shape, df::Shape>> pairs{
      {{}, {}},
      {{5}, {}},
      {{}, {4, 3}},
      {{1}, {7}},
      {{300}, {300}},
      {{300, 3}, {3}},
      {{3}, {300, 3}},
      {{300, 3}, {300, 1}},
      {{40, 70}, {70}},
      {{40, 70}, {40, 1}},
      {{40, 1}, {1, 70}},
      {{2, 3, 2}, {2, 1, 2}},
      {{2, 1, 3, 1}, {1, 2, 1, 2}},
      {{2, 1, 40}, {3, 1}},
      {{3, 1, 5, 1, 2}, {4, 1, 6, 1}},
      {{1, 1, 1}, {2, 2}},
      {{2000, 2}, {2}},
      {{0, 3}, {3}},
      {{}, {2, 0}},
      {{3, 500, 2}, {500, 2}},
      {{3, 500, 2}, {3, 1, 2}},
      {{400, 10, 1}, {10, 8}},    // short runs in several blocks, each block whole periods of the second operand
      {{50, 100, 1}, {100, 20}},  // a period longer than a block, which does not divide it
      {{100, 20}, {50, 100, 1}},
  };
  for (const auto& [a_shape, b_shape] : pairs) {
    CAPTURE(a_shape.to_string(), b_shape.to_string());
    df::Graph graph;
    const auto a = df::placeholder<float>(graph), b = df::placeholder<float>(graph);
    const auto difference = a - b;
    const auto is_greater = df::greater(a, b);
    const auto ta = counting<float>(a_shape), tb = counting<float>(b_shape, 13);
    df::Session session(graph, on_threads(1));
    const auto [y, g] = session.run({{a, ta}, {b, tb}}, difference, is_greater);
    const df::Shape shape = *df::broadcast_shapes(a_shape, b_shape);
    REQUIRE(y.shape() == shape);
    REQUIRE(g.shape() == shape);
    int wrong = 0;
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      const float left = broadcast_element(ta, shape, i), right = broadcast_element(tb, shape, i);
      wrong += y.data()[i] != left - right;
      wrong += g.data()[i] != (left > right);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("three inputs broadcast together") {
  df::Graph graph;
  const auto a = df::placeholder<std::int32_t>(graph), b = df::placeholder<std::int32_t>(graph),
             c = df::placeholder<std::int32_t>(graph);
  const auto y = df::apply<Blend>(a, b, c);
  df::Session session(graph, on_threads(1));
  const std::vector<std::vector<df::Shape>> cases{{{2, 3}, {3}, {}},
                                                  {{600, 1}, {1, 90}, {90}},
                                                  {{4, 1, 2}, {5, 1}, {1, 1, 1}},
                                                  {{50, 3}, {50, 3}, {50, 3}},
                                                  {{50, 100, 1}, {100, 20}, {20}},  // one period divides a block
                                                  {{}, {}, {}}};
  for (const auto& shapes : cases) {
    const auto ta = counting<std::int32_t>(shapes[0]), tb = counting<std::int32_t>(shapes[1], 5),
               tc = counting<std::int32_t>(shapes[2], 7);
    const auto result = session.run({{a, ta}, {b, tb}, {c, tc}}, y);
    const df::Shape shape = *df::broadcast_shapes(*df::broadcast_shapes(shapes[0], shapes[1]), shapes[2]);
    REQUIRE(result.shape() == shape);
    int wrong = 0;
    for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
      wrong += result.data()[i] != broadcast_element(ta, shape, i) + 10 * broadcast_element(tb, shape, i) +
                                       100 * broadcast_element(tc, shape, i);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("large tensors give the same on one thread and on several") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph), row = df::placeholder<float>(graph),
             column = df::placeholder<float>(graph);
  const auto y = df::apply<Swish>(x * row + column);
  const df::Tensor<float> tx = counting<float>({3000, 67}), tr = counting<float>({67}), tc = counting<float>({3000, 1});
  df::Session one(graph, on_threads(1)), several(graph, on_threads(4));
  CHECK(df::bitwise_equal(one.run({{x, tx}, {row, tr}, {column, tc}}, y),
                          several.run({{x, tx}, {row, tr}, {column, tc}}, y)));
}

TEST_CASE("an input that nobody else reads is overwritten, any other is not") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {2, 2}), b = df::placeholder<float>(graph, {2});
  const auto y = a + b;
  const df::KernelFactory make = ops_of_test().kernels().find("CPU", "Add")->make;
  REQUIRE(make != nullptr);
  const auto run = [&](std::uint64_t forwardable) {
    df::Tensor<float> ta({2, 2}, {1, 2, 3, 4});
    const void* held = ta.raw_data();
    std::vector<df::AnyTensor> slots;
    slots.push_back(std::move(ta).any());
    slots.push_back(df::Tensor<float>({2}, {10, 20}));
    const df::AnyTensor result = run_alone(y, make, std::move(slots), forwardable);
    CHECK(df::bitwise_equal(result, df::Tensor<float>({2, 2}, {11, 22, 13, 24})));
    return result.raw_data() == held;
  };
  CHECK(run(0b01));
  CHECK_FALSE(run(0b10));
  CHECK_FALSE(run(0));
}

TEST_CASE("an op may check its arguments") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto y = df::apply<WholeRoot>(x);
  df::Session session(graph, on_threads(1));
  CHECK(session.run({{x, 9.0f}}, y).scalar() == 3.0f);
  CHECK_THROWS_AS(session.run({{x, -9.0f}}, y), df::Error);
}

TEST_CASE("integer division has no undefined case") {
  df::Graph graph;
  const auto a = df::placeholder<std::int32_t>(graph), b = df::placeholder<std::int32_t>(graph);
  const auto quotient = a / b, remainder = a % b, power = df::pow(a, b);
  df::Session session(graph, on_threads(1));
  constexpr int lowest = std::numeric_limits<int>::lowest();
  CHECK(session.run({{a, lowest}, {b, -1}}, quotient).scalar() == lowest);
  CHECK(session.run({{a, lowest}, {b, -1}}, remainder).scalar() == 0);
  CHECK(session.run({{a, -7}, {b, 2}}, quotient).scalar() == -3);
  CHECK(session.run({{a, -7}, {b, 2}}, remainder).scalar() == -1);
  CHECK(session.run({{a, 3}, {b, 40}}, power).scalar() == static_cast<int>(12157665459056928801ull));
  for (const auto& [y, divisor] : {std::pair{quotient, 0}, std::pair{remainder, 0}, std::pair{power, -1}}) {
    try {
      session.run({{a, 5}, {b, divisor}}, y);
      FAIL("no error");
    } catch (const df::Error& error) {
      CHECK(error.status().code() == df::Code::invalid_argument);
      CHECK(std::string(error.what()).find(y.node().op->name) != std::string::npos);
    }
  }
}

TEST_CASE("shapes that turn out not to broadcast fail the step") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph), b = df::placeholder<float>(graph);
  const auto y = a + b;
  df::Session session(graph, on_threads(1));
  CHECK_THROWS_AS(session.run({{a, counting<float>({2, 3})}, {b, counting<float>({2})}}, y), df::Error);
  CHECK(session.run({{a, counting<float>({2, 3})}, {b, 1.0f}}, y).shape() == df::Shape{2, 3});
}

TEST_CASE("an op of one's own takes a variable, and what is not its element type does not compile") {
  df::Graph graph;
  const df::Variable<double> w(graph, df::Tensor<double>({2}, {-1, 2}), {.name = "w"});
  const auto y = df::apply<Swish>(w);
  static_assert(std::same_as<decltype(y), const df::Output<double>>);
  static_assert(df::Accepts<Swish, df::Variable<float>> && !df::Accepts<Swish, df::Variable<std::int32_t>>);
  df::Session session(graph, on_threads(1));
  session.run(w.initializer());
  const auto value = session.run(y);
  CHECK(value(0) == Catch::Approx(-1 / (1 + std::exp(1.0))));
  CHECK(value(1) == Catch::Approx(2 / (1 + std::exp(-2.0))));
}

TEMPLATE_TEST_CASE("max, min and abs of an op of one's own are those of the library's ops", "", float, double, df::Half,
                   df::BFloat16) {
  using T = TestType;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> numbers{-inf, -2, -0.0, 0.0, 1, inf, nan};
  const auto count = static_cast<std::int64_t>(numbers.size());
  df::Tensor<T> row({1, count});
  for (std::size_t i = 0; i < numbers.size(); ++i) row.span()[i] = static_cast<T>(numbers[i]);
  df::Graph graph;
  const auto a = df::placeholder<T>(graph), b = df::placeholder<T>(graph);
  df::Session session(graph, on_threads(1));
  const auto [larger, maximum, smaller, minimum, size, absolute] =
      session.run({{a, row}, {b, row.reshaped({count, 1})}}, df::apply<Larger>(a, b), df::maximum(a, b),
                  df::apply<Smaller>(a, b), df::minimum(a, b), df::apply<Magnitude>(a), df::abs(a));
  const auto same = [](const df::Tensor<T>& x, const df::Tensor<T>& y) {
    for (std::int64_t i = 0; i < x.num_elements(); ++i) {
      const auto p = static_cast<double>(x.data()[i]), q = static_cast<double>(y.data()[i]);
      if (!(std::isnan(p) && std::isnan(q)) && !(p == q && std::signbit(p) == std::signbit(q))) return false;
    }
    return x.shape() == y.shape();
  };
  CHECK(same(larger, maximum));
  CHECK(same(smaller, minimum));
  CHECK(same(size, absolute));
  CHECK_FALSE(std::signbit(static_cast<double>(size.data()[2])));
}

TEST_CASE("the gradient of an op follows from its expression, to second order") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {5});
  const auto y = df::apply<Swish>(x);
  const auto slope = df::gradients(y, x);
  const auto curvature = df::gradients(slope, x);
  df::Session session(graph, on_threads(1));
  const df::Tensor<double> at({5}, {-3, -0.5, 0, 0.75, 4});
  const auto [value, first, second] = session.run({{x, at}}, y, slope, curvature);
  for (int i = 0; i < 5; ++i) {
    const double t = at(i), s = 1 / (1 + std::exp(-t)), ds = s * (1 - s);
    CHECK(value(i) == Catch::Approx(t * s));
    CHECK(first(i) == Catch::Approx(s + t * ds));
    CHECK(second(i) == Catch::Approx(2 * ds + t * ds * (1 - 2 * s)));
  }
}

TEST_CASE("gradients are summed over the dimensions that were repeated") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3}), row = df::placeholder<float>(graph, {3}),
             scale = df::placeholder<float>(graph, {});
  const auto [dx, drow, dscale] = df::gradients(x * row + scale, x, row, scale);
  df::Session session(graph, on_threads(1));
  const auto [gx, grow, gscale] =
      session.run({{x, counting<float>({4, 3})}, {row, counting<float>({3})}, {scale, 2.0f}}, dx, drow, dscale);
  CHECK(df::bitwise_equal(gx, df::Tensor<float>({4, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3})));
  CHECK(df::bitwise_equal(grow, df::Tensor<float>({3}, {22, 26, 30})));
  CHECK(gscale.scalar() == 12);
}

TEST_CASE("sums to a shape and repeats to a shape") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto shape = df::placeholder<std::int32_t>(graph);
  const auto sum = df::sum_to_shape(x, shape), repeated = df::broadcast_to(x, shape);
  df::Session session(graph, on_threads(1));
  const auto sum_to = [&](const df::Shape& from, const std::vector<int>& to) {
    return session.run(
        {{x, df::Tensor<float>::full(from, 1)}, {shape, df::Tensor<std::int32_t>({static_cast<int>(to.size())}, to)}},
        sum);
  };
  CHECK(df::bitwise_equal(sum_to({2, 3, 4, 5}, {3, 1, 5}), df::Tensor<float>::full({3, 1, 5}, 8)));
  CHECK(df::bitwise_equal(sum_to({2, 3, 4}, {}), df::Tensor<float>::full({}, 24)));
  CHECK(df::bitwise_equal(sum_to({2, 3}, {2, 3}), df::Tensor<float>::full({2, 3}, 1)));
  CHECK(df::bitwise_equal(sum_to({0, 3}, {3}), df::Tensor<float>::full({3}, 0)));
  CHECK_THROWS_AS(sum_to({2, 3}, {2}), df::Error);
  const df::Tensor<std::int32_t> to({3}, {2, 2, 3});
  CHECK(df::bitwise_equal(session.run({{x, df::Tensor<float>({2, 1}, {5, 6})}, {shape, to}}, repeated),
                          df::Tensor<float>({2, 2, 3}, {5, 5, 5, 6, 6, 6, 5, 5, 5, 6, 6, 6})));
}

TEST_CASE("casting saturates, and what is not a number becomes 0") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto to_int = df::cast<std::int32_t>(x);
  const auto to_byte = df::cast<std::uint8_t>(x);
  const auto to_long = df::cast<std::int64_t>(x);
  df::Session session(graph, on_threads(1));
  const df::Tensor<float> values({5}, {3e9f, -3e9f, std::nanf(""), -1.75f, 255.5f});
  const auto [i, b, l] = session.run({{x, values}}, to_int, to_byte, to_long);
  CHECK(df::bitwise_equal(i, df::Tensor<std::int32_t>({5}, {std::numeric_limits<int>::max(),
                                                            std::numeric_limits<int>::lowest(), 0, -1, 255})));
  CHECK(df::bitwise_equal(b, df::Tensor<std::uint8_t>({5}, {255, 0, 0, 0, 255})));
  CHECK(df::bitwise_equal(l, df::Tensor<std::int64_t>({5}, {3'000'000'000, -3'000'000'000, 0, -1, 255})));
}

TEST_CASE("every level of the processor gives the same arithmetic") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph), b = df::placeholder<float>(graph);
  const auto h = df::cast<df::Half>(a), k = df::cast<df::Half>(b);
  const auto y = df::maximum(a * b, b - a) / (b + 1.0f);
  const auto z = h * k - k;
  const df::Tensor<float> ta = counting<float>({1001}), tb = counting<float>({1001}, 40);
  std::vector<df::AnyTensor> singles, halves;
  for (const df::CpuLevel level : {df::CpuLevel::baseline, df::CpuLevel::x86_64_v3, df::CpuLevel::x86_64_v4}) {
    df::SessionOptions options = on_threads(1);
    options.devices = df::cpu_devices(1, {.kernels = {.max_level = level}});
    df::Session session(graph, options);
    const auto [single, half] = session.run({{a, ta}, {b, tb}}, y, z);
    singles.push_back(single);
    halves.push_back(half);
  }
  CHECK(df::bitwise_equal(singles[0], singles[1]));
  CHECK(df::bitwise_equal(singles[0], singles[2]));
  CHECK(df::bitwise_equal(halves[0], halves[1]));
  CHECK(df::bitwise_equal(halves[0], halves[2]));
}
