// Loops that are stopped while they run, as functions, as frames, and as frames that are raised to functions.
#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

constexpr std::int32_t for_ever = 2'000'000'000;

/// A loop of `n` iterations that says in a variable how far it has come: sums of i x^2, with a gradient.
struct StoppedLoop {
  StoppedLoop() {
    auto [last_i, last_sum] = df::while_loop([&](auto i, auto) { return i < n; },
                                             [&](auto i, auto sum) {
                                               const auto counts =
                                                   graph.control_dependencies({df::Operation(count.assign_add(1.0f))});
                                               return std::tuple{i + 1, df::Output<float>(sum + x * x)};
                                             },
                                             std::tuple{df::constant(graph, 0), df::constant(graph, 0.0f)});
    sum = last_sum;
    slope = df::gradients(sum, x);
  }

  df::Graph graph;
  df::Output<std::int32_t> n = df::placeholder<std::int32_t>(graph, {});
  df::Output<float> x = df::placeholder<float>(graph, {});
  df::Variable<float> count{graph, df::constant(graph, 0.0f)};
  df::Output<float> sum, slope;
};

std::vector<df::SessionOptions> sessions_of_both_forms() {
  std::vector<df::SessionOptions> all;
  for (const int num_threads : {1, 3}) {
    for (const auto& [lowers, raises] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
      df::SessionOptions options;
      options.num_threads = num_threads;
      options.passes.lower_control_flow = lowers;
      options.passes.raise_control_flow = raises;
      all.push_back(options);
    }
  }
  return all;
}

void wait_until_it_runs(df::Session& session, const StoppedLoop& loop) {
  while (session.run(loop.count).scalar() < 3) std::this_thread::yield();
}

/// After any run was stopped, the loop counts from zero again, and correctly.
void check_that_it_runs(df::Session& session, const StoppedLoop& loop) {
  session.run(loop.count.initializer());
  const df::Tensor<std::int32_t> ten(10);
  const df::Tensor<float> two(2.0f);
  CHECK(session.run({{loop.n, ten}, {loop.x, two}}, loop.sum).scalar() == 40);
  CHECK(session.run(loop.count).scalar() == 10);
  CHECK(session.run({{loop.n, ten}, {loop.x, two}}, loop.slope).scalar() == 40);
  session.run(loop.count.initializer());
}

}  // namespace

TEST_CASE("a loop that runs is stopped, and runs again") {
  const StoppedLoop loop;
  for (const df::SessionOptions& options : sessions_of_both_forms()) {
    df::Session session(loop.graph, options);
    session.run(loop.count.initializer());
    for (const df::Output<float>& what : {loop.sum, loop.slope}) {
      std::stop_source stop;
      auto code = std::async(std::launch::async, [&] {
        return code_of([&] {
          session.run({.stop = stop.get_token()},
                      {{loop.n, df::Tensor<std::int32_t>(for_ever)}, {loop.x, df::Tensor<float>(0.0f)}}, what);
        });
      });
      wait_until_it_runs(session, loop);
      stop.request_stop();
      CHECK(code.get() == df::Code::cancelled);
      check_that_it_runs(session, loop);
    }
  }
}

TEST_CASE("a loop that runs meets its deadline, and runs again") {
  const StoppedLoop loop;
  for (const df::SessionOptions& options : sessions_of_both_forms()) {
    df::Session session(loop.graph, options);
    session.run(loop.count.initializer());
    // A machine that is busy takes longer to begin.
    for (std::chrono::milliseconds deadline(10); session.run(loop.count).scalar() == 0; deadline *= 2) {
      CHECK(code_of([&] {
              session.run({.deadline = deadline},
                          {{loop.n, df::Tensor<std::int32_t>(for_ever)}, {loop.x, df::Tensor<float>(0.0f)}}, loop.sum);
            }) == df::Code::deadline_exceeded);
    }
    check_that_it_runs(session, loop);
  }
}

TEST_CASE("loops whose session is gone go on until they are stopped, and another session runs them") {
  const StoppedLoop loop;
  for (const df::SessionOptions& options : sessions_of_both_forms()) {
    std::stop_source stop;
    std::vector<std::promise<df::Code>> ended(2);
    {
      df::Session session(loop.graph, options);
      session.run(loop.count.initializer());
      for (std::promise<df::Code>& each : ended) {
        session.run_async(
            {.stop = stop.get_token()},
            {{loop.n, df::Tensor<std::int32_t>(for_ever)}, {loop.x, df::Tensor<float>(0.0f)}}, loop.sum,
            [&each](const df::Status& status, const df::Tensor<float>&) { each.set_value(status.code()); });
      }
      wait_until_it_runs(session, loop);
    }
    stop.request_stop();
    for (std::promise<df::Code>& each : ended) CHECK(each.get_future().get() == df::Code::cancelled);
    df::Session session(loop.graph, options);
    check_that_it_runs(session, loop);
  }
}

TEST_CASE("a loop over rows that runs over three devices is stopped, and runs again") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const auto count = [&] {
    const auto on = graph.device("/cpu:1");
    return df::Variable<float>(graph, df::constant(graph, 0.0f), {.name = "count"});
  }();
  auto [i, rows] = df::while_loop([&](auto i, auto) { return i < n; },
                                  [&](auto i, auto rows) {
                                    auto value = [&] {
                                      const auto on = graph.device("/cpu:1");
                                      const auto counts =
                                          graph.control_dependencies({df::Operation(count.assign_add(1.0f))});
                                      return df::cast<float>(i) * 1.0f;
                                    }();
                                    const auto on = graph.device("/cpu:2");
                                    auto place = df::mod(i, df::constant(graph, 4));
                                    return std::tuple{i + 1, rows.write(place, value)};
                                  },
                                  std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, 4, df::Shape{})});
  auto all = rows.stack();
  for (const bool lowers : {false, true}) {
    df::SessionOptions options{.num_threads = 2, .num_cpu_devices = 3};
    options.passes.lower_control_flow = lowers;
    df::Session session(graph, options);
    for (int round = 0; round < 2; ++round) {
      session.run(df::initialize_variables(graph));
      std::stop_source stop;
      auto code = std::async(std::launch::async, [&] {
        return code_of([&] {
          session.run({.stop = stop.get_token()}, {{n, df::Tensor<std::int32_t>(for_ever)}}, all);
        });
      });
      while (session.run(count.read()).scalar() < 3) std::this_thread::yield();
      stop.request_stop();
      CHECK(code.get() == df::Code::cancelled);
      const df::Tensor<float> values = session.run({{n, df::Tensor<std::int32_t>(6)}}, all);
      CHECK(std::vector<float>(values.begin(), values.end()) == std::vector<float>{4, 5, 2, 3});
    }
  }
}

namespace {

/// The CPU. It counts the tensors of `elements` elements that a step hands to it for release.
class CountsReleased final : public df::Device {
 public:
  static constexpr std::int64_t elements = 77;

  CountsReleased() {
    const df::DeviceContext& cpu = cpu_.context();
    context_.name = cpu.name;
    context_.type = cpu.type;
    context_.incarnation = cpu.incarnation;
    context_.allocator = cpu.allocator;
    context_.host_allocator = cpu.host_allocator;
    context_.pool = cpu.pool;
    context_.resources = cpu.resources;
    context_.state = cpu.state;
    context_.release = [](const df::DeviceContext&, df::AnyTensor&& tensor) noexcept {
      if (tensor.num_elements() == elements) ++num_released;
      tensor.reset();
    };
  }

  static inline std::atomic<int> num_released{0};

 private:
  df::CpuDevice cpu_{df::CpuDeviceOptions{}};
};

}  // namespace

TEST_CASE("what a loop of frames holds when it fails is handed to the device, which may not be done with it") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {CountsReleased::elements});
  const auto fits = df::placeholder<float>(graph, {df::dynamic});
  const auto last = std::get<1>(df::while_loop([](auto i, auto) { return i < 3; },
                                               [&](auto i, auto v) {
                                                 const auto held = df::sin(v);
                                                 const auto sum = df::reduce_sum(df::reduce_sum(held) * fits + v);
                                                 return std::tuple{i + 1, df::Output<float>(held * sum)};
                                               },
                                               std::tuple{df::constant(graph, 0), x}));
  df::SessionOptions options{.devices = {std::make_shared<CountsReleased>()}};
  options.passes.lower_control_flow = true;
  df::Session session(graph, options);
  const auto run = [&](std::int64_t size) {
    CountsReleased::num_released = 0;
    session.run({{x, df::Tensor<float>({CountsReleased::elements})}, {fits, df::Tensor<float>({size})}}, last);
  };
  run(1);
  CHECK(CountsReleased::num_released > 6);
  CHECK(code_of([&] { run(2); }) == df::Code::invalid_argument);
  CHECK(CountsReleased::num_released >= 3);  // x, in the first iteration, and the values computed from it
}
