// Rows of variables that are updated in a GPU's memory, and rows that are added up there, beside the CPU's.
#include "cuda/gpu_that_is_none.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

template <class T>
std::vector<double> numbers(const Tensor<T>& tensor) {
  std::vector<double> values;
  for (const T& each : tensor) values.push_back(static_cast<double>(each));
  return values;
}

template <class T>
Tensor<T> small_numbers(const Shape& shape, std::mt19937& random, int first, int last) {
  Tensor<T> tensor(shape);
  for (T& each : tensor) {
    each = static_cast<T>(static_cast<float>(first + static_cast<int>(random() % static_cast<unsigned>(last - first))));
  }
  return tensor;
}

/// The value of a variable [7, 3] after each way to update its rows, with indices that repeat.
template <class T, class Index>
std::vector<std::vector<double>> scattered_on(const std::string& device,
                                              const std::vector<std::shared_ptr<Device>>& devices) {
  Graph graph;
  const auto ids = placeholder<Index>(graph, {2, 10});
  const auto updates = placeholder<T>(graph, {2, 10, 3}), one = placeholder<T>(graph, {});
  std::vector<Operation> steps;
  Operation initialize;
  Output<T> now;
  {
    const auto on = graph.device(device);
    Tensor<T> first({7, 3});
    for (int i = 0; i < 21; ++i) first.data()[i] = static_cast<T>(static_cast<float>(i + 1));
    const Variable<T> w(graph, constant(graph, first), {.name = "w"});
    steps = {w.scatter_add(ids, updates),    w.scatter_sub(ids, updates), w.scatter_mul(ids, updates),
             w.scatter_div(ids, updates),    w.scatter_min(ids, updates), w.scatter_max(ids, updates),
             w.scatter_update(ids, updates), w.scatter_add(ids, one)};
    initialize = initialize_variables(graph);
    now = w;
  }
  Session session(graph, {.devices = devices, .passes = PassOptions::none()});
  std::vector<std::vector<double>> all;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    session.run(initialize);
    std::mt19937 random(static_cast<unsigned>(k));
    for (int run = 0; run < 3; ++run) {
      session.run({{ids, small_numbers<Index>({2, 10}, random, 0, 7)},
                   {updates, small_numbers<T>({2, 10, 3}, random, 1, 4)},
                   {one, static_cast<T>(2.0f)}},
                  steps[k]);
      all.push_back(numbers(session.run(now)));
    }
  }
  return all;
}

template <class T, class Index>
void compare_scatters() {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = sizeof(T) + sizeof(Index)});
  const auto got = scattered_on<T, Index>("/gpu:0", gpus_and_cpu(driver)),
             want = scattered_on<T, Index>("/cpu:0", gpus_and_cpu(driver));
  for (std::size_t k = 0; k < want.size(); ++k) {
    INFO("way " << k / 3 << ", run " << k % 3);
    CHECK(got[k] == want[k]);
  }
  CHECK(driver->num_sorts() == 24);
  check_end(*driver);
}

/// The value of an embedding [11, 4] after steps of an optimizer that sees some of its rows.
template <class T>
std::vector<double> embedding_on(const std::string& device, const std::vector<std::shared_ptr<Device>>& devices,
                                 const std::function<std::unique_ptr<train::Optimizer>()>& make_optimizer) {
  Graph graph;
  const auto ids = placeholder<std::int64_t>(graph, {dynamic});
  Operation step, initialize;
  Output<T> now;
  {
    const auto on = graph.device(device);
    std::mt19937 random(3);
    const Variable<T> w(graph, constant(graph, small_numbers<T>({11, 4}, random, -3, 4)), {.name = "w"});
    step = make_optimizer()->minimize(reduce_sum(square(gather(Output<T>(w), ids) - T(0.5f))));
    initialize = initialize_variables(graph);
    now = w;
  }
  Session session(graph, {.devices = devices});
  session.run(initialize);
  for (const std::int64_t count : {5, 0, 1, 40}) {
    std::mt19937 random(static_cast<unsigned>(count));
    session.run({{ids, small_numbers<std::int64_t>({count}, random, 0, 11)}}, step);
  }
  return numbers(session.run(now));
}

template <class T>
void compare_embeddings(double tolerance) {
  const std::vector<std::function<std::unique_ptr<train::Optimizer>()>> optimizers = {
      [] { return std::make_unique<train::GradientDescent>(0.01f); },
      [] { return std::make_unique<train::Momentum>(0.01f, 0.9f); },
      [] { return std::make_unique<train::Momentum>(0.01f, 0.9f, train::MomentumOptions{.use_nesterov = true}); },
      [] { return std::make_unique<train::Adam>(0.05f); },
  };
  for (std::size_t k = 0; k < optimizers.size(); ++k) {
    INFO(dflow::dtype_name(dtype_of<T>) << ", optimizer " << k);
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = k + 1});
    const auto on_gpu = embedding_on<T>("/gpu:0", gpus_and_cpu(driver), optimizers[k]);
    const auto on_cpu = embedding_on<T>("/cpu:0", gpus_and_cpu(driver), optimizers[k]);
    for (std::size_t i = 0; i < on_cpu.size(); ++i)
      CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(tolerance).margin(tolerance));
    CHECK(driver->launches().count(k == 0  ? "sparse gradient descent"
                                   : k < 3 ? "sparse momentum"
                                           : "sparse adam") == 1);
    check_end(*driver);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("rows of a variable on a GPU are updated as on the CPU, bit by bit", "[cuda]", float, double, Half,
                   BFloat16, std::int8_t, std::uint16_t, std::int32_t, std::uint64_t) {
  compare_scatters<TestType, std::int32_t>();
  compare_scatters<TestType, std::int64_t>();
}

TEST_CASE("optimizers train some rows of a variable on a GPU as on the CPU", "[cuda]") {
  compare_embeddings<float>(1e-5);
  compare_embeddings<double>(1e-12);
  compare_embeddings<Half>(2e-2);
}

TEST_CASE("an update of rows that is wrong changes nothing on a GPU, and says where", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto ids = placeholder<std::int32_t>(graph, {dynamic});
    const auto updates = placeholder<std::int32_t>(graph);
    Operation add, divide, initialize;
    Output<std::int32_t> now, sums;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<std::int32_t> v(graph, constant(graph, Tensor<std::int32_t>::full({4, 2}, 7)), {.name = "v"});
      add = v.scatter_add(ids, updates);
      divide = v.scatter_div(ids, updates);
      initialize = initialize_variables(graph);
      now = v;
      sums = unsorted_segment_sum(updates, ids, constant(graph, 3));
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run(initialize);
    const auto message = [&](const Tensor<std::int32_t>& at, const Tensor<std::int32_t>& by, const auto& what) {
      return std::string(status_of([&] {
                           session.run({{ids, at}, {updates, by}}, what);
                           return 0;
                         }).message());
    };
    const auto indices = [](std::initializer_list<std::int32_t> values) {
      return Tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
    };
    const auto ones = Tensor<std::int32_t>::full({3, 2}, 1);
    Tensor<std::int32_t> with_zero = Tensor<std::int32_t>::full({3, 2}, 1);
    with_zero.data()[3] = 0;
    CHECK(message(indices({0, 4, 1}), ones, add) == "indices[1] = 4 is outside [0, 4)");
    CHECK(message(indices({0, 1, -1}), ones, add) == "indices[2] = -1 is outside [0, 4)");
    CHECK(message(indices({0, 1, 2}), with_zero, divide) == "integer division by zero");
    CHECK(message(indices({0, 1}), ones, add).find("updates of shape [3,2] do not fit indices [2]") == 0);
    CHECK(message(indices({0, 1, 3}), ones, sums) == "segment_ids[2] = 3 is not below the number of segments, 3");
    for (const double each : numbers(session.run(now))) CHECK(each == 7);
    session.run({{ids, indices({})}, {updates, Tensor<std::int32_t>({0, 2})}}, add);
    session.run({{ids, indices({3, 3, 0})}, {updates, ones}}, add);
    CHECK(numbers(session.run(now)) == std::vector<double>{8, 8, 7, 7, 7, 7, 9, 9});
    CHECK(numbers(session.run({{ids, indices({2, -5, 2})}, {updates, ones}}, sums)) ==
          std::vector<double>{0, 0, 0, 0, 2, 2});
  }
  check_end(*driver);
}
