#include <dflow/train/fitting/moving_average.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/partitioned_variable.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace df = dflow;
using df::train::ExponentialMovingAverage;

namespace {

void check_near(const df::Tensor<float>& value, float first, float second) {
  CHECK(value(0) == Approx(first).epsilon(1e-6));
  CHECK(value(1) == Approx(second).epsilon(1e-6));
}

}  // namespace

TEST_CASE("averages are TensorFlow's") {
  df::Graph graph;
  const df::Variable<float> v(graph, df::Tensor<float>(df::Shape{2}, {1, -2}), {.name = "v"});
  const df::Variable<std::int64_t> n(graph, 0, {.name = "n", .trainable = false});
  const auto step = v.assign_add(df::constant<float>(graph, {0.5f, 1.0f}));
  const auto count = n.assign_add(1);
  const auto edge = df::Output<float>(v * 1.0f);
  ExponentialMovingAverage plain(0.9), quick(0.9, {.num_updates = n}), debiased(0.9, {.zero_debias = true}),
      biased(0.9);
  const auto trained = std::vector{v.any_variable()};
  const df::Operation all[] = {plain.apply(trained), quick.apply(trained), debiased.apply(edge), biased.apply(edge)};
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // tf.train.ExponentialMovingAverage of TensorFlow 2.21 in a graph: four steps of v += [0.5, 1], each followed by the
  // averages and n += 1. The averages are: variable v with decay 0.9; v with num_updates=n; tensor v * 1.0 with
  // zero_debias=True; v * 1.0 without it.
  constexpr float expected[4][8] = {
      {1.0499999523f, -1.899999976f, 1.4500000477f, -1.1000000238f, 1.5f, -1.0f, 0.1500000358f, -0.1000000238f},
      {1.1449999809f, -1.709999919f, 1.8999999762f, -0.1999999881f, 1.7631577253f, -0.4736841619f, 0.3350000679f,
       -0.0900000185f},
      {1.2805000544f, -1.438999891f, 2.3499999046f, 0.7000000477f, 2.0350549221f, 0.0701107085f, 0.5515000820f,
       0.0190000087f},
      {1.4524500370f, -1.095099807f, 2.7999999523f, 1.6000000238f, 2.3156437874f, 0.6312881708f, 0.7963501215f,
       0.2171000540f}};
  for (const auto& row : expected) {
    session.run(step);
    session.run(all[0], all[1], all[2], all[3]);
    session.run(count);
    check_near(session.run(plain.average(v)), row[0], row[1]);
    check_near(session.run(quick.average(v)), row[2], row[3]);
    check_near(session.run(debiased.average(edge)), row[4], row[5]);
    check_near(session.run(biased.average(edge)), row[6], row[7]);
  }
  CHECK(plain.average(v).name() == "v/ExponentialMovingAverage");
  CHECK(df::trainable_variables(graph).size() == 1);
}

TEST_CASE("averages of double and 16-bit variables are of their types") {
  df::Graph graph;
  const df::Variable<double> d(graph, 1.0);
  const df::Variable<df::BFloat16> h(graph, df::Tensor<df::BFloat16>(df::BFloat16(1.0f)));
  ExponentialMovingAverage averages(0.5);
  const auto move = averages.apply(std::vector{d.any_variable(), h.any_variable()});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(d.assign(2.0), h.assign(df::constant(graph, df::Tensor<df::BFloat16>(df::BFloat16(3.0f)))));
  session.run(move);
  CHECK(session.run(averages.average(d)).scalar() == 1.5);
  CHECK(static_cast<float>(session.run(averages.average(h)).scalar()) == 2.0f);
  CHECK(averages.apply(std::vector{d.any_variable()}).is_valid());  // again: the average that is there
  CHECK(df::global_variables(graph).size() == 5);                   // and the float copy of one average
}

// 1 - decay^updates is the average of a value that is 1 after having begun with 0 (the formula of the header).
TEMPLATE_TEST_CASE("averages of 16-bit values get as far as those of floats", "", df::Half, df::BFloat16) {
  using T = TestType;
  const double step = std::is_same_v<T, df::Half> ? 0x1p-11 : 0x1p-8;
  const auto narrow = [](float value) { return df::Tensor<T>({2}, {T(value), T(-value)}); };
  for (const auto& [decay, updates] : {std::pair{0.9, 50}, {0.99, 300}, {0.999, 3000}}) {
    CAPTURE(decay, updates);
    df::Graph graph;
    const df::Variable<T> x(graph, narrow(0), {.name = "x"});
    const auto fed = df::placeholder<T>(graph, {2});
    ExponentialMovingAverage plain(decay), debiased(decay, {.zero_debias = true}), of_edge(decay);
    const df::Operation moves[] = {plain.apply({x.any_variable()}), debiased.apply(fed), of_edge.apply(fed)};
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    session.run(x.assign(df::constant(graph, narrow(1))));
    const auto all = session.prepare(df::feeds(fed), df::fetches(df::group(moves)));
    for (int i = 0; i < updates; ++i) all(narrow(1));
    const double exact = 1 - std::pow(decay, updates);
    const auto is_near = [&](const df::Variable<T>& average, double wanted) {
      const df::Tensor<T> value = session.run(average);
      const double half_digit = step * std::max(1.0, wanted);
      CHECK(std::abs(static_cast<double>(value(0)) - wanted) <= half_digit);
      CHECK(std::abs(static_cast<double>(value(1)) + wanted) <= half_digit);
    };
    is_near(plain.average(x), exact);
    is_near(of_edge.average(fed), exact);
    is_near(debiased.average(fed), 1);
    // A value that the average is given counts from then on.
    session.run(plain.average(x).assign(df::constant(graph, narrow(3))));
    all(narrow(1));
    is_near(plain.average(x), 3 - 2 * (1 - decay));
    // A restored model has the averages, and not their copies.
    const df::train::SavedVariables restored = plain.variables_to_restore(graph);
    for (const df::train::SavedVariable& saved : restored.variables()) {
      CHECK(saved.name != plain.average(x).name() + "/master");
    }
  }
}

TEST_CASE("two moves in a step of one average of 16 bits are two moves") {
  df::Graph graph;
  const df::Variable<df::BFloat16> x(graph, df::Tensor<df::BFloat16>(df::BFloat16(0.0f)), {.name = "x"});
  ExponentialMovingAverage averages(0.999);
  const df::Operation first = averages.apply({x.any_variable()});
  const auto after = graph.control_dependencies({first});
  const df::Operation second = averages.apply({x.any_variable()});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(x.assign(df::constant(graph, df::Tensor<df::BFloat16>(df::BFloat16(1.0f)))));
  for (int i = 0; i < 500; ++i) session.run(second);
  CHECK(std::abs(static_cast<double>(session.run(averages.average(x)).scalar()) - (1 - std::pow(0.999, 1000))) <=
        0x1p-8);
}

TEST_CASE("an average with a decay next to 1 moves by what is left of it, with a count of updates as without") {
  df::Graph graph;
  const df::Variable<double> d(graph, 1.0);
  const df::Variable<float> f(graph, 1.0f);
  const df::Variable<std::int64_t> n(graph, std::int64_t{1} << 40, {.trainable = false});
  // As a float this decay is 1.
  constexpr double weight = 1e-8;
  ExponentialMovingAverage plain(1 - weight), counted(1 - weight, {.num_updates = n});
  const std::vector variables{d.any_variable(), f.any_variable()};
  const df::Operation all[] = {plain.apply(variables), counted.apply(variables)};
  const df::Operation rise = d.assign(df::constant(graph, 1e8 + 1)), jump = f.assign(df::constant(graph, 1e8f));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(rise, jump);
  session.run(all[0], all[1]);
  for (const ExponentialMovingAverage* average : {&plain, &counted}) {
    CHECK(session.run(average->average(d)).scalar() == Approx(2.0).epsilon(1e-7));
    CHECK(session.run(average->average(f)).scalar() == Approx(2.0f).epsilon(1e-6));
  }
}

TEST_CASE("a model for use is restored from averages") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph graph;
  const df::Variable<float> w(graph, 4.0f, {.name = "w"}), other(graph, 7.0f, {.name = "other", .trainable = false});
  ExponentialMovingAverage averages(0.75);
  const auto update = w.assign(8.0f);
  const auto move = averages.apply(df::trainable_variables(graph));
  df::train::Saver all(graph, {.files = files});
  df::train::Saver averaged(graph, averages.variables_to_restore(graph), {.files = files});
  auto devices = df::cpu_devices(1);
  df::set_device_files(devices[0]->context(), files);
  df::Session session(graph, {.devices = devices});
  session.run(df::initialize_variables(graph));
  session.run(update);
  session.run(move);
  averaged.restore(session, all.save(session, "/m"));
  CHECK(session.run(w).scalar() == 5.0f);
  CHECK(session.run(other).scalar() == 7.0f);
}

TEST_CASE(
    "averages of a variable in parts are slices of one tensor, and a model in other parts is restored from them") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto with_files = [&](const df::Graph& graph) {
    auto devices = df::cpu_devices(1);
    df::set_device_files(devices[0]->context(), files);
    return df::Session(graph, {.devices = devices});
  };
  const df::Tensor<float> initial(df::Shape{2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto parted = [&](df::Graph& graph, std::int64_t parts) {
    return df::partitioned_variable<float>(
        graph, {2, 4},
        {.partitioner = df::fixed_size_partitioner(parts, 1), .initializer = df::init::value(initial), .name = "w"});
  };
  std::string path;
  {
    df::Graph graph;
    const auto w = parted(graph, 3);
    ExponentialMovingAverage averages(0.75);
    std::vector<df::Operation> updates;
    for (const auto& part : w) updates.push_back(part.assign(part + 8.0f));
    const auto move = averages.apply(df::trainable_variables(graph));
    CHECK(averages.average(w[1]).any_variable().slice() == w[1].any_variable().slice());
    df::train::Saver all(graph, {.files = files});
    df::Session session = with_files(graph);
    session.run(df::initialize_variables(graph));
    session.run(df::group(updates));
    session.run(move);
    path = all.save(session, "/m");
  }
  for (const std::int64_t parts : {1, 2, 3, 4}) {
    df::Graph graph;
    const auto w = parted(graph, parts);
    ExponentialMovingAverage averages(0.75);
    averages.apply(df::trainable_variables(graph));
    df::train::Saver averaged(graph, averages.variables_to_restore(graph), {.files = files});
    df::Session session = with_files(graph);
    averaged.restore(session, path);
    const df::Tensor<float> value = session.run(w.as_tensor());
    INFO(parts << " parts");
    for (std::int64_t i = 0; i < 8; ++i) CHECK(value.data()[i] == initial.data()[i] + 2);
  }
}

TEST_CASE("a branch moves the averages of variables around it, which live outside of it") {
  df::Graph graph;
  const df::Variable<float> w(graph, df::Tensor<float>(df::Shape{2}, {1, 2}), {.name = "w"});
  const auto moves = df::placeholder<bool>(graph, {});
  ExponentialMovingAverage averages(0.5);
  const auto branch = df::cond(
      moves, [&] { return df::with_dependencies({averages.apply(std::vector{w.any_variable()})}, w.read()); },
      [&] { return df::identity(w.read()); });
  const auto average = averages.average(w);
  CHECK_FALSE(average.handle().node().function.is_valid());
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(w.assign(df::constant(graph, df::Tensor<float>(df::Shape{2}, {3, 6}))));
  session.run({{moves, false}}, branch);
  check_near(session.run(average.read()), 1, 2);
  session.run({{moves, true}}, branch);
  check_near(session.run(average.read()), 2, 4);
  session.run({{moves, true}}, branch);
  check_near(session.run(average.read()), 2.5f, 5);
}

TEST_CASE("averages are of floats, of known shapes, and of what they were given") {
  df::Graph graph;
  const df::Variable<std::int32_t> n(graph, 0);
  const df::Variable<float> w(graph, 0.0f);
  const auto x = df::placeholder<float>(graph, {df::dynamic});
  ExponentialMovingAverage averages(0.5);
  CHECK(code_of([] { return ExponentialMovingAverage(1.0), 0; }) == df::Code::invalid_argument);
  CHECK(code_of([] { return ExponentialMovingAverage(-0.1), 0; }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return averages.apply(std::vector{n.any_variable()}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return averages.apply(x); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return averages.average(w); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return averages.apply(std::vector<df::AnyVariable>{}); }) == df::Code::invalid_argument);
  // Empty edges and variables, first or not.
  CHECK(code_of([&] { averages.apply(df::Output<float>()); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { averages.apply({df::AnyVariable()}); }) == df::Code::invalid_argument);
}

TEST_CASE("averages are of one graph, and of another one when that is gone") {
  ExponentialMovingAverage averages(0.5);
  std::optional<df::Graph> graph(std::in_place);
  averages.apply(std::vector{df::Variable<float>(*graph, 1.0f, {.name = "w"}).any_variable()});
  {
    df::Graph other;
    const df::Variable<float> w(other, 1.0f, {.name = "w"});
    CHECK(code_of([&] { return averages.apply(std::vector{w.any_variable()}); }) == df::Code::invalid_argument);
    CHECK(code_of([&] { return averages.average(w); }) == df::Code::invalid_argument);
    CHECK(averages.variables_to_restore(other).variables().at(0).name == "w");
  }
  for (int i = 0; i < 3; ++i) {
    graph.reset();
    graph.emplace();
    const df::Variable<float> w(*graph, 2.0f, {.name = "w"});
    CHECK(code_of([&] { return averages.average(w); }) == df::Code::invalid_argument);
    const auto move = averages.apply(std::vector{w.any_variable()});
    df::Session session(*graph);
    session.run(df::initialize_variables(*graph));
    session.run(w.assign(4.0f));
    session.run(move);
    CHECK(session.run(averages.average(w)).scalar() == 3.0f);
  }
}
