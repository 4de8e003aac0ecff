// Variables that stay in a GPU's memory, and the operations that update them.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

template <class T>
std::vector<double> as_doubles(const Tensor<T>& x) {
  std::vector<double> values;
  for (const T& each : x) values.push_back(static_cast<double>(each));
  return values;
}

/// The value of a variable [3, 5] on a device after four steps of an optimizer with a gradient that reads it.
template <class T>
std::vector<double> trained_on(const std::string& device, const std::vector<std::shared_ptr<Device>>& devices,
                               const std::function<std::unique_ptr<train::Optimizer>()>& make_optimizer) {
  Graph graph;
  const auto x = placeholder<T>(graph, {3, 5});
  Operation step, initialize;
  Output<T> now;
  {
    const auto on = graph.device(device);
    Tensor<T> first({3, 5});
    for (int i = 0; i < 15; ++i) first.data()[i] = static_cast<T>(0.25f * static_cast<float>(i) - 1.5f);
    const Variable<T> w(graph, constant(graph, first), {.name = "w"});
    step = make_optimizer()->minimize(reduce_sum(square(w * x - T(0.5f))));
    initialize = initialize_variables(graph);
    now = w;
  }
  Session session(graph, {.devices = devices});
  session.run(initialize);
  for (int i = 0; i < 4; ++i) {
    session.run({{x, Tensor<T>::full({3, 5}, static_cast<T>(0.3f + 0.1f * static_cast<float>(i)))}}, step);
  }
  return as_doubles(session.run(now));
}

template <class T>
void compare_optimizers(double tolerance) {
  const std::vector<std::function<std::unique_ptr<train::Optimizer>()>> optimizers = {
      [] { return std::make_unique<train::GradientDescent>(0.1f); },
      [] { return std::make_unique<train::Momentum>(0.1f, 0.9f); },
      [] { return std::make_unique<train::Momentum>(0.1f, 0.9f, train::MomentumOptions{.use_nesterov = true}); },
      [] { return std::make_unique<train::Adam>(0.05f); },
  };
  for (std::size_t k = 0; k < optimizers.size(); ++k) {
    INFO(dflow::dtype_name(dtype_of<T>) << ", optimizer " << k);
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = k + 1});
    const std::vector<double> on_gpu = trained_on<T>("/gpu:0", gpus_and_cpu(driver), optimizers[k]);
    const std::vector<double> on_cpu = trained_on<T>("/cpu:0", gpus_and_cpu(driver), optimizers[k]);
    for (std::size_t i = 0; i < on_cpu.size(); ++i)
      CHECK(on_gpu[i] == Approx(on_cpu[i]).epsilon(tolerance).margin(tolerance));
    CHECK(driver->launches().count(k == 0 ? "gradient descent" : k < 3 ? "momentum" : "adam") == 1);
    check_end(*driver);
  }
}

}  // namespace

TEST_CASE("optimizers train a variable on a GPU as on the CPU", "[cuda]") {
  compare_optimizers<float>(1e-5);
  compare_optimizers<double>(1e-12);
}

TEMPLATE_TEST_CASE("a variable on a GPU is assigned, added to and subtracted from", "[cuda]", float, double, Half,
                   BFloat16, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::int64_t) {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<TestType>(graph, {2, 3});
    Operation initialize, assign, add, subtract;
    Output<TestType> now;
    Output<bool> is_initialized;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<TestType> v(graph, constant(graph, Tensor<TestType>::full({2, 3}, TestType(7))));
      initialize = initialize_variables(graph);
      assign = v.assign(x);
      add = v.assign_add(x);
      subtract = v.assign_sub(x);
      now = v;
      is_initialized = v.is_initialized();
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    CHECK_FALSE(session.run(is_initialized).scalar());
    CHECK_THROWS_WITH(session.run(now), Catch::Matchers::Contains("has not been initialized"));
    session.run(initialize);
    CHECK(session.run(is_initialized).scalar());
    const auto value = [](int v) { return static_cast<TestType>(v); };
    const auto fed = [&](int v) { return Tensor<TestType>::full({2, 3}, value(v)); };
    const auto holds = [&](double wanted) {
      for (const double each : as_doubles(session.run(now))) CHECK(each == wanted);
    };
    holds(7);
    session.run({{x, fed(100)}}, add);
    holds(107);
    session.run({{x, fed(100)}}, add);
    holds(static_cast<double>(static_cast<TestType>(207)));  // integers wrap
    Tensor<TestType> given = fed(90);
    session.run({{x, given}}, assign);
    given.data()[0] = value(1);  // the variable has its own
    holds(90);
    session.run({{x, fed(30)}}, subtract);
    holds(60);
    CHECK(driver->launches().count("assign update") == 1);
  }
  check_end(*driver);
}

TEST_CASE("bool and complex variables stay on a GPU, those of strings do not", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    Output<bool> flags;
    Output<std::complex<float>> z;
    Output<std::string> text;
    {
      const auto on = graph.device("/gpu:0");
      flags = Variable<bool>(graph, constant(graph, Tensor<bool>({2}, {true, false})));
      z = Variable<std::complex<float>>(graph, constant(graph, Tensor<std::complex<float>>({1}, {{1, 2}})));
      text = Variable<std::string>(graph, constant(graph, Tensor<std::string>("text")));
    }
    Session session(graph, {.devices = gpus_and_cpu(driver), .soft_placement = true});
    session.run(initialize_variables(graph));
    const auto [f, c, t] = session.run(flags, z, text);
    CHECK((f.data()[0] && !f.data()[1]));
    CHECK(c.data()[0] == std::complex<float>(1, 2));
    CHECK(t.scalar() == "text");
  }
  check_end(*driver);
}

TEST_CASE("what a step has read of a variable on a GPU stays as it was, whatever updates it", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
    {
      Graph graph;
      Output<float> before, after;
      Operation add;
      {
        const auto on = graph.device("/gpu:0");
        const Variable<float> v(graph, constant(graph, Tensor<float>::full({64}, 1.0f)));
        before = v.read() * 1.0f;
        const auto held = v.read();
        {
          const auto then = graph.control_dependencies({before.operation(), held.operation()});
          add = v.assign_add(constant(graph, Tensor<float>::full({64}, 1.0f)));
        }
        const auto then = graph.control_dependencies({add});
        after = v.read() - held;
      }
      Session session(graph, {.num_threads = 3, .devices = gpus_and_cpu(driver)});
      session.run(initialize_variables(graph));
      for (int step = 1; step < 6; ++step) {
        const auto [first, difference] = session.run(before, after);
        for (std::int64_t i = 0; i < 64; ++i) {
          CHECK(first.data()[i] == static_cast<float>(step));
          CHECK(difference.data()[i] == 1.0f);
        }
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("three threads add to one variable on a GPU and nothing is lost", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    Operation add;
    Output<int> now;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<int> v(graph, constant(graph, Tensor<int>::full({100}, 0)));
      add = v.assign_add(constant(graph, Tensor<int>::full({100}, 1)));
      now = v;
    }
    Session session(graph, {.num_threads = 2, .devices = gpus_and_cpu(driver)});
    session.run(initialize_variables(graph));
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) {
          session.run(add);
          if (i % 4 == 0) session.run(now);
        }
      });
    }
    for (std::thread& each : threads) each.join();
    for (const int each : session.run(now)) CHECK(each == 60);
  }
  check_end(*driver);
}

TEST_CASE("an update behind an error that a kernel has found changes nothing", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<int>(graph, {});
    Operation add;
    Output<int> now;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<int> v(graph, constant(graph, Tensor<int>({3}, {1, 2, 3})));
      add = v.assign_add(constant(graph, Tensor<int>({3}, {6, 6, 6})) / x);
      now = v;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run(initialize_variables(graph));
    for (int again = 0; again < 3; ++again) {
      CHECK_THROWS_WITH(session.run({{x, 0}}, add), Catch::Matchers::Contains("division by zero"));
    }
    CHECK(as_doubles(session.run(now)) == std::vector<double>{1, 2, 3});
    session.run({{x, 2}}, add);
    CHECK(as_doubles(session.run(now)) == std::vector<double>{4, 5, 6});
  }
  check_end(*driver);
}

TEST_CASE("values of other shapes are refused by a variable on a GPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, PartialShape::unknown());
    Operation add;
    Output<float> now;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<float> v(graph, constant(graph, Tensor<float>({3}, {1, 2, 3})));
      add = v.assign_add(x);
      now = v;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run(initialize_variables(graph));
    CHECK_THROWS_WITH(session.run({{x, Tensor<float>({2}, {1, 2})}}, add),
                      Catch::Matchers::Contains("the value has shape [2], the variable [3]"));
    CHECK(as_doubles(session.run(now)) == std::vector<double>{1, 2, 3});
  }
  check_end(*driver);
}

TEST_CASE("a variable on a GPU whose update meets an error of the driver has the value before or the one after",
          "[cuda]") {
  int injected = 0;
  for (const cuda::ErrorCode code : {cuda::ErrorCode::out_of_memory, cuda::ErrorCode::launch_out_of_resources}) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
      INFO("call " << n << ", " << cuda::name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
      bool has_failed = false;
      {
        Graph graph;
        Operation add;
        Output<float> before, now;
        {
          const auto on = graph.device("/gpu:0");
          const Variable<float> v(graph, constant(graph, Tensor<float>::full({8}, 1.0f)));
          before = v.read();
          const auto then = graph.control_dependencies({before.operation()});
          add = v.assign_add(constant(graph, Tensor<float>::full({8}, 1.0f)));
          now = v;
        }
        Session session(graph, {.devices = gpus_and_cpu(driver)});
        session.run(initialize_variables(graph));
        const auto value = [&] { return as_doubles(session.run(now)); };
        CHECK(value() == std::vector<double>(8, 1));
        driver->fail_call(n, code);
        try {
          session.run(before, add);  // what is fetched is held, so the update makes a copy
        } catch (const Error& error) {
          has_failed = true;
          CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
        }
        driver->fail_call(~std::uint64_t{0}, code);  // far away
        const std::vector<double> after = value();
        const bool is_whole = after == std::vector<double>(8, 1) || after == std::vector<double>(8, 2);
        CHECK(is_whole);
        session.run(add);
        CHECK(value() == std::vector<double>(8, after.at(0) + 1));
      }
      check_end(*driver);
      injected += has_failed ? 1 : 0;
      if (!has_failed && n > 60) break;
    }
  }
  CHECK(injected > 10);
}

TEST_CASE("variables on three GPUs are saved and restored, by sessions on fewer", "[cuda]") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const auto build_on = [](Graph& graph, int gpus) {
    std::vector<Variable<float>> all;
    for (int i = 0; i < 3; ++i) {
      const auto on = graph.device(str_cat("/gpu:", i % gpus));
      all.emplace_back(graph, constant(graph, Tensor<float>::full({4}, static_cast<float>(i))),
                       VariableOptions{.name = str_cat("v", i)});
    }
    return all;
  };
  for (const int gpus : {3, 1}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = gpus});
    {
      Graph graph;
      const auto all = build_on(graph, gpus);
      std::vector<Operation> adds;
      for (std::size_t i = 0; i < 3; ++i) {
        const auto on = graph.device(str_cat("/gpu:", i % static_cast<std::size_t>(gpus)));
        adds.push_back(all[i].assign_add(constant(graph, Tensor<float>::full({4}, 0.5f))));
      }
      const auto add = group(adds);
      train::Saver saver(graph, {.files = files});
      const auto devices = gpus_and_cpu(driver, gpus);
      for (const auto& device : devices) set_device_files(device->context(), files);
      Session session(graph, {.devices = devices, .soft_placement = true});
      session.run(initialize_variables(graph));
      if (gpus == 3) {
        session.run(add);
        saver.save(session, "/saved");
        session.run(add);
      }
      saver.restore(session, "/saved");
      session.run(add);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(as_doubles(session.run(all[i])) == std::vector<double>(4, static_cast<double>(i) + 1));
      }
    }
    check_end(*driver);
  }
}
