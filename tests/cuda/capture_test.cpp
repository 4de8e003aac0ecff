// Work of a GPU that is captured into graphs, which are launched instead of running its kernels.
#include "cuda/gpu_that_is_none.hpp"

#include "ops/op_runner.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>
#include <dflow/kernels/cuda/standard_kernels.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

constexpr cuda::GraphRecorder::Options captures_at_once{.runs_before = 1, .min_nodes = 1};
constexpr cuda::GraphRecorder::Options captures_nothing{.runs_before = -1};

const CudaDevice& gpu_of(const std::vector<std::shared_ptr<Device>>& devices, std::size_t i = 0) {
  return dynamic_cast<const CudaDevice&>(*devices[i]);
}

/// A network of two layers on a GPU, with numbers that are drawn in each step.
struct NetworkOnGpu {
  Graph graph{{.seed = 5}};
  Output<float> x, loss;
  Output<int> labels;
  Operation initialize, train;
  std::vector<Output<float>> weights;

  explicit NetworkOnGpu(bool draws = true) {
    x = placeholder<float>(graph, {-1, 6});
    labels = placeholder<int>(graph, {-1});
    const auto on = graph.device("/gpu:0");
    const Variable<float> w1(graph, random_normal<float>(graph, {6, 8}, {.seed = 1}), {.name = "w1"});
    const Variable<float> b1(graph, zeros<float>(graph, {8}), {.name = "b1"});
    const Variable<float> w2(graph, random_normal<float>(graph, {8, 4}, {.seed = 2}), {.name = "w2"});
    Output<float> hidden = relu(matmul(x, Output<float>(w1)) + Output<float>(b1));
    if (draws) hidden = dropout(hidden, 0.5f, {.seed = 3});
    loss = reduce_mean(sparse_softmax_cross_entropy(matmul(hidden, Output<float>(w2)), labels));
    train = train::Momentum(0.1f, 0.9f).minimize(loss);
    initialize = initialize_variables(graph);
    weights = {w1, b1, w2};
  }
  std::vector<Feed> feeds(int step, std::int64_t rows = 5) const {
    Tensor<int> classes({rows});
    for (std::int64_t i = 0; i < rows; ++i) classes.data()[i] = static_cast<int>((i + step) % 4);
    return {{x, random_numbers<float>({rows, 6}, static_cast<unsigned>(step))}, {labels, classes}};
  }
  /// The losses of so many steps, and then the weights.
  std::vector<AnyTensor> run(Session& session, int steps) const {
    session.run(initialize);
    std::vector<AnyTensor> all;
    for (int i = 0; i < steps; ++i) {
      all.push_back(run_edges<float>(session, feeds(i), {loss})[0]);
      session.run_erased({}, nullptr, feeds(i), {}, std::vector<Operation>{train}, {});
    }
    for (const Output<float>& each : weights) all.push_back(session.run(each));
    return all;
  }
};

bool all_equal(const std::vector<AnyTensor>& a, const std::vector<AnyTensor>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), bitwise_equal);
}

}  // namespace

TEST_CASE("steps that a GPU captures give the bits of steps whose kernels run", "[cuda][capture]") {
  const NetworkOnGpu network;
  std::vector<AnyTensor> wanted;
  std::map<std::string, std::uint64_t> launches;
  for (const auto& capture : {captures_nothing, cuda::GraphRecorder::Options{}, captures_at_once}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = 7});
    {
      const auto devices = gpus_and_cpu(driver, 1, capture);
      Session session(network.graph, {.devices = devices});
      const std::vector<AnyTensor> got = network.run(session, 12);
      if (wanted.empty()) {
        wanted = got;
        launches = driver->launches();
        CHECK(driver->num_graphs_launched() == 0);
        CHECK(gpu_of(devices).graphs().captured == 0);
      } else {
        CHECK(all_equal(got, wanted));
        CHECK(driver->num_graphs_launched() >= 2 * 8);
        CHECK(gpu_of(devices).graphs().launched == driver->num_graphs_launched());
        CHECK(gpu_of(devices).graphs().refused == 0);
        CHECK(gpu_of(devices).graphs().captured <= 24);
        // It is the same work.
        for (const auto& [name, count] : launches) {
          INFO(name);
          CHECK(driver->launches()[name] == count);
        }
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("every kernel of a GPU that repeats its work can be captured", "[cuda][capture]") {
  int checks = 0, failed = 0;
  std::uint64_t launched = 0, refused = 0;
  std::set<std::string> ops, run_by_kernels;
  std::map<std::string, int> done;  // by op and element type; a sanitizer sees the same for each type
  for (const OracleCase& oracle_case : oracle_cases()) {
    for (const DType t : oracle_case.types) {
      const KernelEntry* entry = standard_cuda_kernels().find(oracle_case.op);
      TypeArgs types;
      types.push_back(t);
      if (entry == nullptr || entry->op->role != OpRole::ordinary || entry->op->is_stateful ||
          !entry->supports_types(types)) {
        continue;
      }
      if (++done[is_sanitized ? oracle_case.op : str_cat(oracle_case.op, " ", dtype_name(t))] > 3) continue;
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = static_cast<std::uint64_t>(checks)});
      std::string why;
      {
        const auto built = build_case(oracle_case, t, InputsAs::feeds);
        const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
        Session session(built->graph, {.devices = devices, .passes = PassOptions::none()});
        try {
          for (int run = 0; run < 4; ++run) {
            const std::vector<AnyTensor> got = run_case(*built, session);
            for (std::size_t o = 0; o < oracle_case.outputs.size() && why.empty(); ++o) {
              const OracleTensor& want = oracle_case.outputs[o];
              why = difference(got[o], want, want.dtype_for(t), oracle_case);
            }
          }
        } catch (const std::exception& error) {
          why = error.what();
        }
        const cuda::GraphRecorder::Counts counts = gpu_of(devices).graphs();
        launched += counts.launched;
        refused += counts.refused;
        if (counts.refused != 0) std::cout << "  refused: " << oracle_case.title(t) << '\n';
        (counts.launched != 0 ? ops : run_by_kernels).insert(oracle_case.op);
      }
      ++checks;
      check_end(*driver);
      if (!why.empty() && ++failed <= 10) std::cout << "  " << oracle_case.title(t) << ": " << why << '\n';
    }
  }
  std::cout << "count: " << checks << " checks of kernels of " << ops.size() << " ops in graphs of a GPU, " << launched
            << " launched\n";
  for (const std::string& op : ops) run_by_kernels.erase(op);
  for (const std::string& op : run_by_kernels) std::cout << "  not captured: " << op << '\n';
  CHECK(failed == 0);
  CHECK(refused == 0);
  CHECK(ops.size() > 100);
}

TEST_CASE("a graph follows its inputs, and leaves alone what somebody keeps of its outputs", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {4});
    Operation initialize, keep;
    Output<float> y, kept, same;
    {
      const auto on = graph.device("/gpu:0");
      const Variable<float> v(graph, zeros<float>(graph, {4}), {.name = "v"});
      y = exp(x * 2.0f) + 1.0f;
      same = reshape(x, {2, 2});
      keep = v.assign(y);
      kept = v;
      initialize = initialize_variables(graph);
    }
    const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
    Session session(graph, {.devices = devices});
    session.run(initialize);
    const auto value = [](int i) { return std::exp(2 * 0.1f * static_cast<float>(i)) + 1.0f; };
    std::vector<Tensor<float>> results;
    std::vector<std::shared_ptr<AnyTensor>> held;  // so that what is fed is never where it was
    for (int i = 0; i < 12; ++i) {
      const auto fed = Tensor<float>::full({4}, 0.1f * static_cast<float>(i));
      if (i % 3 == 2) {
        // The variable still has its value from before.
        const float before = session.run(kept).data()[0];
        CHECK(before == Approx(i < 3 ? 0.0f : value(i - 3)));
        session.run({{x, fed}}, keep);
        CHECK(session.run(kept).data()[0] == Approx(value(i)));
      } else {
        const auto [now, as_it_was] = session.run({{x, fed}}, y, same);
        results.push_back(now);
        CHECK(as_it_was.data()[3] == fed.data()[3]);
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      CHECK(results[i].data()[2] == Approx(value(static_cast<int>(i + i / 2))));
    }
    CHECK(gpu_of(devices).graphs().launched > 3);
  }
  check_end(*driver);
}

TEST_CASE("an output that a variable keeps is not written to by the graph that made it", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {64});
    std::vector<Operation> keeps;
    std::vector<Output<float>> kept;
    Operation initialize;
    Output<float> y;
    {
      const auto on = graph.device("/gpu:0");
      y = sqrt(x * 4.0f) + 1.0f;
      for (int i = 0; i < 3; ++i) {
        const Variable<float> v(graph, zeros<float>(graph, {64}));
        keeps.push_back(v.assign(y));
        kept.push_back(v);
      }
      initialize = initialize_variables(graph);
    }
    Session session(graph, {.devices = gpus_and_cpu(driver, 1, captures_at_once)});
    session.run(initialize);
    // Each variable takes the output of the same nodes in another step.
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 3; ++i) {
        const float number = static_cast<float>(round * 3 + i);
        session.run({{x, Tensor<float>::full({64}, number)}}, keeps[static_cast<std::size_t>(i)]);
        session.run({{x, Tensor<float>::full({64}, 100 + number)}}, y);
      }
      for (int i = 0; i < 3; ++i) {
        const float number = static_cast<float>(round * 3 + i);
        CHECK(session.run(kept[static_cast<std::size_t>(i)]).data()[63] == Approx(std::sqrt(number * 4) + 1));
      }
    }
  }
  check_end(*driver);
}

TEST_CASE("what is captured is for its shapes and for the host's numbers alone", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {-1});
    const auto begin = placeholder<std::int32_t>(graph, {1});
    Output<float> y, part;
    {
      const auto on = graph.device("/gpu:0");
      y = x * x + 1.0f;
      part = slice(y, begin, constant(graph, Tensor<std::int32_t>(Shape{1}, {2}))) - 1.0f;
    }
    const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
    Session session(graph, {.devices = devices});
    const auto check = [&](std::int64_t n, std::int32_t from) {
      Tensor<float> fed({n});
      for (std::int64_t i = 0; i < n; ++i) fed.data()[i] = static_cast<float>(i);
      const auto got = session.run({{x, fed}, {begin, Tensor<std::int32_t>(Shape{1}, {from})}}, part);
      REQUIRE(got.shape() == Shape{2});
      CHECK(got.data()[0] == static_cast<float>(from * from));
      CHECK(got.data()[1] == static_cast<float>((from + 1) * (from + 1)));
    };
    for (int i = 0; i < 10; ++i) check(8, 3);
    const std::uint64_t of_one_shape = gpu_of(devices).graphs().launched;
    CHECK(of_one_shape >= 6);
    for (int i = 0; i < 8; ++i) check(i % 2 == 0 ? 8 : 11, 3);  // two shapes in turn
    for (int i = 0; i < 8; ++i) check(8, i % 3);
    CHECK(gpu_of(devices).graphs().launched > of_one_shape);
    for (int i = 0; i < 100; ++i) check(8 + i, i % 6);  // never the same
    for (int i = 0; i < 5; ++i) check(20, 2);
    CHECK(gpu_of(devices).graphs().alive <= 8);
  }
  check_end(*driver);
}

TEST_CASE("an error that a kernel finds in a graph names its node, and the next step is well", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<int>(graph, {3});
    const auto rows = placeholder<int>(graph, {2});
    Output<int> y;
    Output<float> z;
    {
      const auto on = graph.device("/gpu:0");
      const auto hundred = constant(graph, Tensor<int>::full({3}, 100));
      y = div(hundred, x, {.name = "quotient"}) + div(hundred, x - 1, {.name = "second"});
      z = gather(constant(graph, Tensor<float>(Shape{3}, {1, 2, 3})), rows) * 2.0f;
    }
    const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
    Session session(graph, {.devices = devices});
    const auto good = Tensor<int>(Shape{3}, {2, 5, 11});
    const auto indices = Tensor<int>(Shape{2}, {2, 0});
    for (int i = 0; i < 12; ++i) {
      INFO("step " << i);
      const auto [quotients, gathered] = session.run({{x, good}, {rows, indices}}, y, z);
      CHECK(quotients.data()[0] == 150);
      CHECK(gathered.data()[0] == 6);
      const auto bad_x = [&](std::vector<int> values, const char* node) {
        try {
          session.run({{x, Tensor<int>(Shape{3}, values)}, {rows, indices}}, y, z);
          FAIL_CHECK("no error");
        } catch (const Error& error) {
          CHECK(error.code() == Code::invalid_argument);
          CHECK_THAT(error.what(), Catch::Matchers::Contains(node));
          CHECK_THAT(error.what(), Catch::Matchers::Contains("capture_test.cpp"));
        }
      };
      bad_x({2, 0, 7}, "quotient");
      bad_x({2, 1, 7}, "second");
      CHECK_THROWS_WITH(session.run({{x, good}, {rows, Tensor<int>(Shape{2}, {2, 9})}}, y, z),
                        Catch::Matchers::Contains("9"));
    }
    CHECK(gpu_of(devices).graphs().launched > 30);
  }
  check_end(*driver);
}

TEST_CASE("three threads run a step that is captured, and another one", "[cuda][capture]") {
  const NetworkOnGpu network(false);
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = 3});
  {
    Session session(network.graph, {.devices = gpus_and_cpu(driver, 1, captures_at_once)});
    session.run(network.initialize);
    std::vector<AnyTensor> wanted;
    for (int i = 0; i < 4; ++i) wanted.push_back(run_edges<float>(session, network.feeds(i), {network.loss})[0]);
    std::atomic<int> wrong{0};
    std::vector<std::string> errors(3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 60; ++i) {
          const int which = (i + t) % 4;
          try {
            const auto got = run_edges<float>(session, network.feeds(which), {network.loss})[0];
            if (!bitwise_equal(got, wanted[static_cast<std::size_t>(which)])) ++wrong;
          } catch (const std::exception& error) {
            errors[static_cast<std::size_t>(t)] = error.what();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(errors == std::vector<std::string>(3));
    CHECK(wrong == 0);
    CHECK(driver->num_graphs_launched() > 0);
  }
  check_end(*driver);
}

TEST_CASE("graphs go where the GPU's memory is needed, and where there are too many", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = 1 << 20});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {-1});
    std::vector<Output<float>> ys;
    {
      const auto on = graph.device("/gpu:0");
      for (int i = 0; i < 6; ++i) ys.push_back(exp(x * static_cast<float>(i) * 0.01f) * 2.0f + 1.0f);
    }
    auto capture = captures_at_once;
    capture.max_graphs = 3;
    const auto devices = gpus_and_cpu(driver, 1, capture);
    Session session(graph, {.devices = devices});
    const auto check = [&](std::int64_t n) {
      for (std::size_t i = 0; i < ys.size(); ++i) {
        for (int run = 0; run < 4; ++run) {
          const auto got = session.run({{x, Tensor<float>::full({n}, 1)}}, ys[i]);
          CHECK(got.data()[n - 1] == Approx(std::exp(static_cast<float>(i) * 0.01f) * 2 + 1));
        }
        CHECK(gpu_of(devices).graphs().alive <= 3);
      }
    };
    check(512);
    CHECK(gpu_of(devices).graphs().alive == 3);
    check(40'000);  // more than three graphs of it leave room for
    session.release_memory();
    CHECK(gpu_of(devices).graphs().alive == 0);
    check(512);
  }
  check_end(*driver);
}

TEST_CASE("a step whose graph another one takes again and again for its memory stops capturing, and goes on",
          "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {-1});
    Output<float> captured, large;
    {
      const auto on = graph.device("/gpu:0");
      captured = exp(x * 0.01f) * 2.0f + 1.0f;
      large = x * 3.0f;
    }
    const std::vector<std::shared_ptr<Device>> devices{
        std::make_shared<CudaDevice>(
            CudaDeviceOptions{.driver = driver, .memory_limit_bytes = 1 << 20, .capture = captures_at_once}),
        std::make_shared<CpuDevice>(CpuDeviceOptions{})};
    Session session(graph, {.devices = devices});
    const auto run = [&](const Output<float>& y, std::int64_t n, float wanted) {
      CHECK(session.run({{x, Tensor<float>::full({n}, 1)}}, y).data()[n - 1] == Approx(wanted));
    };
    std::uint64_t by_then = 0;
    for (int i = 0; i < 120; ++i) {
      INFO("round " << i);
      for (int again = 0; again < 2; ++again) run(captured, 80'000, std::exp(0.01f) * 2 + 1);
      run(large, 180'000, 3);  // one kernel, which is not captured
      if (i == 100) by_then = gpu_of(devices).graphs().captured;
    }
    CHECK(by_then > 3);
    CHECK(gpu_of(devices).graphs().captured == by_then);
  }
  check_end(*driver);
}

TEST_CASE("loops and branches on a GPU run captured bodies", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {8});
    Output<float> y, dx;
    {
      const auto on = graph.device("/gpu:0");
      const auto count = constant(graph, 0);
      const auto [n, sum] =
          while_loop([](Output<int> i, Output<float>) { return i < 20; },
                     [&](Output<int> i, Output<float> s) { return std::tuple(i + 1, s * 0.5f + tanh(x) * 2.0f); },
                     std::tuple(count, x));
      y = cond(
          reduce_sum(x) > constant(graph, 0.0f), [&] { return sum * 2.0f - 1.0f; }, [&] { return exp(sum) + 1.0f; });
      dx = gradients(reduce_sum(y), x);
    }
    const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
    Session on_gpu(graph, {.devices = devices});
    Session on_cpu(graph, {.devices = {std::make_shared<CpuDevice>(CpuDeviceOptions{})}, .soft_placement = true});
    for (int i = 0; i < 6; ++i) {
      const auto fed = Tensor<float>::full({8}, i % 2 == 0 ? 0.3f + 0.1f * static_cast<float>(i) : -0.4f);
      const auto [a, da] = on_gpu.run({{x, fed}}, y, dx);
      const auto [b, db] = on_cpu.run({{x, fed}}, y, dx);
      for (int e = 0; e < 8; ++e) {
        CHECK(a.data()[e] == Approx(b.data()[e]).epsilon(1e-5));
        CHECK(da.data()[e] == Approx(db.data()[e]).epsilon(1e-4));
      }
    }
    CHECK(gpu_of(devices).graphs().launched > 20);
  }
  check_end(*driver);
}

TEST_CASE("a step that fails has updated nothing that comes after what failed, captured or not", "[cuda][capture]") {
  for (const auto& capture : {captures_nothing, cuda::GraphRecorder::Options{}, captures_at_once}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      const auto x = placeholder<int>(graph, {3});
      const auto on = graph.device("/gpu:0");
      const Variable<int> v(graph, zeros<int>(graph, {3}));
      const auto y = div(ones<int>(graph, {3}) * 100, x) + 1;
      const Operation update = v.assign_add(x);
      Session session(graph, {.devices = gpus_and_cpu(driver, 1, capture)});
      session.run(initialize_variables(graph));
      std::vector<AnyTensor> results(1);
      int sum = 0;
      for (int step = 0; step < 6; ++step) {
        const bool fails = step % 2 == 0;
        const std::vector<Feed> feeds{{x, Tensor<int>({3}, {2, fails ? 0 : 1, 7})}};
        const Status status = status_of([&] {
          session.run_erased({}, nullptr, feeds, std::vector<AnyOutput>{y}, std::vector<Operation>{update}, results);
        });
        CHECK(status.code() == (fails ? Code::invalid_argument : Code::ok));
        sum += fails ? 0 : 2;
        CHECK(session.run(v)(0) == sum);
      }
    }
    check_end(*driver);
  }
}

TEST_CASE("threads that run more steps than there may be graphs get the values of their kernels", "[cuda][capture]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {8});
    std::vector<Output<float>> results;
    {
      const auto on = graph.device("/gpu:0");
      for (int i = 0; i < 24; ++i) results.push_back(square(x + static_cast<float>(i)) - 1.0f);
    }
    const auto devices = gpus_and_cpu(driver, 1, {.runs_before = 1, .min_nodes = 1, .max_graphs = 2});
    Session session(graph, {.devices = devices});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 60; ++i) {
          const int which = (i / 3 * 7 + t * 5) % 24;
          const float got =
              session.run({{x, Tensor<float>::full({8}, 1.0f)}}, results[static_cast<std::size_t>(which)])(7);
          const auto base = static_cast<float>(1 + which);
          if (got != base * base - 1) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(gpu_of(devices).graphs().alive <= 6);
  }
  check_end(*driver);
}

namespace {

/// A program's own kind of device.
struct OwnGpu {
  static constexpr std::string_view type = "GPU";
};

}  // namespace

template <>
struct dflow::Kernel<MatMul, OwnGpu, float> {
  void operator()(KernelContext&) const {}
};

TEST_CASE("kernels of a program's own for a library's op are not captured unless they say that they repeat",
          "[cuda][capture]") {
  STATIC_REQUIRE(!dflow::detail::device_repeats<Kernel<MatMul, OwnGpu, float>>);
  STATIC_REQUIRE(dflow::detail::device_repeats<Kernel<MatMul, Cuda, float>>);
}

TEST_CASE("a traced step runs its kernels, and one that is cancelled is told so", "[cuda][capture]") {
  const NetworkOnGpu network;
  const auto driver = std::make_shared<FakeDriver>();
  {
    Session session(network.graph, {.devices = gpus_and_cpu(driver, 1, captures_at_once)});
    network.run(session, 4);
    const std::uint64_t launched = driver->num_graphs_launched();
    CHECK(launched > 0);
    RunMetadata metadata;
    std::vector<AnyTensor> results(1);
    session.run_erased({.trace = true}, &metadata, network.feeds(0), std::vector<AnyOutput>{network.loss}, {}, results);
    CHECK(driver->num_graphs_launched() == launched);
    CHECK(metadata.stats.nodes.size() > 5);
    std::stop_source stop;
    stop.request_stop();
    CHECK_THROWS(session.run_erased({.stop = stop.get_token()}, nullptr, network.feeds(0),
                                    std::vector<AnyOutput>{network.loss}, {}, results));
    session.run_erased({}, nullptr, network.feeds(0), std::vector<AnyOutput>{network.loss}, {}, results);
    CHECK(driver->num_graphs_launched() > launched);
  }
  check_end(*driver);
}

TEST_CASE("every call and all work of captured training may fail, and nothing is left", "[cuda][capture]") {
  constexpr std::uint64_t every = is_sanitized ? 23 : 5;
  const NetworkOnGpu network;
  std::uint64_t calls = 0;
  std::vector<AnyTensor> wanted;
  {
    const auto driver = std::make_shared<FakeDriver>();
    Session session(network.graph, {.devices = gpus_and_cpu(driver, 1, captures_at_once)});
    wanted = network.run(session, 4);
    calls = driver->num_calls();
  }
  using cuda::ErrorCode;
  int injected = 0, failed = 0, refused = 0;
  std::uint64_t first = 0;
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::capture_invalidated, ErrorCode::illegal_address}) {
    for (std::uint64_t n = first++; n < calls; n += every) {
      for (const bool is_work : {false, true}) {
        if (is_work && (!is_sticky(code) || n > 200)) continue;
        INFO((is_work ? "work " : "call ") << n << ", " << name_of(code));
        const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
        if (is_work) {
          driver->fail_work(n, code);
        } else {
          driver->fail_call(n, code);
        }
        ++injected;
        try {
          const auto devices = gpus_and_cpu(driver, 1, captures_at_once);
          Session session(network.graph, {.devices = devices});
          const std::vector<AnyTensor> got = network.run(session, 4);
          CHECK(all_equal(got, wanted));
          refused += gpu_of(devices).graphs().refused != 0;
        } catch (const Error& error) {
          ++failed;
          CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
        }
        check_end(*driver);
      }
    }
  }
  std::cout << "count: " << injected << " errors injected into training that a GPU captures, " << failed
            << " ended a step, " << refused << " a capture\n";
  CHECK(failed > 0);
  CHECK(refused > 0);
}
