#include <dflow/session/compiled_function.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <source_location>
#include <stop_token>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Theano's tutorial, "Using Shared Variables": state = shared(0), accumulator = function([inc], state,
/// updates=[(state, state+inc)]).
struct CompiledAccumulator {
  Graph graph;
  Variable<std::int64_t> state{graph, 0, {.name = "state"}};
  Output<std::int64_t> inc = placeholder<std::int64_t>(graph, {}, {.name = "inc"});
  Session session{graph};

  CompiledAccumulator() { session.run(initialize_variables(graph)); }
  std::int64_t value() { return session.run(state).scalar(); }
};

template <class T>
std::vector<T> compiled_values(const Tensor<T>& tensor) {
  return {tensor.span().begin(), tensor.span().end()};
}

}  // namespace

TEST_CASE("a compiled function returns old values and then updates, as Theano's accumulator", "[compiled_function]") {
  CompiledAccumulator a;
  const auto accumulator = compile(a.session, inputs(a.inc), outputs(a.state), updates(a.state, a.state + a.inc));
  static_assert(std::is_same_v<decltype(accumulator(1)), Tensor<std::int64_t>>);
  // The numbers are the tutorial's.
  CHECK(a.value() == 0);
  CHECK(accumulator(1).scalar() == 0);
  CHECK(a.value() == 1);
  CHECK(accumulator(300).scalar() == 1);
  CHECK(a.value() == 301);
  const auto decrementor = compile(a.session, inputs(a.inc), outputs(a.state), updates(a.state, a.state - a.inc));
  CHECK(decrementor(2).scalar() == 301);
  CHECK(a.value() == 299);
}

TEST_CASE("givens stand for other edges in a compiled function alone", "[compiled_function]") {
  // The numbers come from Theano's tutorial: skip_shared(1, 3) is 7, and the state does not change.
  CompiledAccumulator a;
  const auto foo = placeholder<std::int64_t>(a.graph, {});
  const auto fn_of_state = a.state * 2 + a.inc;
  const auto skip_shared =
      compile(a.session, inputs(a.inc, foo), outputs(fn_of_state), {}, {.givens = EdgeMap().add(a.state, foo)});
  CHECK(skip_shared(1, 3).scalar() == 7);
  CHECK(a.value() == 0);
  const auto same =
      compile(a.session, inputs(a.inc, foo), outputs(fn_of_state), updates(), {.givens = EdgeMap().add(a.state, foo)});
  CHECK(same(1, 3).scalar() == 7);
  const auto plain = compile(a.session, inputs(a.inc), outputs(fn_of_state));
  CHECK(plain(1).scalar() == 1);
  // The givens also apply in new values; the updated variable stays.
  const auto set =
      compile(a.session, inputs(a.inc, foo), updates(a.state, fn_of_state), {.givens = EdgeMap().add(a.state, foo)});
  set(1, 10);
  CHECK(a.value() == 21);
  CHECK(plain(1).scalar() == 43);
}

TEST_CASE("a compiled function computes several outputs", "[compiled_function]") {
  // Theano's tutorial, "Computing More than one Thing at the Same Time".
  Graph graph;
  const auto a = placeholder<double>(graph, {dynamic, dynamic}), b = placeholder<double>(graph, {dynamic, dynamic});
  const auto diff = a - b;
  Session session(graph);
  const auto f = compile(session, inputs(a, b), outputs(diff, abs(diff), square(diff)));
  const auto [d, absolute, squared] = f(Tensor<double>({2, 2}, {1, 1, 1, 1}), Tensor<double>({2, 2}, {0, 1, 2, 3}));
  CHECK(compiled_values(d) == std::vector<double>{1, 0, -1, -2});
  CHECK(compiled_values(absolute) == std::vector<double>{1, 0, 1, 2});
  CHECK(compiled_values(squared) == std::vector<double>{1, 0, 1, 4});
}

TEST_CASE("new values are computed of the old ones, whatever the order of the updates", "[compiled_function]") {
  for (const int threads : {1, 4}) {
    Graph graph;
    Variable<float> a(graph, Tensor<float>({2}, {1, 2})), b(graph, Tensor<float>({2}, {30, 40}));
    SessionOptions options;
    options.num_threads = threads;
    Session session(graph, options);
    session.run(initialize_variables(graph));
    const auto swap = compile(session, inputs(), updates(a, b, b, a));
    static_assert(std::is_void_v<decltype(swap())>);
    for (int i = 0; i < 3; ++i) swap();
    CHECK(compiled_values(session.run(a)) == std::vector<float>{30, 40});
    CHECK(compiled_values(session.run(b)) == std::vector<float>{1, 2});
    // Fibonacci's numbers, which go wrong as soon as one update sees another.
    session.run(a.assign(constant(graph, Tensor<float>({2}, {0, 0}))));
    session.run(b.assign(constant(graph, Tensor<float>({2}, {1, 1}))));
    const auto next = compile(session, inputs(), outputs(a, b), updates(a, b, b, a + b));
    for (int i = 0; i < 20; ++i) next();
    const auto [f20, f21] = next();
    CHECK(compiled_values(f20) == std::vector<float>{6765, 6765});
    CHECK(compiled_values(f21) == std::vector<float>{10946, 10946});
  }
}

TEST_CASE("a compiled function keeps what it needs, and is copied and moved", "[compiled_function]") {
  std::optional<CompiledFunction<Tensor<float>(float)>> kept;
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Variable<float> calls(graph, 0);
    Session session(graph);
    session.run(initialize_variables(graph));
    CompiledFunction<Tensor<float>(float)> f =
        compile(session, inputs(x), outputs(x * 2 + calls), updates(calls, calls + 1));
    const auto copy = f;
    CHECK(copy(1).scalar() == 2);
    CHECK(f(1).scalar() == 3);
    kept = std::move(f);
    CHECK(code_of([&] { return f(1); }) == Code::failed_precondition);  // NOLINT(bugprone-use-after-move): its error
  }
  CHECK((*kept)(1.0f).scalar() == 4);
  CHECK((*kept)(Tensor<float>(5.0f)).scalar() == 13);
}

TEST_CASE("operations among the outputs run before the updates", "[compiled_function]") {
  Graph graph;
  Variable<std::int64_t> n(graph, 1), seen(graph, 0);
  Session session(graph);
  session.run(initialize_variables(graph));
  const Operation bump = n.assign_add(10);
  Output<std::int64_t> after;
  {
    const auto wait = graph.control_dependencies({bump});
    after = n.read();
  }
  const auto f = compile(session, inputs(), outputs(bump, after), updates(seen, after));
  static_assert(std::is_same_v<decltype(f()), Tensor<std::int64_t>>);
  CHECK(f().scalar() == 11);
  CHECK(session.run(seen).scalar() == 11);
  compile(session, inputs(), outputs(bump))();
  CHECK(session.run(n).scalar() == 21);
}

TEST_CASE("a compiled function trains", "[compiled_function]") {
  Graph graph({.seed = 1});
  const auto x = placeholder<float>(graph, {dynamic, 2}), y = placeholder<float>(graph, {dynamic, 1});
  Variable<float> w(graph, Tensor<float>::zeros({2, 1})), b(graph, 0);
  const auto loss = reduce_mean(square(matmul(x, w) + b - y));
  const auto gradient = gradients(loss, w, b);
  Updates all;
  all.add(w, w - std::get<0>(gradient) * 0.5f).add(b, b - std::get<1>(gradient) * 0.5f);
  Session session(graph);
  session.run(initialize_variables(graph));
  const auto train = compile(session, inputs(x, y), outputs(loss), all);
  const Tensor<float> batch_x({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}), batch_y({4, 1}, {1, 3, 0, 2});
  const float first = train(batch_x, batch_y).scalar();
  for (int i = 0; i < 200; ++i) train(batch_x, batch_y);
  CHECK(first == Catch::Approx(3.5));
  CHECK(train(batch_x, batch_y).scalar() < 1e-6f);
  CHECK(session.run(w)(0, 0) == Catch::Approx(-1).margin(1e-3));
  CHECK(session.run(w)(1, 0) == Catch::Approx(2).margin(1e-3));
}

TEST_CASE("calls may come from several threads", "[compiled_function]") {
  CompiledAccumulator a;
  const auto twice = compile(a.session, inputs(a.inc), outputs(a.inc * 2, a.inc));
  const auto count = compile(a.session, inputs(a.inc), outputs(a.inc), updates(a.state, a.state + a.inc));
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto [doubled, same] = twice(i * t);
        if (doubled.scalar() != 2 * i * t || same.scalar() != i * t) ++wrong;
        if (count(1).scalar() != 1) ++wrong;
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(a.value() >= 1);
  CHECK(a.value() <= 800);
}

TEST_CASE("a compiled function has a deadline and a stop token, and runs on its own", "[compiled_function]") {
  CompiledAccumulator a;
  std::stop_source stop;
  const auto f = compile(a.session, inputs(a.inc), outputs(a.state), updates(a.state, a.state + a.inc),
                         {.run = {.stop = stop.get_token()}});
  CHECK(f(1).scalar() == 0);
  std::promise<std::int64_t> done;
  f.run_async(2, [&](const Status& status, const Tensor<std::int64_t>& before) {
    done.set_value(status.ok() ? before.scalar() : -1);
  });
  CHECK(done.get_future().get() == 1);
  RunMetadata metadata;
  f.run({.trace = true}, &metadata, 4);
  CHECK(!metadata.stats.nodes.empty());
  CHECK(code_of([&] { return f.run({.deadline = std::chrono::nanoseconds(0)}, nullptr, 1); }) ==
        Code::deadline_exceeded);
  stop.request_stop();
  CHECK(code_of([&] { return f(1); }) == Code::cancelled);
  CHECK(a.value() == 7);
}

TEST_CASE("a call that fails updates nothing", "[compiled_function]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  Variable<float> total(graph, 0), last(graph, 0);
  Session session(graph);
  session.run(initialize_variables(graph));
  const auto f = compile(session, inputs(x), outputs(check_numerics(x, "the input")),
                         updates(total, total + reduce_sum(x), last, reduce_max(x)));
  f(Tensor<float>({2}, {1, 2}));
  CHECK(code_of([&] { return f(Tensor<float>({1}, {std::numeric_limits<float>::quiet_NaN()})); }) ==
        Code::invalid_argument);
  CHECK(session.run(total).scalar() == 3);
  CHECK(session.run(last).scalar() == 2);
}

TEST_CASE("compile says what does not fit, and leaves the graph as it was", "[compiled_function]") {
  CompiledAccumulator a, other;
  const std::size_t before = a.graph.num_nodes();
  const auto message = [&](const Updates& u) {
    return error_of([&] { return compile(a.session, inputs(a.inc), outputs(a.state), u); });
  };
  CHECK(contains(message(updates(other.state, other.state + 1)), "variable 0 belongs to another graph"));
  CHECK(contains(error_of([&] { return compile(a.session, inputs(other.inc), outputs(a.state)); }),
                 "input 0 belongs to another graph"));
  const Status foreign = status_of([&] { return compile(a.session, inputs(other.inc), outputs(a.state)); });
  CHECK(foreign.node() == other.inc.name());
  CHECK(contains(foreign.message(), str_cat("compiled_function_test.cpp:", other.inc.node().where.line())));
  CHECK(contains(error_of([&] { return compile(a.session, inputs(a.inc), outputs(other.state)); }),
                 "output 0 belongs to another graph"));
  CHECK(contains(error_of([&] { return compile(a.session, inputs(a.inc), outputs(other.state.initializer())); }),
                 "operation 0 belongs to another graph"));
  CHECK(contains(error_of([&] { return compile(a.session, inputs(), outputs()); }), "neither outputs nor updates"));
  CHECK(
      contains(error_of([&] { return compile(a.session, inputs(), outputs(Output<float>())); }), "output 0 is empty"));
  CHECK(contains(message(Updates().add(AnyVariable(), a.state)), "variable 0 is empty"));
  CHECK(a.graph.num_nodes() == before);

  const auto more = a.state + 1;
  const auto rows = constant(a.graph, Tensor<std::int64_t>({2}, {1, 2}));
  const AnyOutput floating = constant(a.graph, 1.0f);
  const std::size_t built = a.graph.num_nodes();
  CHECK(contains(message(updates(a.state, more, a.state, a.inc)), "variable 'state' is updated twice"));
  CHECK(contains(message(updates(a.state, rows)), "variable 'state' of shape [] is updated to an edge of shape [2]"));
  CHECK(contains(message(Updates().add(a.state.any_variable(), floating)), "float"));
  CHECK(a.graph.num_nodes() == built);
  // The line is the line of the call.
  const std::uint_least32_t line = std::source_location::current().line() + 1;
  const Status status = status_of([&] { return compile(a.session, inputs(), updates(a.state, rows)); });
  CHECK(status.where().line() == line);
}

TEST_CASE("a builder is a function of tensors without a graph", "[compiled_function]") {
  const auto flip =
      plain_function<std::uint8_t>({{dynamic, dynamic, 1}}, [](auto pixels) { return flip_left_right(pixels); });
  static_assert(std::is_same_v<decltype(flip(Tensor<std::uint8_t>())), Tensor<std::uint8_t>>);
  const Tensor<std::uint8_t> wide({1, 3, 1}, {1, 2, 3}), high({2, 2, 1}, {1, 2, 3, 4});
  CHECK(compiled_values(flip(wide)) == std::vector<std::uint8_t>{3, 2, 1});
  CHECK(compiled_values(flip(high)) == std::vector<std::uint8_t>{2, 1, 4, 3});
  CHECK(flip(Tensor<std::uint8_t>({0, 3, 1})).shape() == Shape{0, 3, 1});

  const auto sums = plain_function<float, float>(
      {{2}, {}}, [](auto x, auto y) { return std::tuple(x + y, reduce_sum(x)); }, {.num_threads = 1});
  const auto [moved, sum] = sums(Tensor<float>({2}, {1, 2}), 10);
  CHECK(compiled_values(moved) == std::vector<float>{11, 12});
  CHECK(sum.scalar() == 3);

  const auto noisy = plain_function<float>({{64}}, [](auto x) { return dropout(x, 0.5f); });
  const Tensor<float> ones = Tensor<float>::full({64}, 1);
  const auto first = compiled_values(noisy(ones)), second = compiled_values(noisy(ones));
  CHECK(first != second);
  CHECK(compiled_values(noisy(ones)) != second);

  CHECK(contains(error_of([&] { flip(Tensor<std::uint8_t>({1, 3, 2}, {1, 2, 3, 4, 5, 6})); }), "[1,3,2]"));
  const auto same = [](auto x) { return x; };
  CHECK(contains(error_of([&] { plain_function<float>({}, same); }), "0 shapes for 1 arguments"));
  CHECK(contains(error_of([&] { plain_function<float>({{4, 4}}, [](auto x) { return rot90(x); }); }), "rot90"));
}

TEST_CASE("plain functions of images are steps of datasets", "[compiled_function]") {
  std::vector<Tensor<std::uint8_t>> images;
  for (int i = 0; i < 20; ++i) images.push_back(Tensor<std::uint8_t>::full({2 + i % 3, 4, 3}, std::uint8_t(i * 5)));
  const auto prepare = plain_function<std::uint8_t>({{dynamic, dynamic, 3}}, [](auto pixels) {
    return adjust_brightness(convert_image_dtype<float>(resize_image_with_crop_or_pad(pixels, 2, 2)), 0.5f);
  });
  float expected = 0.5f;
  const auto all = data::from_vector(images).map(prepare, {.threads = 4});
  for (const auto& pixels : all) {
    CHECK(pixels.shape() == Shape{2, 2, 3});
    CHECK(pixels(1, 1, 2) == Catch::Approx(expected));
    expected += 5.0f / 255;
  }
  CHECK(expected == Catch::Approx(0.5f + 100.0f / 255));

  // Members of a pair are the arguments.
  const auto shift = plain_function<std::uint8_t, float>({{dynamic, 4, 3}, {}}, [](auto pixels, auto by) {
    return adjust_brightness(convert_image_dtype<float>(pixels), by);
  });
  const std::vector<Tensor<float>> amounts(images.size(), Tensor<float>(0.25f));
  int count = 0;
  for (const auto& pixels : data::zip(data::from_vector(images), data::from_vector(amounts)).map(shift)) {
    CHECK(pixels(0, 0, 0) == Catch::Approx(0.25f + static_cast<float>(5 * count++) / 255));
  }
  CHECK(count == 20);
}
