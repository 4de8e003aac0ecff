// Branches, loops, functions and lists on a GPU.
#include "cuda/gpu_that_is_none.hpp"

#include "support/control_flow_forms.hpp"
#include "support/control_flow_programs.hpp"
#include "support/row_programs.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

SessionOptions gpu_options(const std::shared_ptr<FakeDriver>& driver, const PassOptions& passes = {}) {
  return {.devices = gpus_and_cpu(driver), .passes = passes};
}

}  // namespace

TEST_CASE("branches, loops and functions on a GPU give the values of the CPU, in each form", "[cuda]") {
  std::vector<ControlFlowProgram> programs = control_flow_programs();
  for (const ControlFlowProgram& raw : raw_control_flow_programs()) programs.push_back(raw);
  const PassOptions passes = each_form();
  for (const ControlFlowProgram& program : programs) {
    INFO(program.name);
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      const auto x = placeholder<float>(graph, {});
      const auto n = placeholder<std::int32_t>(graph, {});
      ControlFlowResults results;
      {
        const auto on = graph.device("/gpu:0");
        results = program.build(graph, x, n);
      }
      Session session(graph, gpu_options(driver, passes));
      for (int run = 0; run < 2; ++run) {
        for (std::size_t i = 0; i < results.size(); ++i) {
          INFO("result " << i);
          CHECK(session.run({{x, Tensor<float>(1.5f)}, {n, Tensor<std::int32_t>(4)}}, results[i]).scalar() ==
                Approx(program.wanted[i]));
        }
      }
      CHECK_FALSE(driver->launches().empty());
    }
    check_end(*driver);
  }
}

TEST_CASE("arrays, loops over rows and recurrent networks on a GPU give the values of the CPU", "[cuda]") {
  for (const RowProgram& program : row_programs()) {
    for (const PassOptions& passes : passes_of_each_form()) {
      INFO(program.name << ", lowered: " << passes.lower_control_flow << ", raised: " << passes.raise_control_flow);
      const auto driver = std::make_shared<FakeDriver>();
      check_row_program(program, row_devices("/gpu:0", {}, 0), gpu_options(driver, passes));
      CHECK_FALSE(driver->launches().empty());
      check_end(*driver);
    }
  }
}

namespace {

/// The result of a program on the device where it is placed: `build(graph, x)` of x, which is fed.
template <class T, class U, class Build>
Tensor<U> given_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver, const Tensor<T>& fed,
                   const Build& build) {
  Graph graph;
  const auto x = placeholder<T>(graph, PartialShape(fed.shape()));
  Output<U> y;
  {
    const auto on = graph.device(device);
    y = build(graph, x);
  }
  Session session(graph, gpu_options(driver));
  return session.run({{x, fed}}, y);
}

/// The same on a GPU and on the CPU, bit for bit.
template <class T, class Build>
void check_alike(const Tensor<T>& fed, const Build& build) {
  const auto driver = std::make_shared<FakeDriver>();
  CHECK(bitwise_equal(given_on<T, T>("/gpu:0", driver, fed, build), given_on<T, T>("/cpu:0", driver, fed, build)));
  CHECK_FALSE(driver->launches().empty());
  check_end(*driver);
}

Output<std::int32_t> numbers(Graph& graph, std::vector<std::int32_t> values) {
  return constant(graph, Tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, std::span(values)));
}

template <class T>
Tensor<T> some_rows(std::int64_t rows, std::int64_t columns) {
  Tensor<T> x({rows, columns});
  int i = 0;
  for (T& each : x) each = static_cast<T>(static_cast<float>(i++ % 7));
  return x;
}

}  // namespace

TEST_CASE("lists on a GPU hold elements of every type", "[cuda]") {
  for_each_type<PlainTypes>([]<class T>() {
    INFO(dflow::dtype_name(dtype_of<T>));
    const Tensor<T> x = some_rows<T>(6, 3);
    check_alike(x, [](Graph& graph, Output<T> of) {
      return TensorArray<T>::unstack(of).gather(numbers(graph, {5, 0, 5, 2}));
    });
    check_alike(x, [](Graph& graph, Output<T> of) {
      // The list has five elements, and one of them is not written.
      return TensorArray<T>::scatter(numbers(graph, {4, 0, 2}), slice(of, {0, 0}, {3, 3}))
          .write(constant(graph, 1), reshape(slice(of, {5, 0}, {1, 3}), {3}))
          .stack();
    });
    check_alike(x, [](Graph& graph, Output<T> of) {
      return TensorArray<T>::split(of, numbers(graph, {1, 0, 4, 1}))
          .write(constant(graph, 1), slice(of, {2, 0}, {2, 3}))
          .concat();
    });
  });
}

TEST_CASE("elements of lists on a GPU are added where two stand at one place", "[cuda]") {
  for_each_type<NumberTypes>([]<class T>() {
    INFO(dflow::dtype_name(dtype_of<T>));
    const Tensor<T> x = some_rows<T>(5, 3);
    check_alike(x, [](Graph& graph, Output<T> of) {
      return TensorArray<T>::scatter(numbers(graph, {1, 0, 1, 1, 2}), of).stack();
    });
    // More than one launch takes; 16-bit floats are rounded once.
    check_alike(some_rows<T>(400, 3), [](Graph& graph, Output<T> of) {
      return TensorArray<T>::scatter(fill<std::int32_t>(graph, {400}, 0), of).stack();
    });
  });
}

TEST_CASE("a list of more rows than one launch copies is a tensor again", "[cuda]") {
  for (const std::int64_t rows : {63, 64, 65, 200}) {
    const Tensor<float> x = some_rows<float>(rows, 2);
    const auto driver = std::make_shared<FakeDriver>();
    const auto stacked = [](Graph&, Output<float> of) { return TensorArray<float>::unstack(of).stack(); };
    CHECK(bitwise_equal(given_on<float, float>("/gpu:0", driver, x, stacked), x));
    CHECK(driver->launches()["parts"] == static_cast<std::uint64_t>((rows + 63) / 64));
    check_end(*driver);
  }
}

TEST_CASE("what bodies and lists say on the host is said on a GPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  const Tensor<float> x = some_rows<float>(4, 2);
  for (const std::string device : {"/gpu:0", "/cpu:0"}) {
    const auto sizes = [](Graph& graph, Output<float> of) {
      const auto rows = [](Output<float> v) { return slice(shape(v), {0}, {1}); };
      const auto num_rows = function(graph, "rows", [&](Output<float> v) { return reshape(rows(v), {}); });
      const auto grown = while_loop([](auto v) { return size(v) < 18; },
                                    [](auto v) {
                                      return concat(0, {v, v});
                                    },
                                    of, {.shapes = {PartialShape{dynamic, 2}}});
      const auto chosen = cond(
          reduce_sum(of) > 0.0f, [&] { return rank(of); }, [&] { return num_rows(grown); });
      return pack({num_rows(grown), chosen, TensorArray<float>::unstack(grown).size()});
    };
    const Tensor<std::int32_t> got = given_on<float, std::int32_t>(device, driver, x, sizes);
    CHECK(got.data()[0] == 16);
    CHECK(got.data()[1] == 2);
    CHECK(got.data()[2] == 16);
  }
  check_end(*driver);
}

TEST_CASE("what is checked on a GPU fails as it does on the CPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {dynamic});
    const auto checked_on = [&](const std::string& device) {
      const auto on = graph.device(device);
      return std::pair{check_numerics(x, "x"), assert_that(reduce_sum(x) > 0.0f, {x})};
    };
    const auto of_gpu = checked_on("/gpu:0"), of_cpu = checked_on("/cpu:0");
    Session session(graph, gpu_options(driver));
    const auto said = [&](const Tensor<float>& fed, const auto& wanted) {
      try {
        session.run({{x, fed}}, wanted);
      } catch (const Error& error) {
        return std::string(error.status().message());
      }
      return std::string("right");
    };
    constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const Tensor<float>& fed :
         {Tensor<float>({3}, {1, 2, 3}), Tensor<float>({3}, {1, infinity, -3}), Tensor<float>({2}, {nan, -1}),
          Tensor<float>({3}, {-infinity, nan, 0}), Tensor<float>({0}), Tensor<float>({1}, {-5})}) {
      CHECK(said(fed, of_gpu.first) == said(fed, of_cpu.first));
      CHECK(said(fed, of_gpu.second) == said(fed, of_cpu.second));
    }
    CHECK(said(Tensor<float>({2}, {nan, infinity}), of_gpu.first).find("NaN and Inf") != std::string::npos);
  }
  check_end(*driver);
}
