// Updates of many variables on a GPU that run as one.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

using MakeOptimizer = std::function<std::unique_ptr<train::Optimizer>()>;

struct NamedOptimizer {
  const char* alone;     ///< its launch for one variable
  const char* together;  ///< for many
  MakeOptimizer make;
};

const std::vector<NamedOptimizer>& all_optimizers() {
  static const std::vector<NamedOptimizer> all = {
      {"gradient descent", "joint gradient descent", [] { return std::make_unique<train::GradientDescent>(0.1f); }},
      {"momentum", "joint momentum", [] { return std::make_unique<train::Momentum>(0.1f, 0.9f); }},
      {"momentum", "joint momentum",
       [] { return std::make_unique<train::Momentum>(0.1f, 0.9f, train::MomentumOptions{.use_nesterov = true}); }},
      {"adam", "joint adam", [] { return std::make_unique<train::Adam>(0.05f); }},
  };
  return all;
}

SessionOptions on_gpu(const std::shared_ptr<FakeDriver>& driver, bool joins) {
  SessionOptions options{.num_threads = 2, .devices = gpus_and_cpu(driver)};
  options.passes.joint_kernels = joins;
  return options;
}

std::uint64_t launches_of(const FakeDriver& driver, const std::string& name) {
  const auto all = driver.launches();
  const auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

/// The values of all variables of a graph.
std::vector<AnyTensor> held_by(const Graph& graph, Session& session) {
  std::vector<AnyOutput> reads;
  for (const AnyVariable& variable : global_variables(graph)) reads.push_back(variable.read_edge());
  std::vector<AnyTensor> values(reads.size());
  session.run_erased({}, nullptr, {}, reads, {}, values);
  return values;
}

bool have_same_bits(const std::vector<AnyTensor>& a, const std::vector<AnyTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const AnyTensor& x, const AnyTensor& y) {
    return x.shape() == y.shape() && (x.bytes() == 0 || std::memcmp(x.raw_data(), y.raw_data(), x.bytes()) == 0);
  });
}

/// No elements, one, odd numbers, a chunk and one more or less, several chunks.
std::vector<Shape> shapes_of_many() {
  return {{0}, {}, {1}, {3, 5}, {7}, {2, 0, 3}, {2047}, {2048}, {2049, 1}, {3, 2048}, {5000}, {1, 13}, {64, 65}, {255}};
}

/// Variables with the given shapes; their gradients are x times a number.
template <class T>
struct ManyVariables {
  Graph graph;
  Output<T> x = placeholder<T>(graph, {});
  std::vector<Variable<T>> variables;
  std::vector<train::GradientAndVariable> gradients;

  explicit ManyVariables(const std::vector<Shape>& shapes) {
    const auto on = graph.device("/gpu:0");
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto seed = static_cast<unsigned>(i);
      variables.emplace_back(graph, constant(graph, random_numbers<T>(shapes[i], seed)),
                             VariableOptions{.name = str_cat("v", i)});
      gradients.push_back(
          {{x * constant(graph, random_numbers<T>(shapes[i], seed + 1000)), {}}, variables.back().any_variable()});
    }
  }
  std::vector<AnyTensor> run(const Operation& step, const std::shared_ptr<FakeDriver>& driver, bool joins,
                             int steps = 3) {
    const auto initialize = initialize_variables(graph);  // of slots, too
    Session session(graph, on_gpu(driver, joins));
    session.run(initialize);
    for (int i = 0; i < steps; ++i) {
      session.run({{x, Tensor<T>(static_cast<T>(0.5f + 0.25f * static_cast<float>(i)))}}, step);
    }
    return held_by(graph, session);
  }
};

std::size_t num_not_empty(const std::vector<Shape>& shapes) {
  return static_cast<std::size_t>(
      std::count_if(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.num_elements() != 0; }));
}

}  // namespace

TEMPLATE_TEST_CASE("optimizers update many variables in one launch, with the bits of one launch each", "[cuda]", float,
                   double, Half, BFloat16) {
  for (const NamedOptimizer& optimizer : all_optimizers()) {
    INFO(optimizer.together);
    const std::vector<Shape> shapes = shapes_of_many();
    ManyVariables<TestType> many(shapes);
    const auto step = optimizer.make()->apply_gradients(many.gradients);
    std::vector<std::vector<AnyTensor>> held;
    for (const bool joins : {false, true}) {
      for (std::uint64_t seed = 1; seed < 4; ++seed) {
        const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
        held.push_back(many.run(step, driver, joins));
        CHECK(have_same_bits(held.back(), held.front()));
        CHECK(launches_of(*driver, optimizer.alone) == (joins ? 0 : 3 * num_not_empty(shapes)));
        CHECK(launches_of(*driver, optimizer.together) == (joins ? 3 : 0));
        check_end(*driver);
      }
    }
  }
}

TEST_CASE("two hundred variables are updated by as many launches as their tables need", "[cuda]") {
  std::vector<Shape> shapes;
  for (int i = 0; i < 200; ++i) shapes.push_back({i % 17 + 1, i % 5 + 1});
  for (const NamedOptimizer& optimizer : all_optimizers()) {
    INFO(optimizer.together);
    ManyVariables<float> many(shapes);
    const auto step = optimizer.make()->apply_gradients(many.gradients);
    const auto apart = std::make_shared<FakeDriver>(), together = std::make_shared<FakeDriver>();
    CHECK(have_same_bits(many.run(step, apart, false), many.run(step, together, true)));
    CHECK(launches_of(*apart, optimizer.alone) == 3 * 200);
    CHECK(launches_of(*together, optimizer.alone) == 0);
    const std::uint64_t launches = launches_of(*together, optimizer.together);
    CHECK(launches >= 3 * 2);
    CHECK(launches <= 3 * 3);
    check_end(*apart);
    check_end(*together);
  }
}

TEMPLATE_TEST_CASE("many variables are added to and subtracted from in one launch each", "[cuda]", float, double, Half,
                   BFloat16, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::int64_t,
                   std::complex<float>, std::complex<double>) {
  const std::vector<Shape> shapes = shapes_of_many();
  ManyVariables<TestType> many(shapes);
  std::vector<Operation> updates;
  {
    const auto on = many.graph.device("/gpu:0");
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      updates.push_back(many.variables[i].assign_add(Output<TestType>(many.gradients[i].gradient.dense)));
    }
    const auto after = many.graph.control_dependencies(updates);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      updates.push_back(many.variables[i].assign_sub(
          constant(many.graph, random_numbers<TestType>(shapes[i], static_cast<unsigned>(i) + 77))));
    }
  }
  const auto step = group(updates);
  const auto apart = std::make_shared<FakeDriver>(), together = std::make_shared<FakeDriver>();
  CHECK(have_same_bits(many.run(step, apart, false), many.run(step, together, true)));
  CHECK(launches_of(*apart, "assign update") == 2 * 3 * num_not_empty(shapes));
  CHECK(launches_of(*together, "assign update") == 0);
  CHECK(launches_of(*together, "joint assign updates") == 2 * 3);
  check_end(*apart);
  check_end(*together);
}

TEST_CASE("updates with other factors, types or attributes are launches of their own", "[cuda]") {
  Graph graph;
  std::vector<Operation> updates;
  {
    const auto on = graph.device("/gpu:0");
    const auto add = [&]<class T>(T, const MakeOptimizer& make) {
      std::vector<train::GradientAndVariable> gradients;
      for (int i = 0; i < 3; ++i) {
        const Variable<T> v(graph, constant(graph, Tensor<T>::full({5}, T(1))));
        gradients.push_back({{constant(graph, Tensor<T>::full({5}, T(2))), {}}, v.any_variable()});
      }
      updates.push_back(make()->apply_gradients(gradients));
    };
    for (const float rate : {0.1f, 0.2f}) {
      for (const bool nesterov : {false, true}) {
        const auto make = [=] {
          return std::make_unique<train::Momentum>(rate, 0.9f, train::MomentumOptions{.use_nesterov = nesterov});
        };
        add(1.0f, make);
        add(1.0, make);
      }
    }
  }
  const auto driver = std::make_shared<FakeDriver>();
  {
    Session session(graph, on_gpu(driver, true));
    session.run(initialize_variables(graph));
    session.run(group(updates));
    CHECK(launches_of(*driver, "joint momentum") == 8);
    CHECK(launches_of(*driver, "momentum") == 0);
  }
  check_end(*driver);
}

namespace {

/// A residual network of 20 layers as for CIFAR-10 (He et al. 2015, section 4.2), of few channels and small images.
struct SmallResNet {
  Graph graph{{.seed = 5}};
  Operation initialize, step;
  Output<float> loss;

  explicit SmallResNet(const train::Optimizer& optimizer, bool clips = false) {
    const auto on = graph.device("/gpu:0");
    auto x = Output<float>(constant(graph, random_numbers<float>({2, 8, 8, 3}, 1)));
    const auto labels = constant(graph, Tensor<std::int32_t>({2}, {0, 3}));
    const auto layer = [](const Output<float>& in, std::int64_t channels, std::int64_t stride, bool relus) {
      const Convolution2D conv(channels, 3, {.use_bias = false, .stride = stride});
      const auto y = BatchNormalization()(conv(in));
      return relus ? relu(y) : y;
    };
    x = layer(x, 2, 1, true);
    for (const std::int64_t channels : {2, 4, 8}) {
      for (int block = 0; block < 3; ++block) {
        const bool is_smaller = channels > 2 && block == 0;
        const auto y = layer(layer(x, channels, is_smaller ? 2 : 1, true), channels, 1, false);
        if (is_smaller) {
          const auto pooled = avg_pool(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
          x = concat<float>({pooled, zeros_like(pooled)}, 3);
        }
        x = relu(x + y);
      }
    }
    const auto logits = Dense(4)(reduce_mean(x, {1, 2}));
    loss = reduce_mean(sparse_softmax_cross_entropy(logits, labels));
    if (clips) {
      std::vector<Operation> updates = train::update_operations(loss);
      updates.push_back(optimizer.apply_gradients(train::clip_by_global_norm(optimizer.compute_gradients(loss), 0.5)));
      step = group(updates);
    } else {
      step = optimizer.minimize(loss);
    }
    initialize = initialize_variables(graph);
  }
};

}  // namespace

TEST_CASE("a step of a residual network of 20 layers updates all its variables in a few launches", "[cuda]") {
  const auto total = [](const FakeDriver& driver) {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : driver.launches()) sum += count;
    return sum;
  };
  SmallResNet net(train::Momentum(0.1f, 0.9f));
  std::vector<std::vector<AnyTensor>> held;
  std::vector<std::uint64_t> launches;
  for (const bool joins : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Session session(net.graph, on_gpu(driver, joins));
      session.run(net.initialize);
      session.run(net.step);
      const std::uint64_t before = total(*driver), alone = launches_of(*driver, "momentum"),
                          together = launches_of(*driver, "joint momentum");
      session.run(net.step);
      launches.push_back(total(*driver) - before);
      // 19 filters, as many scales and offsets, a matrix and its bias.
      CHECK(launches_of(*driver, "momentum") - alone == (joins ? 0 : 59));
      CHECK(launches_of(*driver, "joint momentum") - together == (joins ? 1 : 0));
      held.push_back(held_by(net.graph, session));
    }
    check_end(*driver);
  }
  CHECK(have_same_bits(held[0], held[1]));
  std::cout << "count: " << launches[0] << " launches of kernels in a step of ResNet-20 with one for each update, "
            << launches[1] << " with joint ones\n";
  CHECK(launches[0] - launches[1] >= 58);
}

TEST_CASE("clipped gradients train a residual network as one launch and as many", "[cuda]") {
  SmallResNet net(train::Adam(0.01f), true);
  std::vector<std::vector<AnyTensor>> held;
  for (const bool joins : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Session session(net.graph, on_gpu(driver, joins));
      session.run(net.initialize);
      for (int i = 0; i < 2; ++i) session.run(net.step);
      CHECK(launches_of(*driver, "joint adam") == (joins ? 2 : 0));
      held.push_back(held_by(net.graph, session));
    }
    check_end(*driver);
  }
  CHECK(have_same_bits(held[0], held[1]));
}

TEST_CASE("large variables, and gradients of more than a bound, are updated as soon as they are there", "[cuda]") {
  const auto launches_with = [](std::int64_t elements, int variables) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.memory_bytes = std::size_t{1} << 28});
    {
      Graph graph;
      std::vector<Operation> updates;
      {
        const auto on = graph.device("/gpu:0");
        const auto delta = fill<std::int8_t>(graph, {elements}, 1);
        for (int i = 0; i < variables; ++i) {
          const Variable<std::int8_t> v(graph, fill<std::int8_t>(graph, {elements}, 0));
          updates.push_back(v.assign_add(delta));
        }
      }
      Session session(graph, on_gpu(driver, true));
      session.run(initialize_variables(graph));
      session.run(group(updates));
    }
    check_end(*driver);
    return std::pair(launches_of(*driver, "assign update"), launches_of(*driver, "joint assign updates"));
  };
  CHECK(launches_with(std::int64_t{4} << 20, 2) == std::pair<std::uint64_t, std::uint64_t>(0, 1));
  CHECK(launches_with((std::int64_t{4} << 20) + 1, 2) == std::pair<std::uint64_t, std::uint64_t>(2, 0));
  // Eight updates have 32 MiB, and the ninth has no other to join.
  CHECK(launches_with(std::int64_t{4} << 20, 9) == std::pair<std::uint64_t, std::uint64_t>(1, 1));
}

TEST_CASE("what is wrong with one of many updates names its node and line, and nothing is written", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<float>(graph, PartialShape::unknown()), rate = placeholder<float>(graph, {});
    std::vector<Output<float>> values;
    Operation first_initializer, rest_initializers, all;
    {
      const auto on = graph.device("/gpu:0");
      std::vector<Operation> initializers, updates;
      for (int i = 0; i < 4; ++i) {
        const Variable<float> v(graph, constant(graph, Tensor<float>({3}, {1, 2, 3})), {.name = str_cat("v", i)});
        const auto delta = i == 2 ? x : constant(graph, Tensor<float>({3}, {1, 1, 1})) + reduce_sum(x) * 0.0f;
        updates.push_back(
            build<ApplyGradientDescent>({v.any_variable().handle(), rate, delta}, {}, {.name = str_cat("update", i)}));
        values.push_back(v);
        initializers.push_back(v.any_variable().initializer());
      }
      first_initializer = initializers[1];
      initializers.erase(initializers.begin() + 1);
      rest_initializers = group(initializers);
      all = group(updates);
    }
    Session session(graph, on_gpu(driver, true));
    session.run(rest_initializers);
    const auto fails_at = [&](const Tensor<float>& fed, const std::string& node, const std::string& message) {
      try {
        session.run({{x, fed}, {rate, Tensor<float>(0.5f)}}, all);
        FAIL("ran");
      } catch (const Error& error) {
        CHECK_THAT(error.what(), Catch::Matchers::Contains(message));
        CHECK(error.status().node() == node);
        CHECK(error.status().op() == "ApplyGradientDescent");
        CHECK(error.status().where().line() != 0);
        CHECK_THAT(std::string(error.status().device()), Catch::Matchers::Contains("GPU:0"));
      }
    };
    const auto unchanged = [&](std::size_t i) {
      const auto value = session.run(values[i]);
      return std::vector<float>(value.begin(), value.end()) == std::vector<float>{1, 2, 3};
    };
    fails_at(Tensor<float>({3}, {1, 1, 1}), "update1", "variable 'v1' has not been initialized");
    for (const std::size_t i : {0, 2, 3}) CHECK(unchanged(i));
    session.run(first_initializer);
    fails_at(Tensor<float>({2}, {1, 1}), "update2", "the gradient has shape [2], the variable [3]");
    for (std::size_t i = 0; i < 4; ++i) CHECK(unchanged(i));
    session.run({{x, Tensor<float>({3}, {1, 1, 1})}, {rate, Tensor<float>(0.5f)}}, all);
    for (const Output<float>& each : values) {
      const auto value = session.run(each);
      CHECK(std::vector<float>(value.begin(), value.end()) == std::vector<float>{0.5f, 1.5f, 2.5f});
    }
    CHECK(launches_of(*driver, "joint gradient descent") == 1);
  }
  check_end(*driver);
}

TEMPLATE_TEST_CASE("ops of optimizers update variables of their type in one launch, with the bits of one launch each",
                   "[cuda]", float, double, Half, BFloat16) {
  using T = TestType;
  const std::vector<Shape> shapes = shapes_of_many();
  for (const std::string op : {"gradient descent", "momentum", "nesterov", "adam"}) {
    INFO(op);
    ManyVariables<T> many(shapes);
    std::vector<Operation> updates;
    {
      const auto on = many.graph.device("/gpu:0");
      const auto factor = [&](float value) { return constant(many.graph, Tensor<T>(static_cast<T>(value))); };
      const auto lr = factor(0.1f), momentum = factor(0.9f), power = factor(0.875f), beta = factor(0.75f),
                 epsilon = factor(1e-3f);
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto slot = [&] {
          return Variable<T>(many.graph, fill<T>(many.graph, shapes[i], T(0.5f))).any_variable().handle();
        };
        const AnyOutput var = many.variables[i].any_variable().handle(), delta = many.gradients[i].gradient.dense;
        if (op == "gradient descent") {
          updates.push_back(build<ApplyGradientDescent>({var, lr, delta}));
        } else if (op == "adam") {
          updates.push_back(build<ApplyAdam>({var, slot(), slot(), power, power, lr, beta, beta, epsilon, delta}));
        } else {
          updates.push_back(
              build<ApplyMomentum>({var, slot(), lr, delta, momentum}, {.use_nesterov = op == "nesterov"}));
        }
      }
    }
    const auto step = group(updates);
    const auto apart = std::make_shared<FakeDriver>(), together = std::make_shared<FakeDriver>();
    CHECK(have_same_bits(many.run(step, apart, false), many.run(step, together, true)));
    const std::string name = op == "nesterov" ? "momentum" : op;
    CHECK(launches_of(*apart, name) == 3 * num_not_empty(shapes));
    CHECK(launches_of(*together, name) == 0);
    CHECK(launches_of(*together, "joint " + name) == 3);
    check_end(*apart);
    check_end(*together);
  }
}

TEST_CASE("a variable that comes again, under another name too, is updated again", "[cuda]") {
  for (const bool joins : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      std::vector<Operation> updates;
      Output<float> shared, other;
      {
        const auto on = graph.device("/gpu:0");
        const auto make = [&](const char* name, const char* kept) {
          return Variable<float>(graph, constant(graph, Tensor<float>::full({3000}, 1.0f)),
                                 {.name = name, .shared_name = kept});
        };
        const auto v = make("v", "kept"), again = make("again", "kept"), w = make("w", "");
        for (int i = 0; i < 4; ++i) {
          for (const Variable<float>& each : {v, w, again}) {
            updates.push_back(each.assign_add(constant(graph, Tensor<float>::full({3000}, 1.0f))));
          }
        }
        shared = again;
        other = w;
      }
      Session session(graph, on_gpu(driver, joins));
      session.run(initialize_variables(graph));
      session.run(group(updates));
      const auto [a, b] = session.run(shared, other);
      CHECK(bitwise_equal(a, Tensor<float>::full({3000}, 9.0f)));
      CHECK(bitwise_equal(b, Tensor<float>::full({3000}, 5.0f)));
      CHECK(launches_of(*driver, "assign update") == (joins ? 0 : 12));
      if (joins) CHECK(launches_of(*driver, "joint assign updates") == 8);
    }
    check_end(*driver);
  }
}

TEST_CASE("one variable as variable and slot of one of many updates is an error at its node", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    std::vector<Operation> updates;
    {
      const auto on = graph.device("/gpu:0");
      const auto lr = constant(graph, Tensor<float>(0.5f)), delta = constant(graph, Tensor<float>::full({2}, 1.0f));
      for (int i = 0; i < 3; ++i) {
        const Variable<float> v(graph, constant(graph, Tensor<float>::full({2}, 1.0f)));
        const Variable<float> slot(graph, constant(graph, Tensor<float>::full({2}, 1.0f)));
        const AnyOutput handle = v.any_variable().handle();
        updates.push_back(build<ApplyMomentum>({handle, i == 1 ? handle : slot.any_variable().handle(), lr, delta, lr},
                                               {}, {.name = str_cat("update", i)}));
      }
    }
    Session session(graph, on_gpu(driver, true));
    session.run(initialize_variables(graph));
    const auto all = group(updates);
    try {
      session.run(all);
      FAIL("ran");
    } catch (const Error& error) {
      CHECK(error.status().node() == "update1");
      CHECK_THAT(error.what(), Catch::Matchers::Contains("given twice"));
    }
  }
  check_end(*driver);
}

TEST_CASE("joint updates read what their variables had before, and readers keep it", "[cuda]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
    {
      Graph graph;
      std::vector<Operation> updates;
      std::vector<Output<float>> before, after;
      {
        const auto on = graph.device("/gpu:0");
        std::vector<Variable<float>> all;
        for (int i = 0; i < 5; ++i) {
          all.emplace_back(graph, constant(graph, Tensor<float>::full({70}, static_cast<float>(i + 1))));
          before.push_back(all.back().read());
        }
        // Each variable adds the old value of the next one.
        for (std::size_t i = 0; i < 5; ++i) updates.push_back(all[i].assign_add(before[(i + 1) % 5]));
        const auto then = graph.control_dependencies(updates);
        for (const Variable<float>& each : all) after.push_back(each.read());
      }
      Session session(graph, on_gpu(driver, true));
      session.run(initialize_variables(graph));
      std::vector<float> want = {1, 2, 3, 4, 5};
      for (int step = 0; step < 3; ++step) {
        std::vector<Output<float>> fetches = before;
        fetches.insert(fetches.end(), after.begin(), after.end());
        const auto values = run_edges(session, {}, fetches);
        const std::vector<float> old = want;
        for (std::size_t i = 0; i < 5; ++i) want[i] = old[i] + old[(i + 1) % 5];
        for (std::size_t i = 0; i < 5; ++i) {
          CHECK(bitwise_equal(values[i], Tensor<float>::full({70}, old[i])));
          CHECK(bitwise_equal(values[i + 5], Tensor<float>::full({70}, want[i])));
        }
      }
      CHECK(launches_of(*driver, "joint assign updates") == 3);
    }
    check_end(*driver);
  }
}

TEST_CASE("three threads make joint updates of the same variables in two orders, and nothing is lost", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    std::vector<Operation> forwards, backwards;
    std::vector<Output<int>> now;
    {
      const auto on = graph.device("/gpu:0");
      std::vector<Variable<int>> all;
      for (int i = 0; i < 8; ++i) all.emplace_back(graph, constant(graph, Tensor<int>::full({9}, 0)));
      const auto one = constant(graph, Tensor<int>::full({9}, 1));
      for (const auto& each : all) forwards.push_back(each.assign_add(one));
      for (std::size_t i = 8; i-- > 0;) backwards.push_back(all[i].assign_add(one));
      for (const auto& each : all) now.push_back(each);
    }
    Session session(graph, on_gpu(driver, true));
    session.run(initialize_variables(graph));
    const auto first = group(forwards), second = group(backwards);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          session.run((t + i) % 2 == 0 ? first : second);
          if (i % 5 == 0) run_edges(session, {}, now);
        }
      });
    }
    for (std::thread& each : threads) each.join();
    for (const Tensor<int>& each : run_edges(session, {}, now)) CHECK(bitwise_equal(each, Tensor<int>::full({9}, 60)));
    CHECK(launches_of(*driver, "assign update") == 0);
  }
  check_end(*driver);
}

TEST_CASE("an error that a kernel has found before keeps joint updates from writing", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    const auto x = placeholder<int>(graph, {});
    std::vector<Operation> adds;
    std::vector<Output<int>> now;
    {
      const auto on = graph.device("/gpu:0");
      const auto delta = constant(graph, Tensor<int>({3}, {6, 6, 6})) / x;
      for (int i = 0; i < 3; ++i) {
        const Variable<int> v(graph, constant(graph, Tensor<int>({3}, {1, 2, 3})));
        adds.push_back(v.assign_add(delta));
        now.push_back(v);
      }
    }
    Session session(graph, on_gpu(driver, true));
    session.run(initialize_variables(graph));
    const auto add = group(adds);
    for (int again = 0; again < 3; ++again) {
      CHECK_THROWS_WITH(session.run({{x, 0}}, add), Catch::Matchers::Contains("division by zero"));
    }
    for (const auto& each : run_edges(session, {}, now)) CHECK(bitwise_equal(each, Tensor<int>({3}, {1, 2, 3})));
    session.run({{x, 2}}, add);
    for (const auto& each : run_edges(session, {}, now)) CHECK(bitwise_equal(each, Tensor<int>({3}, {4, 5, 6})));
    CHECK(launches_of(*driver, "joint assign updates") == 4);
  }
  check_end(*driver);
}

TEST_CASE("where the driver fails in joint updates each variable has the value before or the one after", "[cuda]") {
  int injected = 0;
  for (const cuda::ErrorCode code : {cuda::ErrorCode::out_of_memory, cuda::ErrorCode::launch_out_of_resources}) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
      INFO("call " << n << ", " << cuda::name_of(code));
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = n});
      bool has_failed = false;
      {
        Graph graph;
        std::vector<Output<float>> before, now;
        std::vector<Operation> adds;
        Operation add;
        {
          const auto on = graph.device("/gpu:0");
          std::vector<Variable<float>> all;
          for (int i = 0; i < 6; ++i) {
            all.emplace_back(graph, constant(graph, Tensor<float>::full({8}, 1.0f)));
            now.push_back(all.back());
          }
          for (std::size_t i = 0; i < 6; i += 2) before.push_back(all[i].read());
          std::vector<Operation> reads;
          for (const auto& each : before) reads.push_back(each.operation());
          const auto then = graph.control_dependencies(reads);
          for (const auto& each : all) {
            adds.push_back(each.assign_add(constant(graph, Tensor<float>::full({8}, 1.0f))));
          }
          add = group(adds);
        }
        Session session(graph, on_gpu(driver, true));
        session.run(initialize_variables(graph));
        static_cast<void>(run_edges(session, {}, now));
        driver->fail_call(n, code);
        try {
          // Fetched values are held, so half of the updates make copies.
          std::vector<AnyOutput> fetches(before.begin(), before.end());
          std::vector<AnyTensor> results(fetches.size());
          session.run_erased({}, nullptr, {}, fetches, {&add, 1}, results);
        } catch (const Error& error) {
          has_failed = true;
          CHECK_THAT(error.what(), Catch::Matchers::Contains("GPU"));
        }
        driver->fail_call(~std::uint64_t{0}, code);  // far away
        const auto after = run_edges(session, {}, now);
        for (const auto& each : after) {
          const bool is_whole = bitwise_equal(each, Tensor<float>::full({8}, 1.0f)) ||
                                bitwise_equal(each, Tensor<float>::full({8}, 2.0f));
          CHECK(is_whole);
          CHECK(bitwise_equal(each, after[0]));  // all are updated by one launch
        }
        session.run(add);
        for (const auto& each : run_edges(session, {}, now)) CHECK(*each.data() == *after[0].data() + 1);
      }
      check_end(*driver);
      injected += has_failed ? 1 : 0;
      if (!has_failed && n > 60) break;
    }
  }
  std::cout << "count: " << injected << " errors of the driver's calls injected into joint updates\n";
  CHECK(injected > 10);
}

TEST_CASE("random graphs of reads, updates and what waits for them have the same bits with joint updates", "[cuda]") {
  std::uint64_t joint = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Graph graph;
    const auto x = placeholder<float>(graph, {4});
    std::vector<AnyOutput> fetches;
    std::vector<Operation> targets;
    {
      const auto on = graph.device("/gpu:0");
      std::vector<Variable<float>> variables;
      for (std::size_t i = 0; i < 6; ++i) {
        variables.emplace_back(graph, constant(graph, random_numbers<float>({4}, seed + static_cast<unsigned>(i))));
      }
      const auto lr = constant(graph, Tensor<float>(0.25f)), other_lr = constant(graph, Tensor<float>(0.5f));
      std::vector<Output<float>> values{x * 2.0f, x + 1.0f};
      // For each variable: the operations that have read or updated it. The next operation on it waits for them.
      std::vector<std::vector<Operation>> last(variables.size());
      for (int node = 0; node < 40; ++node) {
        const std::size_t v = below(variables.size());
        const auto after = graph.control_dependencies(last[v]);
        const Output<float> value = values[below(values.size())];
        switch (below(5)) {
          case 0:
            values.push_back(variables[v].read() * 1.0f);
            last[v] = {values.back().operation()};
            break;
          case 1:
            values.push_back(value * values[below(values.size())] * 0.5f);
            break;
          case 2:
            last[v] = {variables[v].assign_add(value)};
            break;
          case 3:
            last[v] = {variables[v].assign_sub(value * 0.5f)};
            break;
          default:
            last[v] = {build<ApplyGradientDescent>(
                {variables[v].any_variable().handle(), below(3) == 0 ? other_lr : lr, value})};
        }
        targets.push_back(last[v].empty() ? values.back().operation() : last[v].front());
      }
      fetches.assign(values.begin(), values.end());
    }
    const auto initialize = initialize_variables(graph);
    std::vector<std::vector<AnyTensor>> results;
    for (const bool joins : {false, true}) {
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = seed});
      {
        Session session(graph, on_gpu(driver, joins));
        session.run(initialize);
        std::vector<AnyTensor> all;
        for (int step = 0; step < 3; ++step) {
          const std::vector<Feed> feeds{{x, random_numbers<float>({4}, 100 + static_cast<unsigned>(step))}};
          std::vector<AnyTensor> made(fetches.size());
          session.run_erased({}, nullptr, feeds, fetches, targets, made);
          all.insert(all.end(), made.begin(), made.end());
        }
        for (AnyTensor& each : held_by(graph, session)) all.push_back(std::move(each));
        results.push_back(std::move(all));
        for (const char* name : {"joint assign updates", "joint gradient descent"}) {
          CHECK((joins || launches_of(*driver, name) == 0));
          joint += launches_of(*driver, name);
        }
      }
      check_end(*driver);
    }
    CHECK(have_same_bits(results[0], results[1]));
  }
  CHECK(joint > 100);
}

TEST_CASE("updates in a loop and in a branch on a GPU have the same bits with joint ones", "[cuda]") {
  std::vector<std::vector<AnyTensor>> held;
  for (const bool joins : {false, true}) {
    const auto driver = std::make_shared<FakeDriver>();
    {
      Graph graph;
      std::vector<Variable<float>> all;
      Output<int> turns;
      {
        const auto on = graph.device("/gpu:0");
        for (int i = 0; i < 5; ++i) {
          all.emplace_back(graph, constant(graph, Tensor<float>::full({5}, static_cast<float>(i))));
        }
        turns = while_loop([](Output<int> i) { return i < 4; },
                           [&](Output<int> i) {
                             std::vector<Operation> adds;
                             for (const auto& each : all) adds.push_back(each.assign_add(fill({5}, cast<float>(i))));
                             const auto after = graph.control_dependencies(adds);
                             return i + 1;
                           },
                           constant(graph, Tensor<int>(0)));
      }
      Session session(graph, on_gpu(driver, joins));
      session.run(initialize_variables(graph));
      CHECK(session.run(turns).scalar() == 4);
      CHECK(launches_of(*driver, "joint assign updates") == (joins ? 4 : 0));
      held.push_back(held_by(graph, session));
    }
    check_end(*driver);
  }
  CHECK(have_same_bits(held[0], held[1]));
}

TEST_CASE("a trace of joint updates has one node for all, named after the first", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  {
    Graph graph;
    std::vector<Operation> adds;
    {
      const auto on = graph.device("/gpu:0");
      const auto one = constant(graph, Tensor<int>::full({9}, 1));
      for (int i = 0; i < 3; ++i) {
        const Variable<int> v(graph, one);
        adds.push_back(v.any_variable().assign_add(one, {.name = str_cat("add", i)}));
      }
    }
    Session session(graph, on_gpu(driver, true));
    session.run(initialize_variables(graph));
    const auto add = group(adds);
    RunMetadata metadata;
    session.run({.trace = true}, &metadata, {}, add);
    std::vector<std::string> names;
    for (const auto& node : metadata.stats.nodes) {
      if (node.op == "AssignAdd") names.push_back(node.node);
    }
    CHECK(names == std::vector<std::string>{"add0 + 2 more"});
  }
  check_end(*driver);
}
