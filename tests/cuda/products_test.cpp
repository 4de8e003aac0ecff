// Products on a GPU: the calls that cuBLASLt gets, computed as they were recorded.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Small whole numbers with products that are exact in every type.
template <class T>
Tensor<T> product_operand(const Shape& shape, std::int64_t seed) {
  Tensor<T> x(shape);
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const auto value = static_cast<float>((i * 7 + seed * 5) % 5 - (std::is_unsigned_v<T> ? 0 : 2));
    if constexpr (is_complex_element<T>) {
      x.data()[i] =
          T(static_cast<typename T::value_type>(value), static_cast<typename T::value_type>((i + seed) % 3 - 1));
    } else {
      x.data()[i] = static_cast<T>(value);
    }
  }
  return x;
}

/// The same graph on the CPU and on a GPU.
template <class T, class Build>
void check_on_gpu(const std::shared_ptr<FakeDriver>& driver, const Shape& a, const Shape& b, const Build& build) {
  std::vector<AnyTensor> results;
  for (const bool on_gpu : {false, true}) {
    Graph graph;
    const auto x = placeholder<T>(graph, a), y = placeholder<T>(graph, b);
    const auto z = [&] {
      const auto on = graph.device(on_gpu ? "/gpu:0" : "/cpu:0");
      return build(graph, x, y);
    }();
    Session session(graph, {.devices = on_gpu ? gpus_and_cpu(driver) : cpu_devices({})});
    results.push_back(session.run({{x, product_operand<T>(a, 1)}, {y, product_operand<T>(b, 2)}}, z));
  }
  CHECK(bitwise_equal(results[0], results[1]));
}

template <class T>
void check_products_of(const std::shared_ptr<FakeDriver>& driver) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      INFO(dtype_name(dtype_of<T>) << ", transposed: " << ta << " " << tb);
      for (const auto& [m, n, k] :
           {std::array{3, 5, 7}, {1, 1, 1}, {17, 33, 20}, {4, 1, 9}, {0, 3, 2}, {3, 0, 2}, {2, 3, 0}}) {
        const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
        check_on_gpu<T>(driver, a, b, [&](Graph&, auto x, auto y) { return matmul(x, y, {ta, tb}); });
        const Shape as = Shape{2, 3}.concatenated(a), bs = Shape{2, 3}.concatenated(b);
        check_on_gpu<T>(driver, as, bs, [&](Graph&, auto x, auto y) { return batch_matmul(x, y, {ta, tb}); });
      }
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("products on a GPU are those of the CPU, whatever is transposed", "[cuda]", float, double, Half,
                   BFloat16, std::complex<float>, std::complex<double>) {
  const auto driver = std::make_shared<FakeDriver>();
  check_products_of<TestType>(driver);
  CHECK(driver->num_products() > 0);
  CHECK(driver->launches().empty());
  check_end(*driver);
}

TEMPLATE_TEST_CASE("products of integers on a GPU wrap as those of the CPU", "[cuda]", std::int8_t, std::int16_t,
                   std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
  const auto driver = std::make_shared<FakeDriver>();
  check_products_of<TestType>(driver);
  CHECK(driver->num_products() == 0);
  CHECK(driver->launches().contains("product"));
  check_end(*driver);
}

TEST_CASE("a product with its bias and activation is one call of the library", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  for (const std::int64_t k : {6, 0}) {
    for (const bool has_relu : {false, true}) {
      const std::uint64_t before = driver->num_products();
      check_on_gpu<float>(driver, {4, k}, {k, 5}, [&](Graph& graph, auto x, auto y) {
        const auto bias = [&] {
          const auto beside = graph.device("/cpu:0");
          return constant(graph, Tensor<float>({5}, {-3, 1, 0, 2, -1}));
        }();
        return Output<float>(build<FusedMatMul>({x, y, bias}, {.relu = has_relu}).output(0));
      });
      CHECK(driver->num_products() - before == (k == 0 ? 0 : 1));
    }
  }
  std::set<cuda::ProductEpilogue> epilogues;
  for (const cuda::ProductCall& call : driver->products_made()) epilogues.insert(call.epilogue);
  CHECK(epilogues == std::set{cuda::ProductEpilogue::bias, cuda::ProductEpilogue::bias_relu});
  check_end(*driver);
}

TEST_CASE("a product is planned once, however often it is computed, and the plans have a bound", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {dynamic, 4});
    const auto y = [&] {
      const auto on = graph.device("/gpu:0");
      return matmul(x, x, {false, true});
    }();
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    for (int run = 0; run < 20; ++run) session.run({{x, Tensor<float>::full({3, 4}, 1.0f)}}, y);
    CHECK(driver->products_made().size() == 1);
    CHECK(driver->num_products() == 20);
  }
  check_end(*driver);
  {
    const auto core = std::make_shared<cuda::DeviceCore>(driver, 0);
    cuda::ProductPlans plans(core, cuda::max_product_workspace_bytes, 3);
    const auto call = [](std::int64_t n) {
      const cuda::ProductMatrix square{n, n, n, n * n};
      return cuda::ProductCall{
          .dtype = DType::float32, .result = DType::float32, .a = square, .b = square, .d = square};
    };
    const auto held = plans.find(call(1));
    for (std::int64_t n = 2; n <= 5; ++n) static_cast<void>(plans.find(call(n)));
    CHECK(plans.size() == 3);
    const std::size_t made = driver->products_made().size();
    CHECK(plans.find(call(4)) == plans.find(call(4)));
    CHECK(driver->products_made().size() == made);
    CHECK(plans.find(call(1)) != held);  // it had gone, and lives as long as it is held
    CHECK(driver->products_made().size() == made + 1);
  }
  check_end(*driver);
}

TEST_CASE("a product in TF32 is asked for where the device allows it, of float alone", "[cuda]") {
  for (const bool allows : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      const auto x = placeholder<float>(graph, {2, 2});
      const auto w = placeholder<double>(graph, {2, 2});
      const auto on = graph.device("/gpu:0");
      const auto y = matmul(x, x);
      const auto z = matmul(w, w);
      std::vector<std::shared_ptr<Device>> devices{
          std::make_shared<CudaDevice>(CudaDeviceOptions{.driver = driver, .allows_tf32 = allows}),
          std::make_shared<CpuDevice>(CpuDeviceOptions{})};
      Session session(graph, {.devices = devices});
      const float value = 1.0f + 1.0f / 4096;  // more bits than TF32 has
      const auto [of_float, of_double] =
          session.run({{x, Tensor<float>::full({2, 2}, value)}, {w, Tensor<double>::full({2, 2}, value)}}, y, z);
      CHECK(of_float(0, 0) == (allows ? 2.0f : value * value + value * value));
      CHECK(of_double(0, 0) == Approx(2.0 * value * value));
      for (const cuda::ProductCall& call : driver->products_made()) {
        CHECK(call.allows_tf32 == (allows && call.dtype == DType::float32));
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("every error of the library of products ends a step with a Status, and nothing is left", "[cuda]") {
  int injected = 0;
  for (const cuda::ErrorCode code : {cuda::ErrorCode::not_supported, cuda::ErrorCode::out_of_memory,
                                     cuda::ErrorCode::launch_failure, cuda::ErrorCode::invalid_value}) {
    for (std::uint64_t n = 0;; ++n) {
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
      bool is_through = false;
      {
        Graph graph;
        const auto x = placeholder<float>(graph, {3, 3});
        const auto y = [&] {
          const auto on = graph.device("/gpu:0");
          return matmul(matmul(x, x), x);
        }();
        Session session(graph, {.devices = gpus_and_cpu(driver)});
        const std::uint64_t before = driver->num_calls();
        driver->fail_call(n, code);
        try {
          const auto value = session.run({{x, Tensor<float>::full({3, 3}, 1.0f)}}, y);
          CHECK(value(0, 0) == 9);
        } catch (const Error& error) {
          CHECK_FALSE(std::string(error.what()).empty());
        }
        ++injected;
        is_through = driver->num_calls() - before <= n;
      }
      check_end(*driver);
      if (is_through) break;
    }
  }
  CHECK(injected > 40);
}
