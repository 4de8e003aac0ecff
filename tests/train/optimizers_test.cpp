#include <dflow/train/optimizers.hpp>

#include "catch.hpp"

#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/clip.hpp>
#include <dflow/train/schedules.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace df = dflow;

namespace {

/// Values of w after a number of steps on the loss sum(c w), which has the gradient c.
template <class Step>
void run_steps(df::Graph& graph, const df::Operation& train, int steps, const df::Variable<float>& w,
               const Step& check) {
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  for (int i = 1; i <= steps; ++i) {
    session.run(train);
    check(i, session.run(w));
  }
}

}  // namespace

TEST_CASE("Gradient descent moves a variable against its gradient") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>({2}, {1, 2}), {.name = "w"});
  df::Variable<float> idle(graph, 7.0f, {.name = "idle"});
  auto loss = df::reduce_sum(w * df::constant(graph, df::Tensor<float>({2}, {1, -2})));
  auto train = df::train::GradientDescent(0.5f).minimize(loss);
  run_steps(graph, train, 2, w, [](int step, const df::Tensor<float>& value) {
    CHECK(value(0) == 1.0f - 0.5f * static_cast<float>(step));
    CHECK(value(1) == 2.0f + 1.0f * static_cast<float>(step));
  });
}

TEST_CASE("Momentum follows its recursion, with and without Nesterov") {
  using Options = df::train::MomentumOptions;
  // The last options have the old name.
  for (const Options options : {Options{}, Options{.use_nesterov = true}, Options{.nesterov = true}}) {
    const bool nesterov = options.use_nesterov || options.nesterov;
    df::Graph graph;
    df::Variable<float> w(graph, 1.0f, {.name = "w"});
    auto train = df::train::Momentum(0.25f, 0.5f, options).minimize(w * w);
    CHECK(graph.find("w/Momentum").is_valid());
    double expected = 1, accum = 0;
    run_steps(graph, train, 5, w, [&](int, const df::Tensor<float>& value) {
      const double gradient = 2 * expected;
      accum = 0.5 * accum + gradient;
      expected -= 0.25 * (nesterov ? gradient + 0.5 * accum : accum);
      CHECK(value.scalar() == Catch::Approx(expected).epsilon(1e-5));
    });
  }
}

TEST_CASE("Adam follows the paper's algorithm step by step") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>({2}, {1, -3}), {.name = "w"});
  auto train = df::train::Adam(0.1f, 0.75f, 0.875f, 1e-6f).minimize(df::reduce_sum(w * w));
  CHECK(graph.find("w/Adam").is_valid());
  CHECK(graph.find("w/Adam_1").is_valid());
  CHECK(graph.find("w/Adam").node().colocated_with == w.handle().node_id());
  CHECK(graph.collection("trainable_variables").size() == 1);
  std::vector<double> expected{1, -3}, m{0, 0}, v{0, 0};
  run_steps(graph, train, 6, w, [&](int step, const df::Tensor<float>& value) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double gradient = 2 * expected[i];
      m[i] = 0.75 * m[i] + 0.25 * gradient;
      v[i] = 0.875 * v[i] + 0.125 * gradient * gradient;
      const double rate = 0.1 * std::sqrt(1 - std::pow(0.875, step)) / (1 - std::pow(0.75, step));
      expected[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-6);
      CHECK(value(static_cast<std::int64_t>(i)) == Catch::Approx(expected[i]).epsilon(1e-4));
    }
  });
}

TEST_CASE("Other optimizers follow their algorithms step by step, from the slots that they begin with") {
  // One element of the variable, and its slots.
  struct Element {
    double w, a = 0, b = 0, c = 0;
  };
  struct Row {
    std::string name;
    std::shared_ptr<df::train::Optimizer> optimizer;
    Element first;  // slots as they begin
    void (*step)(Element&, double gradient);
  };
  const auto shared = [](auto optimizer) { return std::make_shared<decltype(optimizer)>(optimizer); };
  const std::vector<Row> rows{
      {"Adagrad",
       shared(df::train::Adagrad(0.25)),
       {0, 0.1},
       [](Element& x, double g) {
         x.a += g * g;
         x.w -= 0.25 * g / std::sqrt(x.a);
       }},
      {"Adagrad",
       shared(df::train::Adagrad(0.25, 0.5)),
       {0, 0.5},
       [](Element& x, double g) {
         x.a += g * g;
         x.w -= 0.25 * g / std::sqrt(x.a);
       }},
      {"Adadelta",
       shared(df::train::Adadelta(0.5, 0.75, 0.125)),
       {0},
       [](Element& x, double g) {
         x.a = 0.75 * x.a + 0.25 * g * g;
         const double update = std::sqrt(x.b + 0.125) / std::sqrt(x.a + 0.125) * g;
         x.b = 0.75 * x.b + 0.25 * update * update;
         x.w -= 0.5 * update;
       }},
      {"Ftrl",
       shared(df::train::Ftrl(0.5, {.l1 = 0.125, .l2 = 0.25})),
       {0, 0.1},
       [](Element& x, double g) {
         const double before = std::sqrt(x.a);
         x.a += g * g;
         x.b += g - (std::sqrt(x.a) - before) / 0.5 * x.w;
         const double shrunk = (x.b > 0 ? 0.125 : -0.125) - x.b;
         x.w = std::abs(x.b) > 0.125 ? shrunk / (std::sqrt(x.a) / 0.5 + 2 * 0.25) : 0;
       }},
      {"RMSProp",
       shared(df::train::RmsProp(0.25, {.decay = 0.75, .momentum = 0.5, .epsilon = 0.125})),
       {0, 1},
       [](Element& x, double g) {
         x.a = 0.75 * x.a + 0.25 * g * g;
         x.b = 0.5 * x.b + 0.25 * g / std::sqrt(x.a + 0.125);
         x.w -= x.b;
       }},
      {"RMSProp",
       shared(df::train::RmsProp(0.25, {.decay = 0.75, .epsilon = 0.125, .centered = true})),
       {0, 0, 1},
       [](Element& x, double g) {
         x.a = 0.75 * x.a + 0.25 * g;
         x.b = 0.75 * x.b + 0.25 * g * g;
         x.w -= 0.25 * g / std::sqrt(x.b - x.a * x.a + 0.125);
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    df::Graph graph;
    df::Variable<float> w(graph, df::Tensor<float>({2}, {1, -3}), {.name = "w"});
    df::Variable<double> table(graph, df::Tensor<double>({3, 1}, {1, 2, 3}), {.name = "table"});
    // The row with index 1 twice: its gradients are summed.
    const auto rows_of_table = df::gather(table, df::constant(graph, df::Tensor<std::int32_t>({3}, {1, 2, 1})));
    const auto loss = df::reduce_sum(w * w) + df::cast<float>(df::reduce_sum(rows_of_table));
    const auto train = row.optimizer->minimize(loss);
    CHECK(graph.find("w/" + row.name).is_valid());
    CHECK(graph.find("table/" + row.name).is_valid());
    Element expected[2] = {row.first, row.first}, of_table[2] = {row.first, row.first};
    expected[0].w = 1;
    expected[1].w = -3;
    of_table[0].w = 2;
    of_table[1].w = 3;
    run_steps(graph, train, 4, w, [&](int, const df::Tensor<float>& value) {
      for (int i = 0; i < 2; ++i) {
        row.step(expected[i], 2 * expected[i].w);
        CHECK(value(i) == Catch::Approx(expected[i].w).epsilon(1e-4).margin(1e-6));
      }
    });
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    for (int step = 0; step < 3; ++step) {
      session.run(train);
      row.step(of_table[0], 2);
      row.step(of_table[1], 1);
      const df::Tensor<double> value = session.run(table);
      CHECK(value(0, 0) == 1);
      CHECK(value(1, 0) == Catch::Approx(of_table[0].w).epsilon(1e-9));
      CHECK(value(2, 0) == Catch::Approx(of_table[1].w).epsilon(1e-9));
    }
  }
}

TEST_CASE("Options of optimizers beyond their limits are errors of the line that makes the optimizer") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double value : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(df::train::Adagrad(0.1, value),
                      Catch::Contains("initial_accumulator_value") && Catch::Contains("optimizers_test.cpp"));
  }
  for (const df::train::FtrlOptions options :
       {df::train::FtrlOptions{.learning_rate_power = 0.5}, df::train::FtrlOptions{.initial_accumulator_value = -1},
        df::train::FtrlOptions{.l1 = -1}, df::train::FtrlOptions{.l2 = nan}}) {
    CHECK_THROWS_WITH(df::train::Ftrl(0.1, options), Catch::Contains("optimizers_test.cpp"));
  }
}

TEST_CASE("Clipping by the average norm divides the norm by the number of elements") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic});
  df::Session session(graph);
  // The norm of {3, 4} is 5, and 2.5 for each element.
  const auto clipped = session.run({{x, df::Tensor<float>({2}, {3, 4})}}, df::clip_by_average_norm(x, 1.25));
  CHECK(clipped(0) == Catch::Approx(1.5));
  CHECK(clipped(1) == Catch::Approx(2));
  const auto same = session.run({{x, df::Tensor<float>({2}, {3, 4})}}, df::clip_by_average_norm(x, 2.5));
  CHECK(same(0) == 3);
  CHECK(same(1) == 4);
  CHECK(session.run({{x, df::Tensor<float>(df::Shape{0})}}, df::clip_by_average_norm(x, 1.0)).num_elements() == 0);
  CHECK_THROWS_WITH(df::clip_by_average_norm(x, 0.0), Catch::Contains("clip_by_average_norm"));
}

TEST_CASE("Adam raises the powers of its betas when all variables have been updated") {
  df::Graph graph;
  const df::Variable<float> a(graph, 1.0f), rows(graph, df::Tensor<float>({2}, {1, 2}));
  const df::Variable<double> b(graph, 2.0);
  const auto row = df::gather(rows, df::constant(graph, df::Tensor<std::int32_t>({1}, {0})));
  df::train::Adam(0.5).minimize(a * a + df::cast<float>(b * b) + df::reduce_sum(row));
  int num_raised = 0;
  for (const df::NodeId id : df::IndexRange<df::NodeId>(graph.num_nodes())) {
    const df::Node& node = graph.node(id);
    const bool is_raised = node.op->name == "Assign" && graph.node(node.inputs[1].node).op->name == "Mul" &&
                           graph.node(node.inputs[0].node).name.find("_power") != std::string::npos;
    if (!is_raised) continue;
    ++num_raised;
    // A step that raises this power alone updates the variables before.
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    session.run(df::Operation(graph.store(), id));
    const auto [new_a, new_b, new_rows] = session.run(a, b, rows);
    CHECK(new_a.scalar() == Catch::Approx(0.5));
    CHECK(new_b.scalar() == Catch::Approx(1.5));
    CHECK(new_rows(0) == Catch::Approx(0.5));
  }
  CHECK(num_raised == 4);  // two powers of two element types
}

// Expected: the recursions in 50 decimal digits (Python's decimal), of gradients (0.1, -0.2) from (1, 2).
TEST_CASE("Double variables are trained by double hyperparameters") {
  df::Graph graph;
  const df::Tensor<double> start({2}, {1, 2});
  const df::Variable<double> descended(graph, start), pushed(graph, start), adapted(graph, start);
  const df::Variable<float> narrow(graph, 1.0f);
  const auto slope = df::constant(graph, df::Tensor<double>({2}, {0.1, -0.2}));
  const auto trained = [&](const df::train::Optimizer& optimizer, const df::Variable<double>& w) {
    return optimizer.minimize(df::reduce_sum(w * slope), {.variables = {w.any_variable()}});
  };
  std::vector<df::Operation> steps{trained(df::train::GradientDescent(0.3), descended),
                                   trained(df::train::Momentum(2.0), pushed)};
  const auto loss = df::reduce_sum(adapted * slope) + df::cast<double>(narrow * 0.1f);
  steps.push_back(df::train::Adam(1e-3).minimize(loss, {.variables = {narrow.any_variable(), adapted.any_variable()}}));
  const df::Operation step = df::group(std::span<const df::Operation>(steps));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  for (int i = 0; i < 5; ++i) session.run(step);
  const auto check = [](const df::Tensor<double>& value, double first, double second) {
    CHECK(value(0) == Catch::Approx(first).epsilon(1e-14));
    CHECK(value(1) == Catch::Approx(second).epsilon(1e-14));
  };
  check(session.run(descended), 0.85, 2.3);
  check(session.run(pushed), -1.62882, 7.25764);
  check(session.run(adapted), 0.99500001022349084, 2.0049999948882489);
  CHECK(session.run(narrow).scalar() == Catch::Approx(0.995).epsilon(1e-6));
}

TEST_CASE("A sparse gradient of a double table moves its rows by double hyperparameters") {
  df::Graph graph;
  const df::Variable<double> table(graph, df::Tensor<double>({2, 1}, {1, 5}), {.name = "table"});
  const auto row = df::embedding_lookup(table, df::constant(graph, df::Tensor<std::int32_t>({1}, {0})));
  const auto train = df::train::Adam(1e-3).minimize(df::reduce_sum(row) * 0.1);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  for (int i = 0; i < 5; ++i) session.run(train);
  const auto value = session.run(table);
  CHECK(value(0, 0) == Catch::Approx(0.99500001022349084).epsilon(1e-14));
  CHECK(value(1, 0) == 5.0);
}

TEST_CASE("The gradient of a gather moves the gathered rows alone") {
  for (const int which : {0, 1, 2}) {
    df::Graph graph;
    df::Variable<float> table(graph, df::Tensor<float>::full({4, 2}, 1.0f), {.name = "table"});
    auto ids = df::constant(graph, df::Tensor<std::int32_t>({3}, {2, 0, 2}));
    auto loss = df::reduce_sum(df::embedding_lookup(table, ids));
    df::Operation train;
    if (which == 0) train = df::train::GradientDescent(0.5f).minimize(loss);
    if (which == 1) train = df::train::Momentum(0.5f).minimize(loss);
    if (which == 2) train = df::train::Adam(0.5f).minimize(loss);
    const std::string update =
        train.node().control_inputs.empty() ? "" : graph.node(train.node().control_inputs[0]).op->name.data();
    CHECK(update.substr(0, 11) == "SparseApply");
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    session.run(train);
    const auto value = session.run(table);
    CHECK(value(1, 0) == 1.0f);
    CHECK(value(3, 1) == 1.0f);
    CHECK(value(0, 0) == Catch::Approx(0.5f).epsilon(1e-5));
    CHECK(value(2, 1) == Catch::Approx(which == 2 ? 0.5f : 0.0f).margin(1e-5));
  }
}

TEST_CASE("A global step counts the updates and drives the learning rate") {
  df::Graph graph;
  df::Variable<float> w(graph, 0.0f, {.name = "w"});
  df::Variable<std::int64_t> step(graph, std::int64_t{0}, {.name = "global_step", .trainable = false});
  auto rate = df::train::piecewise_constant(step, {0, 1}, {1.0f, 10.0f, 100.0f});
  auto train = df::train::GradientDescent(rate).minimize(-w, {.global_step = step});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  for (const float expected : {1.0f, 11.0f, 111.0f, 211.0f}) {
    session.run(train);
    CHECK(session.run(w).scalar() == Catch::Approx(expected));
  }
  CHECK(session.run(step).scalar() == 4);
}

TEST_CASE("The name given to minimize is that of its operation") {
  df::Graph graph;
  const df::Variable<float> w(graph, 1.0f, {.name = "w"});
  const df::Variable<std::int64_t> step(graph, 0, {.name = "step", .trainable = false});
  const auto loss = w * w;
  const df::Operation train =
      df::train::GradientDescent(0.25f).minimize(loss, {.global_step = step}, {.name = "train"});
  CHECK(train.name() == "train");
  CHECK(graph.find("train") == train);
  {
    const auto in = graph.name_scope("more");
    CHECK(df::train::GradientDescent(0.25f).minimize(loss, {}, {.name = "train"}).name() == "more/train");
  }
  CHECK(df::train::GradientDescent(0.25f).minimize(loss).name().starts_with("GradientDescent"));
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(static_cast<df::NodeId>(i));
    INFO(node.name);
    CHECK((node.op->name != "AssignSub" || node.name.find("GradientDescent") != std::string::npos));
  }
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(train);
  CHECK(session.run(w).scalar() == 0.5f);
  CHECK(session.run(step).scalar() == 1);
}

TEST_CASE("Schedules have their published values") {
  df::Graph graph;
  auto step = df::placeholder<std::int64_t>(graph, df::Shape{});
  auto smooth = df::train::exponential_decay(0.5f, step, {.decay_steps = 10, .decay_rate = 0.25f});
  auto stairs = df::train::exponential_decay(0.5f, step, {.decay_steps = 10, .decay_rate = 0.25f, .staircase = true});
  auto line = df::train::polynomial_decay(1.0f, step, {.decay_steps = 10, .end_rate = 0.5f});
  auto wave = df::train::cosine_decay(2.0f, step, 10);
  df::Session session(graph);
  const auto at = [&](std::int64_t value) { return session.run({{step, value}}, smooth, stairs, line, wave); };
  {
    auto [a, b, c, d] = at(5);
    CHECK(a.scalar() == Catch::Approx(0.25));
    CHECK(b.scalar() == Catch::Approx(0.5));
    CHECK(c.scalar() == Catch::Approx(0.75));
    CHECK(d.scalar() == Catch::Approx(1.0));
  }
  {
    auto [a, b, c, d] = at(20);
    CHECK(a.scalar() == Catch::Approx(0.03125));
    CHECK(b.scalar() == Catch::Approx(0.03125));
    CHECK(c.scalar() == Catch::Approx(0.5));
    CHECK(d.scalar() == Catch::Approx(0.0).margin(1e-6));
  }
}

// Expected: the formulas in 50 decimal digits (Python's decimal).
TEST_CASE("Schedules for double variables are computed in double") {
  df::Graph graph;
  const auto step = df::placeholder<std::int64_t>(graph, df::Shape{});
  const auto smooth = df::train::exponential_decay<double>(0.1, step, {.decay_steps = 10, .decay_rate = 0.7});
  const auto curve =
      df::train::polynomial_decay<double>(0.1, step, {.decay_steps = 10, .end_rate = 0.003, .power = 1.7});
  const auto wave = df::train::cosine_decay<double>(0.1, step, 10, 0.3);
  const auto stairs = df::train::piecewise_constant<double>(step, {3, 6}, {1.0, 1e-3, 1e-9});
  const df::Variable<double> w(graph, 1.0);
  const auto train = df::train::GradientDescent(smooth).minimize(w * 1.0);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto [a, b, c, d] = session.run({{step, std::int64_t{7}}}, smooth, curve, wave, stairs);
  CHECK(a.scalar() == Catch::Approx(0.077905591267044909).epsilon(1e-14));
  CHECK(b.scalar() == Catch::Approx(0.015527888149273086).epsilon(1e-14));
  CHECK(c.scalar() == Catch::Approx(0.044427516169763441).epsilon(1e-14));
  CHECK(d.scalar() == 1e-9);
  CHECK(session.run({{step, std::int64_t{6}}}, stairs).scalar() == 1e-3);
  session.run({{step, std::int64_t{7}}}, train);
  CHECK(session.run(w).scalar() == Catch::Approx(1 - 0.077905591267044909).epsilon(1e-14));
}

TEST_CASE("A piece of a schedule is the rate given, however small beside the others") {
  df::Graph graph;
  const auto step = df::placeholder<std::int64_t>(graph, df::Shape{});
  const auto rate = df::train::piecewise_constant(step, {2, 5}, {1.0f, 1e-9f, 0.1f});
  df::Session session(graph);
  const auto at = [&](std::int64_t value) { return session.run({{step, value}}, rate).scalar(); };
  CHECK(at(2) == 1.0f);
  CHECK(at(3) == 1e-9f);
  CHECK(at(5) == 1e-9f);
  CHECK(at(6) == 0.1f);
}

TEST_CASE("Clipping bounds values, one norm, and the norm of all gradients") {
  df::Graph graph;
  df::Variable<float> a(graph, df::Tensor<float>({2}, {3, 0}), {.name = "a"});
  df::Variable<float> b(graph, df::Tensor<float>({1}, {4}), {.name = "b"});
  auto clipped = df::clip_by_value(a, 0.5f, 2.0f);
  auto shorter = df::clip_by_norm(a, 1.5), same = df::train::clip_by_norm(a, 10.0);
  const df::train::GradientDescent descent(1.0f);
  auto gradients = descent.compute_gradients(df::reduce_sum(df::square(a)) + df::reduce_sum(df::square(b)));
  const df::Output<float> norm(df::global_norm(gradients));
  auto train = descent.apply_gradients(df::clip_by_global_norm(gradients, 5.0));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(session.run(clipped)(0) == 2.0f);
  CHECK(session.run(clipped)(1) == 0.5f);
  const auto each = session.run(df::clip_by_value(a, df::Tensor<float>({2}, {1, 2}), b));
  CHECK(each(0) == 3.0f);
  CHECK(each(1) == 2.0f);
  CHECK(session.run(shorter)(0) == Catch::Approx(1.5));
  CHECK(session.run(same)(0) == Catch::Approx(3.0));
  CHECK(session.run(norm).scalar() == Catch::Approx(10.0));
  session.run(train);
  CHECK(session.run(a)(0) == Catch::Approx(0.0).margin(1e-5));
  CHECK(session.run(b)(0) == Catch::Approx(0.0).margin(1e-5));
}

// Expected: TensorFlow 2.21's gradient of tf.clip_by_value.
TEST_CASE("The gradient of a clipped value reaches the ends of the interval") {
  df::Graph graph;
  const df::Tensor<float> at({7}, {-1, 0.5f, 1, 2, 3, -0.0f, std::numeric_limits<float>::infinity()});
  auto x = df::constant(graph, at);
  auto slope = df::gradients(df::reduce_sum(df::clip_by_value(x, 0.5f, 2.0f)), x);
  df::Session session(graph);
  const df::Tensor<float> got = session.run(slope);
  CHECK(std::vector<float>(got.begin(), got.end()) == std::vector<float>{0, 1, 1, 1, 0, 0, 0});
}

// Expected: TensorFlow's 1 at zero; elsewhere the derivative 2 (1 / |x| - x_i sum(x) / |x|^3) of sum(2 x / |x|).
TEMPLATE_TEST_CASE("Clipping to a norm has a gradient where the norm is 0", "", float, double, df::Half, df::BFloat16) {
  using T = TestType;
  df::Graph graph;
  const auto x = df::placeholder<T>(graph, {3});
  const auto first = df::gradients(df::reduce_sum(df::clip_by_norm(x, 2.0)), x);
  const auto second = df::gradients(df::reduce_sum(df::square(first)), x);
  df::Session session(graph);
  const auto check = [&](std::vector<double> at, std::vector<double> slopes) {
    df::Tensor<T> in(df::Shape{3});
    for (std::size_t i = 0; i < 3; ++i) in.span()[i] = static_cast<T>(at[i]);
    const auto [dx, ddx] = session.run({{x, in}}, first, second);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(static_cast<double>(dx.span()[i]) == Catch::Approx(slopes[i]).margin(sizeof(T) == 2 ? 2e-2 : 1e-6));
      CHECK(std::isfinite(static_cast<double>(ddx.span()[i])));
    }
  };
  check({0, 0, 0}, {1, 1, 1});
  check({1, 0, 0}, {1, 1, 1});
  check({3, 4, 0}, {0.064, -0.048, 0.4});
}

// Half precision has no square of 300, nor of 1e-4.
TEMPLATE_TEST_CASE("Clipping 16-bit values to a norm squares them in float", "", df::Half, df::BFloat16) {
  using T = TestType;
  df::Graph graph;
  const auto x = df::placeholder<T>(graph, {2});
  const df::Variable<T> w(graph, df::Tensor<T>::zeros({2}));
  const std::vector<df::train::GradientAndVariable> gradients{{df::Gradient{x, {}}, w.any_variable()}};
  const df::Output<float> norm(df::train::global_norm(gradients));
  const df::Output<T> by_global(df::train::clip_by_global_norm(gradients, 5e-5)[0].gradient.dense);
  const auto clipped = df::clip_by_norm(x, 5e-5);
  df::Session session(graph);
  for (const double scale : {100.0, 1e-4}) {
    const df::Tensor<T> in({2}, {static_cast<T>(3 * scale), static_cast<T>(4 * scale)});
    const auto [size, alone, together] = session.run({{x, in}}, norm, clipped, by_global);
    CHECK(size.scalar() == Catch::Approx(5 * scale).epsilon(1e-2));
    for (const df::Tensor<T>& y : {alone, together}) {
      CHECK(static_cast<float>(y(0)) == Catch::Approx(3e-5).epsilon(1e-2));
      CHECK(static_cast<float>(y(1)) == Catch::Approx(4e-5).epsilon(1e-2));
    }
  }
}

TEMPLATE_TEST_CASE("A norm beyond all numbers of the element type clips nothing", "", float, double, df::Half) {
  using T = TestType;
  df::Graph graph;
  const auto x = df::placeholder<T>(graph, {2});
  const df::Variable<T> w(graph, df::Tensor<T>::zeros({2}));
  const std::vector<df::train::GradientAndVariable> gradients{{df::Gradient{x, {}}, w.any_variable()}};
  df::Session session(graph);
  const df::Tensor<T> in({2}, {static_cast<T>(3.0f), static_cast<T>(4.0f)});
  for (const double norm : {1e6, 1e300, std::numeric_limits<double>::infinity()}) {
    const df::Output<T> together(df::train::clip_by_global_norm(gradients, norm)[0].gradient.dense);
    const auto [a, b] = session.run({{x, in}}, df::clip_by_norm(x, norm), together);
    CHECK(df::bitwise_equal(a, in));
    CHECK(df::bitwise_equal(b, in));
  }
  // The same holds if the squares overflow: a finite norm then makes the values 0.
  if (sizeof(T) > 2) {
    const auto cut =
        session.run({{x, df::Tensor<T>::full({2}, std::numeric_limits<T>::max())}}, df::clip_by_norm(x, 2.0));
    CHECK(df::bitwise_equal(cut, df::Tensor<T>::zeros({2})));
  }
  const T large = std::numeric_limits<T>::max(), infinity = std::numeric_limits<T>::infinity();
  for (const df::Tensor<T>& each : {df::Tensor<T>({2}, {large, large}), df::Tensor<T>({2}, {infinity, T(1)})}) {
    CHECK(df::bitwise_equal(session.run({{x, each}}, df::clip_by_norm(x, std::numeric_limits<double>::infinity())),
                            each));
  }
}

// Expected: TensorFlow 2's clip_by_global_norm.
TEST_CASE("A global norm that is not finite makes all gradients NaN, one of 0 leaves them") {
  df::Graph graph;
  const df::Variable<float> a(graph, df::Tensor<float>::zeros({3})), b(graph, df::Tensor<float>::zeros({2}));
  const auto x = df::placeholder<float>(graph, {3}), y = df::placeholder<float>(graph, {2});
  const std::vector<df::train::GradientAndVariable> gradients{{df::Gradient{x, {}}, a.any_variable()},
                                                              {df::Gradient{y, {}}, b.any_variable()}};
  const auto clipped = df::train::clip_by_global_norm(gradients, 1.0);
  const df::Output<float> cx(clipped[0].gradient.dense), cy(clipped[1].gradient.dense);
  df::Session session(graph);
  const auto run = [&](float first) {
    return session.run({{x, df::Tensor<float>({3}, {first, 0, 2})}, {y, df::Tensor<float>({2}, {1, 2})}}, cx, cy);
  };
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    const auto [p, q] = run(bad);
    for (const float value : p) CHECK(std::isnan(value));
    for (const float value : q) CHECK(std::isnan(value));
  }
  const auto [p, q] = run(4.0f);
  CHECK(p(0) == Catch::Approx(0.8));
  CHECK(p(1) == 0.0f);
  CHECK(q(1) == Catch::Approx(0.4));
  const auto [zero, none] =
      session.run({{x, df::Tensor<float>::zeros({3})}, {y, df::Tensor<float>::zeros({2})}}, cx, cy);
  CHECK(zero(2) == 0.0f);
  CHECK(none(0) == 0.0f);
}

TEST_CASE("A loss that depends on no variable is refused") {
  df::Graph graph;
  auto loss = df::constant(graph, 1.0f);
  CHECK_THROWS_WITH(df::train::Adam().minimize(loss), Catch::Matchers::Contains("no trainable variables"));
  df::Variable<float> w(graph, 1.0f);
  CHECK_THROWS_WITH(df::train::Adam().minimize(loss), Catch::Matchers::Contains("none of the variables"));
}

namespace {

/// Values after 20 steps at the rate 1e-3 from (1, -3, 0.5) on the sum of squared distances from (0.25, -1, 0.5).
struct TrainedBy {
  const char* name;
  std::unique_ptr<df::train::Optimizer> optimizer;
  double first, second;
};

/// Expected: TensorFlow 2.21, ResourceApplyGradientDescent, -Momentum and -Adam, on variables of float64. The values
/// for 16 bits come from variables of float32, rounded for the loss.
template <class T>
std::vector<TrainedBy> trained_by_all() {
  using df::train::Adam, df::train::GradientDescent, df::train::Momentum;
  const auto of = [](double wide, double half, double bfloat16) {
    return sizeof(T) == 8 ? wide : std::is_same_v<T, df::Half> ? half : bfloat16;
  };
  std::vector<TrainedBy> all;
  all.push_back({"descent", std::make_unique<GradientDescent>(1e-3), of(0.9705632177697571, 0.970703125, 0.96875),
                 of(-2.9215019140526852, -2.921875, -2.921875)});
  all.push_back({"momentum", std::make_unique<Momentum>(1e-3), of(0.82950624465802, 0.82958984375, 0.828125),
                 of(-2.5453499857547204, -2.544921875, -2.546875)});
  all.push_back({"nesterov", std::make_unique<Momentum>(1e-3, 0.9, df::train::MomentumOptions{.use_nesterov = true}),
                 of(0.8206804883782868, 0.82080078125, 0.8203125), of(-2.521814635675432, -2.521484375, -2.515625)});
  all.push_back({"adam", std::make_unique<Adam>(), of(0.9800320876027178, 0.97998046875, 0.98046875),
                 of(-2.980011917491677, -2.98046875, -2.984375)});
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("Every optimizer trains variables of double and of 16 bits as TensorFlow does", "", double, df::Half,
                   df::BFloat16) {
  using T = TestType;
  const auto tensor = [](std::vector<double> values) {
    df::Tensor<T> result(df::Shape{static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) result.span()[i] = static_cast<T>(values[i]);
    return result;
  };
  for (const TrainedBy& by : trained_by_all<T>()) {
    for (const bool sparse : {false, true}) {
      INFO(by.name << (sparse ? " of gathered rows" : ""));
      df::Graph graph;
      const df::Variable<T> w(graph, tensor({1, -3, 0.5}), {.name = "w"});
      const auto target = df::constant(graph, tensor({0.25, -1, 0.5}));
      const auto rows = df::constant(graph, df::Tensor<std::int32_t>({3}, {0, 1, 2}));
      const df::Output<T> x = sparse ? df::gather(df::Output<T>(w), rows) : df::Output<T>(w);
      const auto train = by.optimizer->minimize(df::reduce_sum(df::square(x - target)));
      CHECK(graph.find("w/master").is_valid() == (sizeof(T) == 2));
      df::Session session(graph);
      session.run(df::initialize_variables(graph));
      for (int i = 0; i < 20; ++i) session.run(train);
      const auto value = session.run(w);
      const auto near = [&](std::int64_t i, double expected) {
        const double last_digit = sizeof(T) == 8 ? 1e-14 : std::is_same_v<T, df::Half> ? 0x1p-10 : 0x1p-7;
        INFO(i << ": " << static_cast<double>(value(i)) << ", expected " << expected);
        CHECK(std::fabs(static_cast<double>(value(i)) - expected) <= last_digit * std::fabs(expected));
      };
      near(0, by.first);
      near(1, by.second);
      // Its gradient is 0: with an epsilon of 16 bits, Adam would divide 0 by 0.
      CHECK(static_cast<double>(value(2)) == 0.5);
    }
  }
}

TEST_CASE("A 16-bit variable that is given another value is trained from there") {
  df::Graph graph;
  const df::Variable<df::BFloat16> w(graph, df::Tensor<df::BFloat16>::full({2}, df::BFloat16(1.0f)), {.name = "w"});
  const auto train = df::train::GradientDescent(1e-3).minimize(df::reduce_sum(w * df::BFloat16(1.0f)));
  const auto given =
      w.assign(df::constant(graph, df::Tensor<df::BFloat16>({2}, {df::BFloat16(1.0f), df::BFloat16(4.0f)})));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // No step of 0.001 is half of the last digit, three of them are more.
  for (int i = 0; i < 3; ++i) session.run(train);
  CHECK(static_cast<float>(session.run(w)(0)) == 0.99609375f);
  session.run(given);
  session.run(train);
  const auto value = session.run(w);
  CHECK(static_cast<float>(value(0)) == 1.0f);
  CHECK(static_cast<float>(value(1)) == 4.0f);
}

TEMPLATE_TEST_CASE("An update that training waits for, and one before in the same step, is trained on", "", float,
                   double, df::Half, df::BFloat16) {
  using T = TestType;
  df::Graph graph;
  const df::Variable<T> w(graph, df::Tensor<T>::full({4}, T(1)), {.name = "w"});
  const auto loss = df::reduce_sum(w);
  const auto set = w.assign(df::constant(graph, df::Tensor<T>::full({4}, T(5))));
  const df::Operation ordered = [&] {
    const auto after = graph.control_dependencies({set});
    return df::train::GradientDescent(0.5).minimize(loss);
  }();
  const df::train::GradientDescent descent(0.25);
  auto twice = descent.compute_gradients(loss);
  twice.push_back(twice[0]);
  const df::Operation two_updates = descent.apply_gradients(twice);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(two_updates);
  CHECK(static_cast<double>(session.run(w)(0)) == 0.5);
  for (int i = 0; i < 3; ++i) session.run(ordered);
  CHECK(static_cast<double>(session.run(w)(3)) == 4.5);
}

TEST_CASE("Sixteen-bit variables keep no statistics of their own precision") {
  df::Graph graph;
  const df::Variable<df::Half> w(graph, df::Tensor<df::Half>::full({2}, df::Half(1.0f)), {.name = "w"});
  df::train::Adam().minimize(df::reduce_sum(df::square(w)));
  for (const char* const name : {"w/master", "w/master/Adam", "w/master/Adam_1"}) {
    INFO(name);
    REQUIRE(graph.find(name).is_valid());
    CHECK(df::AnyVariable::of(graph.find(name)).dtype() == df::DType::float32);
  }
  CHECK(graph.collection("trainable_variables").size() == 1);
}

TEST_CASE("An empty edge is no hyperparameter") {
  const auto line = __LINE__ + 2;
  try {
    static_cast<void>(df::train::GradientDescent(df::Output<float>()));
    FAIL("no error");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::invalid_argument);
    CHECK(error.status().where().line() == line);
  }
  CHECK_THROWS_WITH(df::train::Adam(df::Output<double>()), Catch::Matchers::Contains("empty Output"));
}

TEST_CASE("a loss of integers is refused in the line that differentiates it") {
  df::Graph graph;
  df::Variable<float> w(graph, 1.0f);
  const auto count = df::placeholder<std::int32_t>(graph, {});
  CHECK_THROWS_WITH(df::train::Adam(0.1f).minimize(count), Catch::Matchers::Contains("Adam: the loss is int32") &&
                                                               Catch::Matchers::Contains("optimizers_test"));
}
