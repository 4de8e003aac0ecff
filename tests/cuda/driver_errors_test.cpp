#include "cuda/gpu_that_is_none.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <iostream>
#include <map>

using namespace dflow;
using namespace dflow::testing;
using cuda::ErrorCode;

namespace {

// Threads and mappings are slow with sanitizers.
constexpr std::uint64_t every = is_sanitized ? 7 : 1;

/// A step with copies in and out, kernels, a kernel that checks its elements, and a copy between two GPUs.
struct StepOnTwoGpus {
  Graph graph;
  Output<int> x, y;
  Output<float> z;

  StepOnTwoGpus() {
    x = placeholder<int>(graph, {1000});
    {
      const auto on = graph.device("/gpu:0");
      y = (x * 3 + 1) / 2;
    }
    {
      const auto on = graph.device("/gpu:1");
      z = sqrt(cast<float>(y)) + 1.0f;
    }
  }
  /// One session that runs the step twice; throws the errors of the session and of its steps.
  void run(const std::shared_ptr<FakeDriver>& driver) {
    Session session(graph, {.devices = gpus_and_cpu(driver, 2), .soft_placement = true});
    for (int i = 0; i < 2; ++i) {
      const auto [first, second] = session.run({{x, Tensor<int>::full({1000}, 5)}}, y, z);
      REQUIRE(bitwise_equal(first, Tensor<int>::full({1000}, 8)));
      REQUIRE(bitwise_equal(second, Tensor<float>::full({1000}, std::sqrt(8.0f) + 1)));
    }
  }
};

}  // namespace

TEST_CASE("every call of the driver may fail: the step says so, and nothing is left", "[cuda]") {
  StepOnTwoGpus step;
  std::uint64_t calls = 0;
  {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 2});
    step.run(driver);
    calls = driver->num_calls();
    check_end(*driver);
  }
  std::map<std::string, int> ends;
  int injected = 0;
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::invalid_value, ErrorCode::launch_out_of_resources,
                               ErrorCode::illegal_address, ErrorCode::uncorrectable_memory}) {
    for (std::uint64_t n = 0; n < calls; n += every) {
      INFO("call " << n << ", " << name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 2, .seed = n});
      driver->fail_call(n, code);
      ++injected;
      try {
        step.run(driver);
        ++ends["a value"];  // memory was given back and asked for again, or only a wake-up was lost
      } catch (const Error& error) {
        ++ends[str_cat("code ", static_cast<int>(error.code()))];
        CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of the driver's calls injected\n";
  CHECK(ends.size() >= 3);
}

TEST_CASE("a driver may call the host late, when the device that asked for it has gone", "[cuda]") {
  for (const bool is_lost : {false, true}) {
    StepOnTwoGpus step;
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 2, .holds_host_calls = true});
    if (is_lost) driver->fail_work(5, ErrorCode::illegal_address);
    try {
      step.run(driver);
      CHECK_FALSE(is_lost);
    } catch (const Error& error) {
      CHECK(is_lost);
    }
    check_end(*driver);
    CHECK(driver->make_held_host_calls() > 0);
  }
}

TEST_CASE("work on a GPU may fail at any point: the step says so, and nothing is left", "[cuda]") {
  StepOnTwoGpus step;
  int injected = 0, failed = 0;
  for (const ErrorCode code :
       {ErrorCode::illegal_address, ErrorCode::launch_failure, ErrorCode::uncorrectable_memory}) {
    for (std::uint64_t n = 0; n < 40; ++n) {
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 2, .seed = n});
      driver->fail_work(n, code);
      ++injected;
      try {
        step.run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK(error.code() == Code::unavailable);
        CHECK_THAT(error.what(), Catch::Matchers::Contains("lost for this process"));
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of a GPU's work injected, " << failed
            << " before the last step's end\n";
  CHECK(failed > 0);
}

namespace {

/// Training of a convolution and of an embedding, with products, sorts and kernels that need memory of their own. It
/// goes through a loop, and the gradient of the loop keeps lists.
struct TrainingOnGpu {
  Graph graph{{.seed = 3}};
  Operation initialize, train;
  Output<float> loss;

  TrainingOnGpu() {
    const auto on = graph.device("/gpu:0");
    const Variable<float> filter(graph, random_normal<float>(graph, {3, 3, 2, 3}), {.name = "filter"});
    const Variable<float> table(graph, random_uniform<float>(graph, {5, 16}), {.name = "table"});
    const auto rows = gather(Output<float>(table), constant(graph, Tensor<std::int32_t>(Shape{4}, {1, 4, 1, 0})));
    const auto squares = map([](Output<float> row) { return row + row * row; }, rows);
    const auto images = reshape(squares, {2, 4, 4, 2});
    const auto y = max_pool(conv2d(images, Output<float>(filter), {.padding = Padding::same}),
                            {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
    loss = reduce_mean(square(y));
    train = train::Adam(0.01f).minimize(loss);
    initialize = initialize_variables(graph);
  }
  void run(const std::shared_ptr<FakeDriver>& driver) {
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run(initialize);
    float before = session.run(loss).scalar();
    for (int i = 0; i < 2; ++i) {
      session.run(train);
      const float after = session.run(loss).scalar();
      REQUIRE(after < before);
      before = after;
    }
  }
};

}  // namespace

TEST_CASE("training with a loop is ordered on a GPU, whatever its streams do first", "[cuda]") {
  // The loop asks for shapes and numbers on the host, and with each for the errors so far, while the step goes on.
  TrainingOnGpu training;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
    training.run(driver);
    check_end(*driver);
  }
}

TEST_CASE("training on a GPU may fail at every call of the driver: the step says so, and nothing is left", "[cuda]") {
  TrainingOnGpu training;
  std::uint64_t calls = 0;
  for (const bool has_cudnn : {true, false}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_cudnn = has_cudnn});
    training.run(driver);
    calls = std::max(calls, driver->num_calls());
    CHECK(driver->num_sorts() == 2);
    CHECK((driver->num_products() > 0) == !has_cudnn);
    CHECK((driver->cudnn().num_issued() > 0) == has_cudnn);
    check_end(*driver);
  }
  int injected = 0, failed = 0;
  std::uint64_t first = 0;  // each call fails in one of the ways
  for (const ErrorCode code :
       {ErrorCode::out_of_memory, ErrorCode::launch_out_of_resources, ErrorCode::illegal_address}) {
    for (std::uint64_t n = first++; n < calls; n += 3 * every) {
      INFO("call " << n << ", " << name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n, .has_cudnn = n / every % 2 == 0});
      driver->fail_call(n, code);
      ++injected;
      try {
        training.run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of the driver's calls injected into training, " << failed
            << " ended a step\n";
  CHECK(failed > 0);
}
