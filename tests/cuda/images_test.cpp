// Convolutions, pooling, batch normalisation and random numbers on a GPU, beside the CPU's.
#include "cuda/gpu_that_is_none.hpp"
#include "cuda/image_graphs.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

TEMPLATE_TEST_CASE("a convolution and its gradients on a GPU, whole and in parts, are the CPU's", "[cuda]", float,
                   double, Half, BFloat16) {
  for (const ConvCase& of : conv_cases()) {
    INFO("x " << of.x.to_string() << ", filter " << of.filter.to_string());
    const auto build = convolution<TestType>(of);
    const std::vector<AnyTensor> want = run_on("/cpu:0", {std::make_shared<CpuDevice>(CpuDeviceOptions{})}, build);
    std::uint64_t products_of_whole = 0;
    for (const std::size_t workspace : {std::size_t{1} << 27, std::size_t{2000}, std::size_t{1}}) {
      INFO("workspace " << workspace);
      const double tolerance = tolerance_of<TestType>();
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = workspace, .has_cudnn = false});
      const std::vector<AnyTensor> got = run_on("/gpu:0", gpu_of(driver, workspace), build);
      for (std::size_t i = 0; i < want.size(); ++i) {
        INFO("output " << i);
        check_close<TestType>(got[i], want[i], tolerance);
      }
      if (products_of_whole == 0) products_of_whole = driver->num_products();
      if (workspace == 1 && want[0].num_elements() != 0 && of.filter[0] > 1 && of.x[3] > 0) {
        CHECK(driver->num_products() > products_of_whole);
      }
      check_end(*driver);
    }
  }
}

TEMPLATE_TEST_CASE("a convolution and its gradients by cuDNN are the CPU's", "[cuda]", float, double, Half, BFloat16) {
  for (const ConvCase& of : conv_cases()) {
    INFO("x " << of.x.to_string() << ", filter " << of.filter.to_string());
    const auto build = convolution<TestType>(of);
    const std::vector<AnyTensor> want = run_on("/cpu:0", {std::make_shared<CpuDevice>(CpuDeviceOptions{})}, build);
    for (const std::size_t workspace : {std::size_t{1} << 27, std::size_t{600}, std::size_t{1}}) {
      INFO("workspace " << workspace);
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = workspace});
      const std::vector<AnyTensor> got = run_on("/gpu:0", gpu_of(driver, workspace), build);
      for (std::size_t i = 0; i < want.size(); ++i) {
        INFO("output " << i);
        check_close<TestType>(got[i], want[i], tolerance_of<TestType>());
      }
      check_end(*driver);
    }
  }
}

TEST_CASE("a convolution with its bias and relu is one call of the library of products on a GPU without cuDNN",
          "[cuda]") {
  const auto run = [](const std::string& device, const std::vector<std::shared_ptr<Device>>& devices) {
    Graph graph;
    const auto on = graph.device(device);
    const auto x = placeholder<float>(graph, {2, 6, 6, 3});
    const auto y = conv2d(x, constant(graph, waves<float>({3, 3, 3, 4}, 1.3)));
    const auto z = relu(bias_add(y, constant(graph, waves<float>({4}, 2.1))));
    Session session(graph, {.devices = devices});
    return session.run({{x, waves<float>({2, 6, 6, 3}, 0.7)}}, z);
  };
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_cudnn = false});
  check_close<float>(run("/gpu:0", gpus_and_cpu(driver)), run("/cpu:0", gpus_and_cpu(driver)), 1e-5);
  REQUIRE(driver->products_made().size() == 1);
  CHECK(driver->products_made()[0].epilogue == cuda::ProductEpilogue::bias_relu);
  check_end(*driver);
}

TEMPLATE_TEST_CASE("pooling and its gradients on a GPU are the CPU's", "[cuda]", float, double, Half, BFloat16) {
  const double tolerance = tolerance_of<TestType>();
  struct PoolCase {
    Shape x;
    Pool2DAttrs attrs;
  };
  const std::vector<PoolCase> cases = {
      {{2, 6, 8, 3}, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}},
      {{2, 7, 8, 2}, {.ksize = {1, 3, 3, 1}, .strides = {1, 2, 1, 1}, .padding = Padding::same}},
      {{1, 7, 8, 2}, {.ksize = {1, 2, 1, 1}, .strides = {1, 3, 4, 1}}},
      {{1, 3, 3, 2}, {.ksize = {1, 2147483647, 5, 1}, .strides = {1, 1, 1, 1}, .padding = Padding::same}},
      {{0, 4, 4, 2}, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}},
      {{1, 2, 3, 1}, {.ksize = {1, 2, 3, 1}, .strides = {1, 1, 1, 1}}},  // one place
      {{1, 1, 1, 1}, {.ksize = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}}},  // one element
  };
  for (const PoolCase& of : cases) {
    INFO("x " << of.x.to_string());
    const Build build = [&](Graph& graph) {
      Tensor<TestType> values = waves<TestType>(of.x, 0.7);
      // Equal maxima, and NaN.
      for (std::int64_t i = 0; i + 7 < values.num_elements(); i += 7) values.data()[i] = static_cast<TestType>(1.5f);
      if (values.num_elements() > 40) {
        values.data()[20] = values.data()[26] = static_cast<TestType>(std::numeric_limits<float>::quiet_NaN());
      }
      const auto x = constant(graph, values);
      const auto largest = max_pool(x, of.attrs), mean = avg_pool(x, of.attrs);
      const auto dy = constant(graph, waves<TestType>(largest.shape().to_shape(), 0.9));
      const auto gradients_of = [&](const Output<TestType>& y) { return gradients(reduce_sum(y * dy), x); };
      const AnyOutput by_largest = dflow::build<MaxPoolGradGrad>({x, largest, square(x)}, of.attrs);
      return std::vector<AnyOutput>{largest, mean, gradients_of(largest), gradients_of(mean), by_largest};
    };
    const auto driver = std::make_shared<FakeDriver>();
    const auto want = run_on("/cpu:0", gpus_and_cpu(driver), build),
               got = run_on("/gpu:0", gpus_and_cpu(driver), build);
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("output " << i);
      check_close<TestType>(got[i], want[i], tolerance);
    }
    check_end(*driver);
  }
}

TEMPLATE_TEST_CASE("batch normalisation and its gradients on a GPU are the CPU's", "[cuda]", float, double, Half,
                   BFloat16) {
  using U = BatchNormParameter<TestType>;
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{8, 9, 7, 33}, Shape{1, 1, 1, 3}, Shape{40, 8, 5, 1},
                             Shape{0, 2, 2, 3}, Shape{2, 2, 2, 0}}) {
    INFO("x " << shape.to_string());
    const Build build = [&](Graph& graph) {
      const auto x = constant(graph, waves<TestType>(shape, 0.7));
      const auto channel = [&](double step) { return constant(graph, waves<U>({shape[3]}, step)); };
      const auto scale = channel(0.3), offset = channel(0.5), mean = channel(0.2), variance = square(channel(0.9));
      const auto trained = fused_batch_norm(x, scale, offset, 1e-3);
      const auto used = fused_batch_norm(x, scale, offset, mean, variance, 1e-3);
      const auto dy = constant(graph, waves<TestType>(shape, 1.1));
      std::vector<AnyOutput> all{trained.y, trained.batch_mean, trained.batch_variance, used};
      for (const auto& y : {trained.y, used}) {
        const auto [dx, dscale, doffset] = gradients(reduce_sum(y * dy), x, scale, offset);
        all.insert(all.end(), {dx, dscale, doffset});
      }
      return all;
    };
    const auto driver = std::make_shared<FakeDriver>();
    const auto want = run_on("/cpu:0", gpus_and_cpu(driver), build),
               got = run_on("/gpu:0", gpus_and_cpu(driver), build);
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("output " << i);
      if (want[i].dtype() == dtype_of<U>) {
        check_close<U>(got[i], want[i], std::is_same_v<U, double> ? 1e-10 : sizeof(TestType) == 2 ? 2e-2 : 2e-4);
      } else {
        check_close<TestType>(got[i], want[i], std::max(tolerance_of<TestType>(), 1e-10) * 10);
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("random numbers on a GPU are the CPU's, run after run", "[cuda]") {
  for (const std::int64_t n : {0, 1, 3, 4, 5, 1001}) {
    INFO(n << " numbers");
    const auto draw = [&](const std::string& device, const std::vector<std::shared_ptr<Device>>& devices) {
      Graph graph({.seed = 7});
      std::vector<AnyOutput> outputs;
      {
        const auto on = graph.device(device);
        outputs = {random_uniform<float>(graph, {n}),
                   random_uniform<double>(graph, {n}),
                   random_uniform<Half>(graph, {n}),
                   random_uniform<BFloat16>(graph, {n}),
                   random_uniform_int<std::int32_t>(graph, {n}, {.minval = -5, .maxval = 100}),
                   random_uniform_int<std::int64_t>(graph, {n}, {.minval = -5, .maxval = std::int64_t{1} << 40}),
                   random_normal<float>(graph, {n}),
                   random_normal<double>(graph, {n}),
                   random_normal<Half>(graph, {n}),
                   truncated_normal<float>(graph, {n}),
                   truncated_normal<double>(graph, {n}),
                   truncated_normal<BFloat16>(graph, {n})};
      }
      Session session(graph, {.devices = devices, .passes = PassOptions::none()});
      std::vector<AnyTensor> all;
      for (int run = 0; run < 3; ++run) {
        for (AnyTensor& each : run_all(session, outputs)) all.push_back(std::move(each));
      }
      return all;
    };
    const auto driver = std::make_shared<FakeDriver>();
    const auto want = draw("/cpu:0", gpus_and_cpu(driver)), got = draw("/gpu:0", gpus_and_cpu(driver));
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("output " << i % 12 << " of run " << i / 12);
      visit_dtype<NumberTypes>(want[i].dtype(), [&]<class T>() {
        if constexpr (!is_complex_element<T>) check_close<T>(got[i], want[i], i % 12 < 6 ? 0 : 1e-6);
        return 0;
      });
    }
    check_end(*driver);
  }
}

TEST_CASE("a small network of convolutions trains on a GPU as on the CPU", "[cuda]") {
  const auto losses = [](const std::string& device, const std::vector<std::shared_ptr<Device>>& devices) {
    Graph graph({.seed = 11});
    Output<float> loss;
    Operation step;
    {
      const auto on = graph.device(device);
      const auto x = constant(graph, waves<float>({4, 8, 8, 2}, 0.37));
      const auto labels = constant(graph, Tensor<std::int32_t>({4}, {0, 2, 1, 2}));
      const Variable<float> filter(graph, random_normal<float>(graph, {3, 3, 2, 4}, {.stddev = 0.3}), {.name = "f"});
      const Variable<float> scale(graph, constant(graph, Tensor<float>::full({4}, 1.0f)), {.name = "scale"});
      const Variable<float> offset(graph, constant(graph, Tensor<float>::full({4}, 0.0f)), {.name = "offset"});
      const Variable<float> weights(graph, truncated_normal<float>(graph, {64, 3}, {.stddev = 0.2}), {.name = "w"});
      const auto conv = conv2d(x, filter, {.padding = Padding::same});
      const auto normal = relu(fused_batch_norm(conv, scale, offset).y);
      const auto pooled = max_pool(normal, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
      loss = reduce_mean(sparse_softmax_cross_entropy(matmul(reshape(pooled, {4, 64}), weights), labels));
      step = train::Adam(0.05f).minimize(loss);
    }
    Session session(graph, {.devices = devices});
    session.run(initialize_variables(graph));
    std::vector<float> values;
    for (int i = 0; i < 12; ++i) {
      values.push_back(session.run(loss).scalar());
      session.run(step);
    }
    return values;
  };
  const auto driver = std::make_shared<FakeDriver>();
  const auto want = losses("/cpu:0", gpus_and_cpu(driver)), got = losses("/gpu:0", gpus_and_cpu(driver));
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-3));
  CHECK(got.back() < 0.2f * got.front());
  CHECK(driver->launches().count("batch normalisation gradient") == 1);
  CHECK(driver->launches().count("max pool gradient") == 1);
  check_end(*driver);
}
