// Chains of elementwise nodes as kernels that are made when a step is compiled: their results, their memory, and the
// cases without a chain kernel.
#include "cuda/chains/chain_beside.hpp"

#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

#include <cmath>
#include <iostream>
#include <source_location>
#include <string>
#include <thread>

using namespace dflow;
using namespace dflow::testing;
using cuda::ErrorCode;

namespace {

using Launches = std::map<std::string, std::uint64_t>;

/// x sigmoid(1.702 x), an approximation of gelu.
struct QuickGelu : ElementwiseOp<"QuickGelu", FloatTypes> {
  static constexpr bool chains = true;
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + exp(T(-1.702) * x));
  }
};

/// The same function, which says nothing of chains.
struct LoneGelu : ElementwiseOp<"LoneGelu", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return QuickGelu::apply<T>(x);
  }
};

}  // namespace

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ElementwiseBodies<dflow::TypeList<QuickGelu, LoneGelu>>);

TEST_CASE("two elementwise nodes on a GPU are one kernel", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {2, 3});
    Output<float> y;
    {
      const auto on = graph.device("/gpu:0");
      y = tanh(exp(x));
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const Tensor<float> in({2, 3}, {-1, 0, 1, 2, 3, 4});
    for (int again = 0; again < 3; ++again) {
      const Tensor<float> out = session.run({{x, in}}, y);
      for (std::int64_t i = 0; i < 6; ++i) CHECK(out.data()[i] == std::tanh(std::exp(in.data()[i])));
    }
  }
  CHECK(driver->launches() == Launches{{"chain", 3}});
  CHECK(driver->nvrtc().texts().size() == 1);
  check_end(*driver);
}

TEST_CASE("a chain broadcasts its inputs, and gives each of its results that is wanted", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {4, 3, 5}), row = placeholder<float>(graph, {3, 1}),
             one = placeholder<float>(graph, {});
  std::vector<AnyOutput> fetches;
  {
    const auto on = graph.device("/gpu:0");
    const auto sum = x * 2.0f + row;
    const auto activated = tanh(sum) * one;
    fetches = {sum, square(activated), greater(activated, sum)};
  }
  const auto beside = run_beside(
      graph,
      {{x, random_numbers<float>({4, 3, 5}, 1)}, {row, random_numbers<float>({3, 1}, 2)}, {one, Tensor<float>(0.5f)}},
      fetches);
  CHECK(beside.launches == Launches{{"chain, broadcast", 1}});
  CHECK(beside.chains.made == 1);
  CHECK(beside.chains.runs == 1);
  CHECK(beside.chains.runs_apart == 0);
}

TEST_CASE("floats of 16 bits are rounded in a chain where each node rounds them", "[cuda]") {
  const auto check = []<class T>() {
    Graph graph;
    const auto x = placeholder<T>(graph, {1000}), y = placeholder<T>(graph, {1000});
    AnyOutput z;
    {
      const auto on = graph.device("/gpu:0");
      z = sigmoid(x * y + x) / (abs(y) + T(1.0f)) - exp(x * T(0.1f));
    }
    const auto beside = run_beside(graph, {{x, random_numbers<T>({1000}, 3)}, {y, random_numbers<T>({1000}, 4)}}, {z});
    CHECK(beside.launches == Launches{{"chain", 1}});
  };
  check.operator()<Half>();
  check.operator()<BFloat16>();
}

TEST_CASE("casts, choices, biases and sums of many go into chains", "[cuda]") {
  Graph graph;
  const auto x = placeholder<Half>(graph, {6, 4});
  const auto bias = placeholder<Half>(graph, {4});
  AnyOutput y, truths;
  {
    const auto on = graph.device("/gpu:0");
    const auto wide = cast<float>(bias_add(x, bias));
    const auto is_large = greater(wide, constant(graph, 0.5f));
    const auto chosen = select(is_large, sqrt(abs(wide)), wide * 3.0f);
    y = cast<std::int8_t>(add_n(std::vector{chosen, wide, chosen}) * 100.0f);
    truths = is_large;
  }
  const auto beside =
      run_beside(graph, {{x, random_numbers<Half>({6, 4}, 5)}, {bias, random_numbers<Half>({4}, 6)}}, {y, truths});
  CHECK(beside.launches == Launches{{"chain, broadcast", 1}});
}

TEST_CASE("an op of one's own goes into chains where it says so, and so do its derivatives", "[cuda]") {
  const auto run = [](auto apply_op, const char* name) {
    INFO(name);
    Graph graph;
    const auto x = placeholder<float>(graph, {64});
    AnyOutput y, dx;
    {
      const auto on = graph.device("/gpu:0");
      const auto activated = apply_op(x * 2.0f);
      y = activated + 1.0f;
      dx = gradients(reduce_sum(square(activated)), x);
    }
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
    std::vector<AnyTensor> out(2);
    {
      Session session(
          graph, {.ops = OpSet{standard_ops + ops<QuickGelu, LoneGelu>,
                               {kernels_of<Cuda>(ops<QuickGelu, LoneGelu>), kernels_of<Cpu>(ops<QuickGelu, LoneGelu>)}},
                  .devices = gpus_and_cpu(driver)});
      const std::vector<AnyOutput> fetches{y, dx};
      const std::vector<Feed> feeds{{x, random_numbers<float>({64}, 7)}};
      session.run_erased({}, nullptr, feeds, fetches, {}, out);
    }
    check_end(*driver);
    return std::pair{std::move(out), driver->launches()};
  };
  const auto [chained, chained_launches] = run([](const Output<float>& x) { return apply<QuickGelu>(x); }, "chained");
  const auto [alone, alone_launches] = run([](const Output<float>& x) { return apply<LoneGelu>(x); }, "alone");
  for (int i = 0; i < 2; ++i) CHECK(same_elements(chained[i], alone[i]));
  CHECK(chained_launches.count("elementwise") == 0);
  CHECK(alone_launches.count("elementwise") == 1);
}

TEST_CASE("a chain writes into inputs that nobody else reads any more", "[cuda]") {
  // Three tensors fit: the feed, and two others.
  const auto driver =
      std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = std::size_t{13} << 18, .has_nvrtc = true});
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {1 << 18}), y = placeholder<float>(graph, {1 << 18});
    Output<float> sum, difference;
    {
      const auto on = graph.device("/gpu:0");
      sum = exp(x * 0.5f) + y;
      difference = exp(x * 0.5f) - y;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    const auto a = Tensor<float>::full({1 << 18}, 2), b = Tensor<float>::full({1 << 18}, 3);
    const auto [s, d] = session.run({{x, a}, {y, b}}, sum, difference);
    CHECK(s.data()[5] == std::exp(1.0f) + 3);
    CHECK(d.data()[5] == std::exp(1.0f) - 3);
  }
  CHECK(driver->launches() == Launches{{"chain", 1}});
  check_end(*driver);
}

TEST_CASE("members of other shapes than were expected run one after the other", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3}), y = placeholder<float>(graph, {dynamic, 3});
  std::vector<AnyOutput> fetches;
  {
    const auto on = graph.device("/gpu:0");
    const auto narrow = x * 2.0f;
    fetches = {narrow, narrow + y};
  }
  const auto run = [&](std::int64_t rows_of_x, std::int64_t rows_of_y) {
    return run_beside(
        graph, {{x, random_numbers<float>({rows_of_x, 3}, 1)}, {y, random_numbers<float>({rows_of_y, 3}, 2)}}, fetches);
  };
  CHECK(run(4, 4).chains.runs == 1);
  CHECK(run(4, 1).chains.runs == 1);
  const auto apart = run(1, 4);  // the first result is a row, the second is not
  CHECK(apart.chains.runs == 0);
  CHECK(apart.chains.runs_apart == 1);
  CHECK(apart.launches == apart.launches_before);
  CHECK(run(0, 0).status.ok());
  CHECK(run(0, 1).status.ok());
}

TEST_CASE("shapes that do not fit are an error of the chain, at the line of its first node", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, PartialShape::unknown()),
             y = placeholder<float>(graph, PartialShape::unknown());
  AnyOutput z;
  std::uint_least32_t line = 0;
  {
    const auto on = graph.device("/gpu:0");
    line = std::source_location::current().line() + 1;
    const auto doubled = mul(x, x, {.name = "doubled"});
    z = exp(add(doubled, y, {.name = "sum"}), {.name = "power"});
  }
  const auto beside = run_beside(graph, {{x, Tensor<float>({2})}, {y, Tensor<float>({3})}}, {z});
  CHECK(beside.status.code() == Code::invalid_argument);
  CHECK(mentions(beside.status, "shapes [2] and [3] do not broadcast together"));
  CHECK(mentions(beside.status, "doubled + sum + power"));
  CHECK(mentions(beside.status, str_cat("chains_test.cpp:", line)));
  CHECK(mentions(beside.status, "GPU:0"));
}

TEST_CASE("bodies of loops, branches and functions have chains of their own", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {8});
  AnyOutput y, dx;
  {
    const auto on = graph.device("/gpu:0");
    const auto cell = function(graph, "cell", [](Output<float> a, Output<float> b) { return tanh(a * b) + a; });
    const auto state = while_loop([](Output<float> s) { return reduce_max(abs(s)) < 50.0f; },
                                  [&](Output<float> s) { return sigmoid(s) + s * 1.5f + 0.25f; }, cell(x, x));
    y = cond(
        reduce_sum(state) < 0.0f, [&] { return exp(state * 0.01f); }, [&] { return sqrt(abs(state)) * 2.0f; });
    dx = gradients(reduce_sum(Output<float>(y)), x);
  }
  const auto beside = run_beside(graph, {{x, random_numbers<float>({8}, 8)}}, {y, dx});
  REQUIRE(beside.status.ok());
  CHECK(beside.chains.runs > 4);
  CHECK(beside.chains.runs_apart == 0);
}

TEST_CASE("a side of a branch that is not taken leaves the rest of a chain alone", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {4});
  const auto side = placeholder<bool>(graph, {});
  AnyOutput a, merged;
  {
    const auto on = graph.device("/gpu:0");
    const auto [no, yes] = frames::switch_on(x, side);
    const auto power = exp(x);
    const auto taken = tanh(power + yes), left = neg(exp(no));
    a = power;
    merged = frames::merge({taken, left}).value;
  }
  for (const bool takes : {false, true}) {
    const auto beside =
        run_beside(graph, {{x, random_numbers<float>({4}, 1)}, {side, Tensor<bool>(takes)}}, {a, merged});
    REQUIRE(beside.status.ok());
    CHECK(beside.chains.runs_apart == 0);
  }
}

TEST_CASE("updates of a training by ops are chains", "[cuda]") {
  // Adam, as formulas: one launch for the moments and the value of each variable, where there were twelve.
  Graph graph;
  const auto value = placeholder<float>(graph, {100}), gradient = placeholder<float>(graph, {100}),
             m = placeholder<float>(graph, {100}), v = placeholder<float>(graph, {100}),
             rate = placeholder<float>(graph, {});
  std::vector<AnyOutput> fetches;
  {
    const auto on = graph.device("/gpu:0");
    const auto new_m = m * 0.9f + gradient * 0.1f;
    const auto new_v = v * 0.999f + square(gradient) * 0.001f;
    fetches = {new_m, new_v, value - rate * new_m / (sqrt(new_v) + 1e-8f)};
  }
  std::vector<Feed> feeds{{rate, Tensor<float>(0.01f)}};
  unsigned seed = 0;
  for (const auto& each : {value, gradient, m}) feeds.emplace_back(each, random_numbers<float>({100}, ++seed));
  feeds.emplace_back(v, Tensor<float>::full({100}, 0.5f));
  const auto beside = run_beside(graph, feeds, fetches);
  CHECK(beside.launches == Launches{{"chain", 1}});
  CHECK(beside.launches_before.at("elementwise") == 12);
}

namespace {

/// A layer with bias and gelu, normalised, and a swish behind it: its result, and the gradients by input and weights.
template <class T>
std::vector<AnyOutput> normalized_layer(const Output<T>& x, const Output<T>& w, const Output<T>& bias) {
  const auto sum = bias_add(matmul(x, w), bias);
  const auto gelu = sum * T(0.5f) * (erf(sum * T(0.70710678f)) + T(1.0f));
  const auto centred = gelu - reduce_mean(gelu, {-1}, {.keep_dims = true});
  const auto normal = centred * rsqrt(reduce_mean(square(centred), {-1}, {.keep_dims = true}) + T(1e-3f));
  const auto swish = normal * sigmoid(normal);
  const auto loss = reduce_sum(square(swish));
  return {swish, gradients(loss, x), gradients(loss, w), gradients(loss, bias)};
}

}  // namespace

TEST_CASE("a layer with gelu, normalisation and swish has the same bits with chains, and its gradients too", "[cuda]") {
  const auto run = []<class T>() {
    Graph graph;
    const auto x = placeholder<T>(graph, {dynamic, 6}), w = placeholder<T>(graph, {6, 8}),
               b = placeholder<T>(graph, {8});
    std::vector<AnyOutput> fetches;
    {
      const auto on = graph.device("/gpu:0");
      fetches = normalized_layer<T>(x, w, b);
    }
    const auto beside = run_beside(
        graph, {{x, random_numbers<T>({5, 6}, 1)}, {w, random_numbers<T>({6, 8}, 2)}, {b, random_numbers<T>({8}, 3)}},
        fetches);
    REQUIRE(beside.status.ok());
    const auto launched = [](const Launches& launches) {
      std::uint64_t all = 0;
      for (const auto& [name, count] : launches) all += count;
      return all;
    };
    std::cout << "count: a layer of " << dtype_name(dtype_of<T>) << " and its gradients, " << launched(beside.launches)
              << " launches instead of " << launched(beside.launches_before) << '\n';
    CHECK(beside.chains.runs_apart == 0);
    CHECK(launched(beside.launches) * 2 < launched(beside.launches_before));
  };
  run.operator()<float>();
  run.operator()<double>();
  run.operator()<Half>();
}

TEST_CASE("a text that NVRTC refuses, and code that does not load, leave the members to their own kernels", "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {100});
  Output<float> y;
  {
    const auto on = graph.device("/gpu:0");
    y = tanh(exp(x) - 1.0f);
  }
  const auto run = [&](auto prepare, std::string_view why) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
    prepare(driver->nvrtc());
    {
      auto devices = gpus_and_cpu(driver);
      const auto gpu = std::static_pointer_cast<CudaDevice>(devices.front());
      Session session(graph, {.devices = std::move(devices)});
      const Tensor<float> in = random_numbers<float>({100}, 9);
      for (int i = 0; i < 2; ++i) {
        const Tensor<float> out = session.run({{x, in}}, y);
        CHECK(out.data()[7] == std::tanh(std::exp(in.data()[7]) - 1.0f));
      }
      const cuda::ChainCounts chains = gpu->chains();
      CHECK(chains.made == 0);
      CHECK(chains.refused == 1);
      CHECK(chains.runs_apart == 2);
      CHECK_THAT(chains.refusal, Catch::Matchers::Contains(std::string(why)));
    }
    CHECK(driver->launches() == Launches{{"elementwise", 6}});
    check_end(*driver);
  };
  run([](FakePrograms& nvrtc) { nvrtc.refuse("chain.cu(1): error: no"); }, "error: no");
  run([](FakePrograms& nvrtc) { nvrtc.fail_loads(ErrorCode::no_kernel_image); }, "cudaErrorNoKernelImageForDevice");
  run([](FakePrograms& nvrtc) { nvrtc.fail_loads(ErrorCode::out_of_memory); }, "emory");
}

TEST_CASE("a chain's kernel is made once there is memory for it, and code that was refused is not loaded again",
          "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {100});
  Output<float> y;
  {
    const auto on = graph.device("/gpu:0");
    y = tanh(exp(x) - 1.0f);
  }
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::no_kernel_image}) {
    INFO(cuda::name_of(code));
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
    {
      const auto devices = gpus_and_cpu(driver);
      const auto gpu = std::static_pointer_cast<CudaDevice>(devices.front());
      const Tensor<float> in = random_numbers<float>({100}, 9);
      for (const ErrorCode now : {code, ErrorCode::ok}) {
        driver->nvrtc().fail_loads(now);
        Session session(graph, {.devices = devices});
        const Tensor<float> out = session.run({{x, in}}, y);
        CHECK(out.data()[7] == std::tanh(std::exp(in.data()[7]) - 1.0f));
      }
      const bool is_made = code == ErrorCode::out_of_memory;
      CHECK(gpu->chains().made == (is_made ? 1 : 0));
      CHECK(gpu->chains().refused == (is_made ? 1 : 2));
    }
    check_end(*driver);
  }
}

TEST_CASE("every call that makes a chain's kernel may fail: nothing is left, and the step is right or says so",
          "[cuda]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {4, 100}), row = placeholder<float>(graph, {100});
  Output<float> y;
  {
    const auto on = graph.device("/gpu:0");
    y = tanh(exp(x) - row) * row;
  }
  const Tensor<float> in = random_numbers<float>({4, 100}, 1), added = random_numbers<float>({100}, 2);
  const auto run = [&](const std::shared_ptr<FakeDriver>& driver) {
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    for (int i = 0; i < 2; ++i) {
      const Tensor<float> out = session.run({{x, in}, {row, added}}, y);
      REQUIRE(out.data()[101] == std::tanh(std::exp(in.data()[101]) - added.data()[1]) * added.data()[1]);
    }
  };
  std::uint64_t calls = 0;
  {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
    run(driver);
    calls = driver->num_calls();
    check_end(*driver);
  }
  int injected = 0, apart = 0, failed = 0;
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::invalid_value, ErrorCode::not_supported,
                               ErrorCode::no_kernel_image, ErrorCode::illegal_address}) {
    for (std::uint64_t n = 0; n < calls; ++n) {
      INFO("call " << n << ", " << cuda::name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n, .has_nvrtc = true});
      driver->fail_call(n, code);
      ++injected;
      try {
        run(driver);
        apart += driver->launches().contains("elementwise") ? 1 : 0;
      } catch (const Error& error) {
        ++failed;
        CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of calls injected beside chains, " << apart
            << " steps member by member, " << failed << " that failed\n";
  CHECK(apart >= 10);
  CHECK(failed > 10);
}

TEST_CASE("sessions on several threads make one chain's kernel, and run it", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
  {
    const auto devices = gpus_and_cpu(driver);
    Graph graph;
    const auto x = placeholder<float>(graph, {1000});
    Output<float> y;
    {
      const auto on = graph.device("/gpu:0");
      y = exp(sqrt(abs(x)) * 0.5f);
    }
    const Tensor<float> in = random_numbers<float>({1000}, 1);
    std::vector<Tensor<float>> out(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < out.size(); ++t) {
      threads.emplace_back([&, t] {
        Session session(graph, {.devices = devices});
        for (int i = 0; i < 5; ++i) out[t] = session.run({{x, in}}, y);
      });
    }
    for (std::thread& each : threads) each.join();
    for (const Tensor<float>& each : out) CHECK(each.data()[3] == std::exp(std::sqrt(std::fabs(in.data()[3])) * 0.5f));
  }
  CHECK(driver->launches() == Launches{{"chain", 20}});
  check_end(*driver);
}

TEST_CASE("kernels of chains that were not used for long go back", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.has_nvrtc = true});
  {
    const auto core = std::make_shared<cuda::DeviceCore>(driver, 0);
    cuda::ChainPrograms programs(core, 0, 2);
    const auto text = [](int i) {
      return str_cat("extern \"C\" __global__ void chain_dense(const __grid_constant__ int",
                     " args) { static_cast<void>(", i, "); }");
    };
    const auto kept = programs.find({text(0), false});
    REQUIRE(cuda::ChainPlanning::program_of(kept->handle()).is_made());
    for (int i = 1; i < 5; ++i) static_cast<void>(programs.find({text(i), false}));
    CHECK(programs.size() == 2);
    CHECK(driver->nvrtc().num_alive() == 3);  // two, and the one that is held
    CHECK(programs.find({text(0), false}) != kept);
  }
  check_end(*driver);
}

TEST_CASE("without NVRTC nothing is put into chains", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {10});
    Output<float> y;
    {
      const auto on = graph.device("/gpu:0");
      y = tanh(exp(x));
    }
    Session session(graph, {.devices = gpus_and_cpu(driver)});
    session.run({{x, Tensor<float>({10})}}, y);
  }
  CHECK(driver->launches() == Launches{{"elementwise", 2}});
  check_end(*driver);
}
