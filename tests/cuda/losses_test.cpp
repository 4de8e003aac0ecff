// Losses, casts and gathers on a GPU beside the CPU's results, and a classifier that trains there.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

Tensor<float> random_logits(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal(0, 3);
  Tensor<float> x(shape);
  for (float& each : x) each = normal(bits);
  return x;
}

template <class T>
Output<T> beside(const AnyOutput& x, const Tensor<T>& value) {
  return Output<T>(dflow::detail::any_constant(*x.graph(), value, {}));
}

/// Compares a function on both devices: its values and the gradient by x of their weighted sum.
void compare_rows(const Shape& shape, const std::function<Output<float>(const Output<float>&)>& f) {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, shape);
    const auto on = [&](const char* device) {
      const auto there = graph.device(device);
      const auto y = f(x);
      return std::tuple{y, gradients(reduce_sum(y * y), x)};
    };
    const auto [y_gpu, dx_gpu] = on("/gpu:0");
    const auto [y_cpu, dx_cpu] = on("/cpu:0");
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const auto [a, b, c, d] = session.run({{x, random_logits(shape, 3)}}, y_gpu, y_cpu, dx_gpu, dx_cpu);
    for (std::int64_t i = 0; i < a.num_elements(); ++i) {
      CHECK(a.data()[i] == Approx(b.data()[i]).epsilon(1e-5).margin(1e-6));
    }
    for (std::int64_t i = 0; i < c.num_elements(); ++i) {
      CHECK(c.data()[i] == Approx(d.data()[i]).epsilon(1e-4).margin(1e-5));
    }
  }
  check_end(*driver);
}

}  // namespace

TEST_CASE("softmax and its losses on a GPU are those of the CPU, with gradients, for rows of any length", "[cuda]") {
  for (const std::int64_t columns : {1, 2, 255, 256, 257, 700}) {
    INFO(columns << " columns");
    const Shape shape{3, columns};
    Tensor<float> given(shape);
    for (std::int64_t i = 0; i < given.num_elements(); ++i) {
      given.data()[i] = i % 3 == 0 ? 0 : 1.0f / static_cast<float>(columns);
    }
    const Tensor<int> classes({3}, {0, static_cast<int>(columns) - 1, static_cast<int>(columns / 2)});
    compare_rows(shape, [](const auto& x) { return softmax(x); });
    compare_rows(shape, [](const auto& x) { return log_softmax(x); });
    compare_rows(shape, [&](const auto& x) { return softmax_cross_entropy(x, beside(x, given)); });
    compare_rows(shape, [&](const auto& x) { return sparse_softmax_cross_entropy(x, beside(x, classes)); });
  }
}

TEST_CASE("cross entropies on a GPU are those of the CPU for one row, and for rows of any rank", "[cuda]") {
  for (const Shape& rows : {Shape{}, Shape{1}, Shape{2, 3}, Shape{0, 2}}) {
    INFO("rows " << rows.to_string());
    const Shape shape = rows.concatenated({4});
    const Tensor<float> given = random_logits(shape, 5);
    Tensor<int> classes(rows);
    for (std::int64_t i = 0; i < classes.num_elements(); ++i) classes.data()[i] = static_cast<int>(i % 4);
    compare_rows(shape, [&](const auto& x) { return softmax_cross_entropy(x, beside(x, given)); });
    compare_rows(shape, [&](const auto& x) { return sparse_softmax_cross_entropy(x, beside(x, classes)); });
  }
  for (const std::int64_t columns : {0, 1, 3}) {
    INFO(columns << " columns");
    const Tensor<float> given = random_logits({3, columns}, 6);
    for (const int output : {0, 1}) {
      compare_rows({3, columns}, [&](const auto& x) {
        return Output<float>(dflow::build<SoftmaxCrossEntropyWithLogits>({x, beside(x, given)}).output(output));
      });
    }
  }
}

TEST_CASE("a label or an index that is out of range is an error of the step that says which", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto labels = placeholder<int>(graph, {2});
    const auto ids = placeholder<std::int64_t>(graph, {2, 2});
    Output<float> loss, rows;
    {
      const auto on = graph.device("/gpu:0");
      loss = sparse_softmax_cross_entropy(constant(graph, random_logits({2, 3}, 1)), labels);
      rows = gather(constant(graph, random_logits({4, 5}, 2)), ids);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    CHECK_THROWS_WITH(session.run({{labels, Tensor<int>({2}, {1, 3})}}, loss),
                      Catch::Matchers::Contains("labels[1] = 3 is outside [0, 3)"));
    CHECK_THROWS_WITH(session.run({{labels, Tensor<int>({2}, {-1, 2})}}, loss),
                      Catch::Matchers::Contains("labels[0] = -1 is outside [0, 3)"));
    CHECK_THROWS_WITH(session.run({{ids, Tensor<std::int64_t>({2, 2}, {0, 3, 7, 1})}}, rows),
                      Catch::Matchers::Contains("indices[1,0] = 7 is outside [0, 4), the rows of params [4,5]"));
    const Tensor<float> picked = session.run({{ids, Tensor<std::int64_t>({2, 2}, {0, 3, 2, 1})}}, rows);
    const Tensor<float> all = random_logits({4, 5}, 2);
    for (int i = 0; i < 20; ++i) CHECK(picked.data()[i] == all.data()[std::vector{0, 3, 2, 1}[i / 5] * 5 + i % 5]);
  }
  check_end(*driver);
}

TEST_CASE("casts on a GPU stop at the bounds of an integer, and take what is not a number for 0", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {5});
    Output<std::int8_t> small;
    Output<std::int64_t> large;
    Output<bool> flags;
    Output<Half> half;
    {
      const auto on = graph.device("/gpu:0");
      small = cast<std::int8_t>(x);
      large = cast<std::int64_t>(x);
      flags = cast<bool>(x);
      half = cast<Half>(x);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto [s, l, f, h] =
        session.run({{x, Tensor<float>({5}, {1e20f, -300, nan, 0, 1.75f})}}, small, large, flags, half);
    CHECK(std::ranges::equal(s.span(), std::vector<std::int8_t>{127, -128, 0, 0, 1}));
    CHECK(std::ranges::equal(l.span(),
                             std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), -300, 0, 0, 1}));
    CHECK(std::ranges::equal(f.span(), std::vector<bool>{true, true, true, false, true}));
    CHECK(static_cast<float>(h.data()[4]) == 1.75f);
  }
  check_end(*driver);
}

TEST_CASE("a classifier trains on a GPU as it does on the CPU, with nothing of it on the CPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = std::size_t{1} << 26});
  const auto losses_on = [&](const char* device) {
    Graph graph({.seed = 5});
    const auto x = placeholder<float>(graph, {dynamic, 6});
    const auto y = placeholder<int>(graph, {dynamic});
    Output<float> loss;
    Operation step;
    {
      const auto on = graph.device(device);
      const auto weights = [&](const Shape& shape, std::uint64_t seed) {
        return Variable<float>(graph, constant(graph, random_logits(shape, seed)) * 0.1f);
      };
      const auto hidden = relu(bias_add(matmul(x, weights({6, 16}, 1)), weights({16}, 2)));
      const auto logits = bias_add(matmul(hidden, weights({16, 3}, 3)), weights({3}, 4));
      loss = reduce_mean(sparse_softmax_cross_entropy(logits, y));
      step = train::Momentum(0.1, 0.9).minimize(loss);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run(initialize_variables(graph));
    std::vector<double> losses;
    for (int i = 0; i < 12; ++i) {
      const auto batch = static_cast<std::uint64_t>(i % 3);
      Tensor<int> classes(Shape{8});
      for (int k = 0; k < 8; ++k) classes.data()[k] = (k + static_cast<int>(batch)) % 3;
      const Tensor<float> in = random_logits({8, 6}, batch);
      losses.push_back(static_cast<double>(session.run({{x, in}, {y, classes}}, loss).scalar()));
      session.run({{x, in}, {y, classes}}, step);
    }
    return losses;
  };
  const std::vector<double> on_gpu = losses_on("/gpu:0"), on_cpu = losses_on("/cpu:0");
  for (std::size_t i = 0; i < on_cpu.size(); ++i) CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(1e-4));
  CHECK(on_gpu.back() < on_gpu.front());
  CHECK(driver->num_products() > 0);
  check_end(*driver);
}
