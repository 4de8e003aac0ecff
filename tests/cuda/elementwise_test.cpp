#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <cmath>

using namespace dflow;
using namespace dflow::testing;

TEST_CASE("an expression on a GPU gives what it gives on the CPU, and leaves nothing behind", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {2, 3});
    const auto row = placeholder<float>(graph, {3});
    Output<float> y;
    {
      const auto on = graph.device("/gpu:0");
      y = maximum(x * 2.0f + row, 0.5f) - square(x);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const Tensor<float> in({2, 3}, {-1, 0, 1, 2, 3, 4}), added({3}, {10, -20, 0.25f});
    for (int again = 0; again < 3; ++again) {
      const Tensor<float> out = session.run({{x, in}, {row, added}}, y);
      for (std::int64_t i = 0; i < 6; ++i) {
        const float v = in.data()[i];
        CHECK(out.data()[i] == std::max(v * 2 + added.data()[i % 3], 0.5f) - v * v);
      }
    }
  }
  CHECK(driver->launches().count("elementwise") == 1);
  CHECK(driver->launches().count("elementwise, broadcast") == 1);
  check_end(*driver);
}

TEST_CASE("an element that a kernel refuses is an error of the step, at the node's line", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<int>(graph, {3});
    const auto z = placeholder<int>(graph, {});
    Output<int> quotient, more;
    std::uint_least32_t line = 0;
    {
      const auto on = graph.device("/gpu:0");
      line = std::source_location::current().line() + 1;
      quotient = x / z;
      more = quotient * 2;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    try {
      session.run({{x, Tensor<int>({3}, {1, 2, 3})}, {z, Tensor<int>(0)}}, more);
      FAIL("a quotient by zero");
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
      const std::string text = error.what();
      CHECK_THAT(text, Catch::Matchers::Contains("division by zero"));
      CHECK_THAT(text, Catch::Matchers::Contains("GPU:0"));
      CHECK_THAT(text, Catch::Matchers::Contains(str_cat("elementwise_test.cpp:", line)));
    }
    // The next step is none the worse.
    const Tensor<int> out = session.run({{x, Tensor<int>({3}, {2, 4, 7})}, {z, Tensor<int>(2)}}, more);
    CHECK(out.data()[2] == 6);
  }
  check_end(*driver);
}

TEST_CASE("tensors without elements, and scalars, go to a GPU and come back", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<double>(graph, PartialShape::unknown());
    Output<double> y;
    {
      const auto on = graph.device("/gpu:0");
      y = exp(x) + 1.0;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    CHECK(session.run({{x, Tensor<double>::full({0, 4}, 0)}}, y).shape() == Shape({0, 4}));
    CHECK(*session.run({{x, Tensor<double>(0.0)}}, y).data() == 2.0);
  }
  check_end(*driver);
}

TEST_CASE("tensors go from one GPU to another without the host", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 3});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {1000});
    Output<float> y = x;
    for (int i = 0; i < 9; ++i) {
      const auto on = graph.device(str_cat("/gpu:", i % 3));
      y = y * 2.0f + 1.0f;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver, 3)});
    const Tensor<float> out = session.run({{x, Tensor<float>::full({1000}, 1)}}, y);
    for (const float v : out) CHECK(v == 1023.0f);
  }
  check_end(*driver);
}

TEST_CASE("where there is no GPU, or an old driver, the error says so", "[cuda]") {
  const auto message = [](FakeDriverOptions options, Code code, int ordinal = 0) {
    try {
      CudaDevice device({.ordinal = ordinal, .driver = std::make_shared<FakeDriver>(options)});
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(message({.devices = 0}, Code::not_found), Catch::Matchers::Contains("no CUDA GPU"));
  CHECK_THAT(message({.devices = 2}, Code::not_found, 2), Catch::Matchers::Contains("there is no GPU 2"));
  CHECK_THAT(message({.driver_version = 12040}, Code::failed_precondition),
             Catch::Matchers::Contains("is for CUDA 12.4") && Catch::Matchers::Contains("built with CUDA 13.0"));
  CHECK_THAT(message({.driver_version = 0}, Code::failed_precondition),
             Catch::Matchers::Contains("no NVIDIA driver on this machine"));
}
