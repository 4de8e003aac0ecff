// Reductions and moves of elements on a GPU beside the CPU's results, in sizes that take each of their ways, and a
// model that trains on them.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

template <class T>
Tensor<T> random_elements(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  Tensor<T> x(shape);
  const int lowest = std::is_unsigned_v<T> ? 0 : -8;
  for (T& each : x) each = static_cast<T>(static_cast<float>(static_cast<int>(bits() % 17) + lowest));
  return x;
}

/// The results of a function of one edge on the GPU and on the CPU.
template <class T, class F>
void compare_reduction(const Shape& shape, const F& f, double tolerance) {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = std::size_t{1} << 26});
  {
    Graph graph;
    const auto x = placeholder<T>(graph, PartialShape::unknown());
    const auto on = [&](const char* device) {
      const auto there = graph.device(device);
      return f(x);
    };
    const auto of_gpu = on("/gpu:0"), of_cpu = on("/cpu:0");
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const auto [got, wanted] = session.run({{x, random_elements<T>(shape, 7)}}, of_gpu, of_cpu);
    REQUIRE(got.shape() == wanted.shape());
    int wrong = 0;
    for (std::int64_t i = 0; i < got.num_elements(); ++i) {
      const auto a = static_cast<double>(got.data()[i]), b = static_cast<double>(wanted.data()[i]);
      const bool is_same = a == b || (a != a && b != b) || std::abs(a - b) <= tolerance * std::abs(b);
      wrong += is_same ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
  check_end(*driver);
}

template <class T>
void compare_reductions(const Shape& shape, const IndexList& axes, double tolerance) {
  INFO(dflow::dtype_name(dtype_of<T>) << shape.to_string());
  const auto of = [&](const auto& reduce) {
    compare_reduction<T>(
        shape, [&](const auto& x) { return reduce(x, axes, ReduceAttrs{}); }, tolerance);
  };
  of([](auto... args) { return reduce_sum(args...); });
  of([](auto... args) { return reduce_mean(args...); });
  of([](auto... args) { return reduce_max(args...); });
  of([](auto... args) { return reduce_min(args...); });
}

}  // namespace

TEMPLATE_TEST_CASE("reductions on a GPU give what they give on the CPU, by threads and by blocks", "[cuda]", float,
                   Half, std::int16_t, std::uint8_t) {
  const double tolerance = std::is_integral_v<TestType> ? 0 : 1e-3;
  compare_reductions<TestType>({300, 3}, {1}, tolerance);    // a thread for each
  compare_reductions<TestType>({3, 1000}, {1}, tolerance);   // a block for each
  compare_reductions<TestType>({70, 5000}, {0}, tolerance);  // threads that read side by side
  compare_reductions<TestType>({2, 3, 1, 4, 5, 2, 3, 2}, {1, 4, -1}, tolerance);
  compare_reductions<TestType>({1, 1}, {0, 1}, tolerance);
  compare_reductions<TestType>({0, 3}, {0}, tolerance);
  compare_reductions<TestType>({5000}, {0}, tolerance);
}

TEST_CASE("positions of extremes on a GPU pass over what is not a number", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {2, 4});
    Output<std::int64_t> highest, lowest;
    {
      const auto on = graph.device("/gpu:0");
      highest = argmax(x, 1);
      lowest = argmin(x, 1);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto [high, low] =
        session.run({{x, Tensor<float>({2, 4}, {nan, 1, 3, 3, nan, nan, nan, nan})}}, highest, lowest);
    CHECK((high.data()[0] == 2 && low.data()[0] == 1));
    CHECK((high.data()[1] == 0 && low.data()[1] == 0));
  }
  check_end(*driver);
}

TEST_CASE("forty tensors are added on a GPU, in the buffer of one of them", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {5});
    std::vector<Output<float>> all;
    Output<float> sum;
    {
      const auto on = graph.device("/gpu:0");
      for (int i = 0; i < 40; ++i) all.push_back(x * static_cast<float>(i));
      sum = add_n(all);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver), .passes = PassOptions::none()});
    for (const float each : session.run({{x, Tensor<float>::full({5}, 2.0f)}}, sum)) CHECK(each == 2 * 780);
  }
  check_end(*driver);
}

TEMPLATE_TEST_CASE("elements of every size are moved on a GPU as on the CPU", "[cuda]", std::uint8_t, Half, float,
                   double) {
  const Shape shape{3, 4, 1, 5};
  const auto same = [&](const auto& f) { compare_reduction<TestType>(shape, f, 0); };
  same([](const auto& x) { return transpose(x, {3, 0, 2, 1}); });
  same([](const auto& x) { return slice(x, {1, 0, 0, 2}, {2, -1, 1, 2}); });
  same([](const auto& x) { return pad(x, {{1, 0}, {0, 2}, {1, 1}, {3, 0}}); });
  same([](const auto& x) { return concat(1, {x, x, x}); });
  same([](const auto& x) { return concat(-1, {x, slice(x, {0, 0, 0, 0}, {-1, -1, -1, 2})}); });
  same([](const auto& x) { return pack(std::vector{x, x}, {.axis = 2}); });
  same([](const auto& x) { return split(x, 2, 1)[1]; });
  same([](const auto& x) { return unpack(x, 5, 3)[3]; });
  same([](const auto& x) { return zeros_like(x); });
  same([](const auto& x) { return ones_like(x); });
  same([](const auto& x) { return reshape(x, {5, -1}); });
}

TEST_CASE("a perceptron trains on a GPU as it does on the CPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = std::size_t{1} << 26});
  const auto losses_on = [&](const char* device) {
    Graph graph({.seed = 5});
    const auto x = placeholder<float>(graph, {dynamic, 6});
    const auto y = placeholder<float>(graph, {dynamic, 2});
    Output<float> loss;
    Operation step;
    {
      const auto on = graph.device(device);
      const auto hidden = dense(x, 16, {.activation = Activation::relu});
      loss = reduce_mean(square(dense(hidden, 2) - y));
      step = train::Adam(0.01).minimize(loss);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver), .soft_placement = true});
    session.run(initialize_variables(graph));
    std::vector<double> losses;
    for (int i = 0; i < 12; ++i) {
      const auto batch = static_cast<std::uint64_t>(i % 3);
      const Tensor<float> in = random_elements<float>({8, 6}, batch), out = random_elements<float>({8, 2}, 100 + batch);
      losses.push_back(static_cast<double>(session.run({{x, in}, {y, out}}, loss).scalar()));
      session.run({{x, in}, {y, out}}, step);
    }
    return losses;
  };
  const std::vector<double> on_gpu = losses_on("/gpu:0"), on_cpu = losses_on("/cpu:0");
  for (std::size_t i = 0; i < on_cpu.size(); ++i) CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(1e-4));
  CHECK(on_gpu.back() < on_gpu.front());
  CHECK(driver->launches().count("joint adam") == 1);
  CHECK(driver->num_products() > 0);
  check_end(*driver);
}

TEMPLATE_TEST_CASE("a sum of many 16-bit tensors on a GPU is rounded once, as on the CPU", "[cuda]", Half, BFloat16) {
  for (const int half_of_them : {8, 9, 16, 20, 33}) {
    INFO(2 * half_of_them << " tensors");
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      const auto x = placeholder<TestType>(graph, {5});
      const auto sum_on = [&](const char* device) {
        const auto there = graph.device(device);
        // The sum of the first half alone is too large for a 16-bit float, and leaves nothing of a small number.
        std::vector<Output<TestType>> all(static_cast<std::size_t>(half_of_them), x);
        for (int i = 0; i < half_of_them; ++i) all.push_back(-x);
        all.push_back(constant(graph, Tensor<TestType>::full({5}, static_cast<TestType>(0.25f))));
        return add_n(all);
      };
      const auto on_gpu = sum_on("/gpu:0"), on_cpu = sum_on("/cpu:0");
      Session session(graph, {.devices = gpus_and_cpu(driver), .passes = PassOptions::none()});
      const auto [got, wanted] =
          session.run({{x, Tensor<TestType>::full({5}, static_cast<TestType>(8000.0f))}}, on_gpu, on_cpu);
      for (int i = 0; i < 5; ++i) {
        CHECK(static_cast<float>(got(i)) == 0.25f);
        CHECK(static_cast<float>(wanted(i)) == 0.25f);
      }
    }
    check_end(*driver);
  }
}

TEMPLATE_TEST_CASE("derivatives of products on a GPU are those on the CPU, by threads and by blocks", "[cuda]", float,
                   double, Half, BFloat16) {
  const double tolerance = sizeof(TestType) == 2 ? 1e-2 : 1e-5;
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, IndexList>>{{{3, 5}, {1}},
                                                                            {{300, 5}, {0}},
                                                                            {{2, 257, 3}, {1}},
                                                                            {{7, 40}, {0, 1}},
                                                                            {{4, 64}, {1}},
                                                                            {{2, 3}, {}},
                                                                            {{0, 3}, {0}}}) {
    INFO(dflow::dtype_name(dtype_of<TestType>) << shape.to_string());
    const auto factors = [](const Output<TestType>& x) {
      // 1, -1 and a few zeros: products are exact.
      return select(x > TestType(6), ones_like(x) * TestType(0),
                    select(x > TestType(0), ones_like(x), ones_like(x) * TestType(-1)));
    };
    const auto derivative = [&, of = axes](const Output<TestType>& x) {
      const auto v = factors(x);
      return gradients(reduce_sum(reduce_prod(v, of, ReduceAttrs{})), v);
    };
    const auto second = [&, of = axes](const Output<TestType>& x) {
      const auto v = factors(x);
      const auto first = gradients(reduce_sum(reduce_prod(v, of, ReduceAttrs{}) * TestType(2)), v);
      return gradients(reduce_sum(square(first) + first * v), v);
    };
    compare_reduction<TestType>(shape, derivative, tolerance);
    compare_reduction<TestType>(shape, second, tolerance);
  }
}
