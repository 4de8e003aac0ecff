// The calls that cuDNN gets, checked by a model of it.
#include "cuda/fake_driver.hpp"
#include "cuda/gpu_that_is_none.hpp"
#include "cuda/image_graphs.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

TEMPLATE_TEST_CASE("cuDNN is asked for a convolution and its gradients where it can compute them", "[cuda]", float,
                   double, Half, BFloat16) {
  std::uint64_t declined = 0, issued = 0;
  for (const ConvCase& of : conv_cases()) {
    INFO("x " << of.x.to_string() << ", filter " << of.filter.to_string());
    const auto driver = std::make_shared<FakeDriver>();
    const std::vector<AnyTensor> got =
        run_on("/gpu:0", gpu_of(driver, std::size_t{1} << 27), convolution<TestType>(of));
    // The images are the columns: a product. An empty tensor needs no call of the library.
    const bool is_product = of.filter[0] * of.filter[1] * of.attrs.strides[1] == 1;
    const bool is_empty = of.x.num_elements() == 0 || got[0].num_elements() == 0;
    const bool is_declined = of.attrs.dilations[2] == 3;
    CHECK(driver->cudnn().num_issued() == (is_product || is_empty || is_declined ? 0 : 3));
    CHECK((driver->num_products() != 0) == (!is_empty && (is_product || is_declined)));
    declined += driver->cudnn().num_declined();
    issued += driver->cudnn().num_issued();
    for (const cuda::ConvolutionCall& call : driver->cudnn().made()) CHECK_FALSE(call.allows_tf32);
    check_end(*driver);
  }
  CHECK(declined == 3);
  CHECK(issued == 12);
}

TEST_CASE("cuDNN is asked once how it computes a convolution, and in TF32 where that is allowed", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    const std::vector<std::shared_ptr<Device>> devices{
        std::make_shared<CudaDevice>(CudaDeviceOptions{.driver = driver, .allows_tf32 = true}),
        std::make_shared<CpuDevice>(CpuDeviceOptions{})};
    Graph graph;
    const auto on = graph.device("/gpu:0");
    const auto x = placeholder<float>(graph, {2, 6, 6, 3});
    const auto wide = placeholder<double>(graph, {1, 5, 5, 1});
    const auto y = conv2d(x, constant(graph, waves<float>({3, 3, 3, 4}, 1.3)));
    const auto z = conv2d(wide, constant(graph, waves<double>({2, 2, 1, 1}, 1.3)));
    const auto dilated = conv2d(x, constant(graph, waves<float>({2, 2, 3, 4}, 1.3)), {.dilations = {1, 3, 3, 1}});
    Session session(graph, {.devices = devices});
    const Tensor<float> images = waves<float>({2, 6, 6, 3}, 0.7);
    const Tensor<double> wide_images = waves<double>({1, 5, 5, 1}, 0.7);
    for (int i = 0; i < 3; ++i) session.run({{x, images}, {wide, wide_images}}, y, z, dilated);
  }
  const std::vector<cuda::ConvolutionCall> made = driver->cudnn().made();
  REQUIRE(made.size() == 2);
  for (const cuda::ConvolutionCall& call : made) CHECK(call.allows_tf32 == (call.dtype == DType::float32));
  CHECK(driver->cudnn().num_issued() == 6);
  CHECK(driver->cudnn().num_declined() == 1);
  check_end(*driver);
}

TEST_CASE("three sessions convolve on one GPU at once", "[cuda]") {
  const Build build = convolution<float>(conv_cases()[0]);
  const std::vector<AnyTensor> want = run_on("/cpu:0", {std::make_shared<CpuDevice>(CpuDeviceOptions{})}, build);
  const auto driver = std::make_shared<FakeDriver>();
  std::vector<std::vector<AnyTensor>> got(12);
  {
    const std::vector<std::shared_ptr<Device>> devices = gpu_of(driver, std::size_t{1} << 27);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < got.size(); i += 3) got[i] = run_on("/gpu:0", devices, build);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::vector<AnyTensor>& each : got) {
    REQUIRE(each.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) check_close<float>(each[i], want[i], 1e-5);
  }
  CHECK(driver->cudnn().num_issued() == 36);
  check_end(*driver);
}

TEST_CASE("cuDNN gets no more workspace than a convolution may take", "[cuda]") {
  // The model wants none, or at least 512 bytes.
  const Build build = convolution<float>(conv_cases()[0]);
  for (const std::size_t workspace : {std::size_t{511}, std::size_t{1100}}) {
    const auto driver = std::make_shared<FakeDriver>();
    run_on("/gpu:0", gpu_of(driver, workspace), build);
    CHECK(driver->cudnn().num_declined() > 0);
    CHECK(driver->cudnn().num_declined() + driver->cudnn().num_issued() == 3);
    check_end(*driver);
  }
}

TEST_CASE("cuDNN is told of images that are not aligned", "[cuda]") {
  // Images of the batch are rows: from the second on 36 floats behind the first.
  const Tensor<float> all = waves<float>({3, 3, 3, 1}, 0.7);
  const auto build = [&](Graph& graph) {
    const auto x = slice(constant(graph, all), {1, 0, 0, 0}, {2, 3, 3, 1});
    return std::vector<AnyOutput>{conv2d(x, constant(graph, waves<float>({2, 2, 1, 2}, 1.3)))};
  };
  const auto driver = std::make_shared<FakeDriver>();
  const auto want = run_on("/cpu:0", gpus_and_cpu(driver), build), got = run_on("/gpu:0", gpus_and_cpu(driver), build);
  check_close<float>(got[0], want[0], 1e-5);
  REQUIRE(driver->cudnn().made().size() == 1);
  CHECK(driver->cudnn().made()[0].alignment_bytes <= 16);
  check_end(*driver);
}

TEST_CASE("a convolution with its bias and relu by cuDNN is the CPU's", "[cuda]") {
  for (const bool has_relu : {true, false}) {
    const auto run = [&](const std::string& device, const std::vector<std::shared_ptr<Device>>& devices) {
      Graph graph;
      const auto on = graph.device(device);
      const auto x = placeholder<float>(graph, {2, 6, 6, 3});
      const auto y = conv2d(x, constant(graph, waves<float>({3, 3, 3, 4}, 1.3)));
      const auto z = bias_add(y, constant(graph, waves<float>({4}, 2.1)));
      Session session(graph, {.devices = devices});
      Tensor<float> images = waves<float>({2, 6, 6, 3}, 0.7);
      images.data()[5] = std::numeric_limits<float>::quiet_NaN();
      return has_relu ? session.run({{x, images}}, relu(z)) : session.run({{x, images}}, z);
    };
    const auto driver = std::make_shared<FakeDriver>();
    check_close<float>(run("/gpu:0", gpus_and_cpu(driver)), run("/cpu:0", gpus_and_cpu(driver)), 1e-5);
    CHECK(driver->cudnn().num_issued() == 1);
    CHECK(driver->launches().at("bias") == 1);
    check_end(*driver);
  }
}

TEST_CASE("cuDNN on a GPU may fail at every call and in its work: the step says so, and nothing is left", "[cuda]") {
  const Build build = convolution<float>(conv_cases()[0]);
  const std::vector<AnyTensor> want = run_on("/cpu:0", {std::make_shared<CpuDevice>(CpuDeviceOptions{})}, build);
  std::uint64_t calls = 0;
  {
    const auto driver = std::make_shared<FakeDriver>();
    run_on("/gpu:0", gpu_of(driver, std::size_t{1} << 27), build);
    calls = driver->num_calls();
  }
  int failed = 0, injected = 0;
  const auto run = [&](std::uint64_t n, cuda::ErrorCode code, bool is_work) {
    INFO("number " << n << ", " << name_of(code) << (is_work ? ", in work" : ""));
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
    is_work ? driver->fail_work(n, code) : driver->fail_call(n, code);
    ++injected;
    try {
      const std::vector<AnyTensor> got = run_on("/gpu:0", gpu_of(driver, std::size_t{1} << 27), build);
      for (std::size_t i = 0; i < want.size(); ++i) check_close<float>(got[i], want[i], 1e-5);
    } catch (const Error& error) {
      ++failed;
      CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
    }
    check_end(*driver);
  };
  for (std::uint64_t n = 0; n < calls; ++n) {
    for (const auto code :
         {cuda::ErrorCode::out_of_memory, cuda::ErrorCode::library_failed, cuda::ErrorCode::illegal_address}) {
      run(n, code, false);
    }
  }
  for (std::uint64_t n = 0; n < 12; ++n) run(n, cuda::ErrorCode::illegal_address, true);
  std::cout << "count: " << injected << " errors injected into convolutions by cuDNN, " << failed << " ended a step\n";
  CHECK(failed > 0);
}
