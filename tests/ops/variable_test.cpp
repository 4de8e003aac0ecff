#include <dflow/ops/state/typed_variable.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/session/session.hpp>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;

TEST_CASE("A variable is its read edge, and has the names that TensorFlow gives") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4}), {.name = "w"});
  CHECK(w.handle().name() == "w");
  CHECK(w.operation().name() == "w/read");
  CHECK(w.initializer().name() == "w/Assign");
  CHECK(w.shape() == df::PartialShape{2, 2});
  CHECK(w.operation().node().colocated_with == w.handle().node_id());
  CHECK(graph.collection("variables").size() == 1);
  CHECK(graph.collection("trainable_variables").size() == 1);
  df::Variable<float> second(graph, 1.0f, {.trainable = false});
  CHECK(second.name() == "Variable");
  CHECK(graph.collection("trainable_variables").size() == 1);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto product = session.run(df::matmul(w, w) + 1.0f);
  CHECK(product(1, 1) == 23.0f);
}

TEST_CASE("Steps change a variable, and the next one sees it") {
  df::Graph graph;
  df::Variable<std::int64_t> count(graph, std::int64_t{0}, {.name = "count"});
  auto bump = count.assign_add(df::constant(graph, std::int64_t{5}));
  auto drop = count.assign_sub(df::constant(graph, std::int64_t{2}));
  auto reset = count.assign(df::constant(graph, std::int64_t{100}));
  df::Session session(graph);
  CHECK(session.run(count.is_initialized()).scalar() == false);
  CHECK(code_of([&] { session.run(count); }) == df::Code::failed_precondition);
  CHECK_THROWS_WITH(session.run(bump),
                    Catch::Matchers::Contains("'count' has not been initialized: run initialize_variables"));
  session.run(df::initialize_variables(graph));
  CHECK(session.run(count.is_initialized()).scalar() == true);
  session.run(bump);
  session.run(bump);
  session.run(drop);
  CHECK(session.run(count).scalar() == 8);
  session.run(reset);
  CHECK(session.run(count).scalar() == 100);
}

TEST_CASE("A number stands for a scalar of the variable's element type") {
  df::Graph graph;
  df::Variable<float> x(graph, 0, {.name = "x"});
  df::Variable<std::int64_t> count(graph, 1, {.name = "count"});
  df::Variable<df::Half> half(graph, 0.5, {.name = "half"});
  df::Variable<bool> flag(graph, true, {.name = "flag"});
  df::Variable<float> pair(graph, df::Tensor<float>({2}, {1, 2}), {.name = "pair"});
  static_assert(!std::is_constructible_v<df::Variable<std::int64_t>, df::Graph&, double>);
  static_assert(!std::is_constructible_v<df::Variable<bool>, df::Graph&, int>);
  const auto set = x.assign(2), add = x.assign_add(1.5f), drop = count.assign_sub(3, {.name = "drop"});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(set);
  session.run(add);
  session.run(drop);
  CHECK(session.run(x).scalar() == 3.5f);
  CHECK(session.run(count).scalar() == -2);
  CHECK(session.run(half).scalar() == df::Half(0.5f));
  CHECK(session.run(flag).scalar());
  CHECK(drop.name() == "drop");
  const df::Status status = status_of([&] { return pair.assign_add(1.0f); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "variable_test.cpp"));
  CHECK(code_of([] { return df::Variable<float>().assign(1.0f); }) == df::Code::invalid_argument);
}

TEST_CASE("A variable is assigned a tensor") {
  df::Graph graph;
  const df::Variable<float> w(graph, df::Tensor<float>::zeros({2, 2}), {.name = "w"});
  const df::Operation set = w.assign(df::Tensor<float>({2, 2}, {1, 2, 3, 4}));
  CHECK(code_of([&] { return w.assign(df::Tensor<float>({2}, {1, 2})); }) == df::Code::invalid_argument);
  CHECK(code_of([] {
          return df::Variable<float>().assign(df::Tensor<float>({2}, {1, 2}));
        }) == df::Code::invalid_argument);
  df::Session session(graph);
  session.run(set);
  CHECK(session.run(w)(1, 0) == 3.0f);
}

TEST_CASE("A read after a control dependency sees the update") {
  df::Graph graph;
  df::Variable<float> w(graph, 1.0f, {.name = "w"});
  const auto bump = w.assign_add(df::constant(graph, 1.0f));
  df::Output<float> after;
  {
    const auto scope = graph.control_dependencies({bump});
    after = w.read();
  }
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(session.run(after).scalar() == 2.0f);
  CHECK(session.run(after).scalar() == 3.0f);
}

TEST_CASE("What was fetched or fed is not written by later updates") {
  df::Graph graph;
  auto value = df::placeholder<float>(graph, {3});
  df::Variable<float> w(graph, df::Tensor<float>({3}, {1, 2, 3}), {.name = "w"});
  auto assign = w.assign(value);
  auto bump = w.assign_add(value);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto before = session.run(w);
  df::Tensor<float> fed({3}, {10, 20, 30});
  session.run({{value, fed}}, bump);
  CHECK(before(0) == 1.0f);
  session.run({{value, fed}}, assign);
  session.run({{value, fed}}, bump);
  CHECK(fed(2) == 30.0f);
  CHECK(session.run(w)(2) == 60.0f);
  fed(2) = -1.0f;
  CHECK(session.run(w)(2) == 60.0f);
}

TEST_CASE("Rows are scattered with repeated ids added up") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>::zeros({3, 2}), {.name = "w"});
  auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto rows = df::placeholder<float>(graph, {df::dynamic, 2});
  auto add = w.scatter_add(ids, rows);
  auto subtract = w.scatter_sub(ids, rows);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<std::int32_t> twice({2}, {1, 1});
  const df::Tensor<float> ones({2, 2}, {1, 2, 3, 4});
  session.run({{ids, twice}, {rows, ones}}, add);
  auto value = session.run(w);
  CHECK(value(1, 0) == 4.0f);
  CHECK(value(1, 1) == 6.0f);
  CHECK(value(0, 0) == 0.0f);
  session.run({{ids, df::Tensor<std::int32_t>({2}, {0, 1})}, {rows, ones}}, subtract);
  value = session.run(w);
  CHECK(value(0, 1) == -2.0f);
  CHECK(value(1, 1) == 2.0f);

  const df::Tensor<std::int32_t> outside({2}, {0, 3});
  CHECK(code_of([&] { session.run({{ids, outside}, {rows, ones}}, add); }) == df::Code::invalid_argument);
  CHECK_THROWS_WITH(session.run({{ids, outside}, {rows, ones}}, add), Catch::Matchers::Contains("indices[1] = 3"));
  CHECK(df::bitwise_equal(session.run(w), value));
}

TEST_CASE("Rows are updated by every operator, in the order of their ids") {
  df::Graph graph;
  const df::Tensor<float> start({3, 2}, {1, 2, 3, 4, 5, 6});
  df::Variable<float> w(graph, start, {.name = "w"});
  const auto ids = df::constant(graph, df::Tensor<std::int64_t>({3}, {2, 0, 2}));
  const auto rows = df::constant(graph, df::Tensor<float>({3, 2}, {8, 4, 2, 1, 16, 2}));
  df::Session session(graph);
  const auto after = [&](const df::Operation& update) {
    session.run(w.initializer());
    session.run(update);
    const auto value = session.run(w);
    return std::vector<float>(value.begin(), value.end());
  };
  CHECK(after(w.scatter_update(ids, rows)) == std::vector<float>{2, 1, 3, 4, 16, 2});
  CHECK(after(w.scatter_add(ids, rows)) == std::vector<float>{3, 3, 3, 4, 29, 12});
  CHECK(after(w.scatter_sub(ids, rows)) == std::vector<float>{-1, 1, 3, 4, -19, 0});
  CHECK(after(w.scatter_mul(ids, rows)) == std::vector<float>{2, 2, 3, 4, 640, 48});
  CHECK(after(w.scatter_div(ids, rows)) == std::vector<float>{0.5f, 2, 3, 4, 5.0f / 128, 0.75f});
  CHECK(after(w.scatter_min(ids, rows)) == std::vector<float>{1, 1, 3, 4, 5, 2});
  CHECK(after(w.scatter_max(ids, rows)) == std::vector<float>{2, 2, 3, 4, 16, 6});
  CHECK(after(w.scatter_mul(ids, df::constant(graph, 2.0f))) == std::vector<float>{2, 4, 3, 4, 20, 24});
}

TEST_CASE("Rows of any element type are replaced") {
  df::Graph graph;
  df::Variable<std::string> words(graph, df::Tensor<std::string>({3}, {"a", "b", "c"}));
  df::Variable<bool> flags(graph, df::Tensor<bool>({2, 2}, {true, true, true, true}));
  const auto ids = df::constant(graph, df::Tensor<std::int32_t>({2}, {1, 1}));
  const auto say =
      words.scatter_update(ids, df::constant(graph, df::Tensor<std::string>({2}, {"x", "longer than it was"})));
  const auto clear = flags.scatter_update(ids, df::constant(graph, false));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(say, clear);
  CHECK(session.run(words)(1) == "longer than it was");
  CHECK(session.run(words)(2) == "c");
  CHECK(session.run(flags)(0, 1));
  CHECK_FALSE(session.run(flags)(1, 0));
}

TEST_CASE("An integer division by zero leaves the variable as it is") {
  df::Graph graph;
  df::Variable<std::int8_t> w(graph, df::Tensor<std::int8_t>({2}, {-128, 6}), {.name = "w"});
  auto divisors = df::placeholder<std::int8_t>(graph, {2});
  const auto divide = w.scatter_div(df::constant(graph, df::Tensor<std::int32_t>({2}, {1, 0})), divisors);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<std::int8_t> with_zero({2}, {2, 0}), minus({2}, {-4, -1});
  CHECK(code_of([&] { session.run({{divisors, with_zero}}, divide); }) == df::Code::invalid_argument);
  CHECK_THROWS_WITH(session.run({{divisors, with_zero}}, divide), Catch::Matchers::Contains("division by zero"));
  CHECK(session.run(w)(1) == 6);
  session.run({{divisors, minus}}, divide);
  CHECK(session.run(w)(0) == -128);
  CHECK(session.run(w)(1) == -1);
}

TEST_CASE("A variable may be updated by its own rows") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>({3}, {1, 2, 3}), {.name = "w"});
  const auto turn = w.scatter_update(df::constant(graph, df::Tensor<std::int32_t>({3}, {2, 1, 0})), w);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(turn);
  const auto value = session.run(w);
  CHECK(std::vector<float>(value.begin(), value.end()) == std::vector<float>{3, 2, 1});
}

TEST_CASE("Shapes and types that do not fit are refused where they are known") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>::zeros({3, 2}), {.name = "w"});
  const auto wide = df::constant(graph, df::Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(code_of([&] { w.assign(wide); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { w.assign_add(wide); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { df::Variable<float> other(graph, 1.0f, {.name = "w"}); }) == df::Code::invalid_argument);
  const df::AnyOutput doubles = df::constant(graph, 1.0);
  CHECK(code_of([&] { w.any_variable().assign(doubles); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { df::AnyVariable::of(doubles.operation()); }) == df::Code::invalid_argument);

  auto open = df::placeholder<float>(graph);
  auto assign = w.assign(open);
  auto add = w.assign_add(open);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> vector({2}, {1, 2});
  CHECK(code_of([&] { session.run({{open, vector}}, assign); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { session.run({{open, vector}}, add); }) == df::Code::invalid_argument);
  CHECK(session.run(w).shape() == df::Shape{3, 2});
}

TEST_CASE("A variable does not go into a container of the library's") {
  df::Graph graph;
  const auto one = df::constant(graph, 1.0f);
  const std::size_t before = graph.num_nodes();
  for (const char* container : {"_random_streams", "_", "_x"}) {
    CHECK(code_of([&] { df::Variable<float>(graph, one, {.container = container}); }) == df::Code::invalid_argument);
  }
  CHECK(graph.num_nodes() == before);
  CHECK(code_of([&] { df::Variable<float>(graph, one, {.container = "x_"}); }) == df::Code::ok);
}

TEST_CASE("Variables of one shared name are one, of two containers two") {
  df::Graph graph;
  df::Variable<float> a(graph, 1.0f, {.name = "a", .shared_name = "same"});
  df::Variable<float> b(graph, 2.0f, {.name = "b", .shared_name = "same"});
  df::Variable<float> c(graph, 3.0f, {.name = "c", .container = "other", .shared_name = "same"});
  df::Session session(graph);
  session.run(a.initializer());
  CHECK(session.run(b).scalar() == 1.0f);
  session.run(c.initializer());
  session.run(b.initializer());
  CHECK(session.run(a).scalar() == 2.0f);
  CHECK(session.run(c).scalar() == 3.0f);
}

TEST_CASE("Concurrent steps leave a variable whole", "[stress]") {
  constexpr int threads_count = 4, steps = 200;
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>::zeros({301}), {.name = "w"});
  auto bump = w.assign_add(df::constant(graph, df::Tensor<float>::full({301}, 1.0f)));
  df::Session session(graph, {.num_threads = 2});
  session.run(df::initialize_variables(graph));
  std::vector<std::thread> threads;
  std::vector<int> torn(threads_count, 0);
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < steps; ++i) {
        session.run(bump);
        const auto value = session.run(w);
        for (const float element : value) torn[static_cast<std::size_t>(t)] += element != value(0) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == std::vector<int>(threads_count, 0));
  CHECK(session.run(w)(300) == static_cast<float>(threads_count * steps));
}

TEST_CASE("A variable does not share the tensor of its initial value with the caller") {
  df::Graph graph;
  df::Tensor<float> first({3}, {1, 2, 3});
  std::vector<float> lent{1, 2, 3};
  const df::Variable<float> of_handle(graph, first), of_loan(graph, df::borrow(lent, {3}));
  const df::Variable<float> of_rows(graph, first.slice(1, 3));
  first(0) = first(2) = lent[0] = 100;
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(session.run(of_handle)(0) == 1);
  CHECK(session.run(of_loan)(0) == 1);
  CHECK(session.run(of_rows)(1) == 3);

  // A temporary is not copied.
  df::Tensor<float> given({3}, {1, 2, 3});
  const float* const elements = given.data();
  const df::Variable<float> of_temporary(graph, std::move(given), {.name = "w"});
  const df::Node& constant = graph.node(graph.find("w/Assign").node().inputs[1].node);
  CHECK(constant.attrs_as<df::Const>().value.raw_data() == elements);
}

TEST_CASE("The initialized value of a variable is of the same random draw, in any order of initializers") {
  df::Graph graph({.seed = 3});
  const df::Variable<float> v(graph, df::random_normal<float>(graph, {4}), {.name = "v"});
  const df::Variable<float> twice(graph, v.initialized_value() * 2.0f, {.name = "twice"});
  const df::Variable<float> more(graph, twice.initialized_value() + v.initialized_value(), {.name = "more"});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  for (const bool is_alone : {false, true}) {
    INFO(is_alone);
    if (is_alone) {
      session.run(v.assign(df::constant<float>(graph, {1, 2, 3, 4})));
      session.run(more.initializer());  // draws v anew
    }
    const auto [a, b, c] = session.run(v, twice, more);
    for (int i = 0; i < 4; ++i) {
      CHECK(b(i) == 2 * a(i));
      CHECK(c(i) == Catch::Approx(3 * a(i)));
    }
    CHECK(a(0) != a(1));
    CHECK(a(0) != 1);
  }
}

TEST_CASE("An empty variable is refused") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {3});
  const df::Variable<float> empty;
  const auto is_refused = [](auto&& build) {
    try {
      build();
    } catch (const df::Error& error) {
      return error.code() == df::Code::invalid_argument;
    }
    return false;
  };
  CHECK(is_refused([&] { empty.read(); }));
  CHECK(is_refused([&] { empty.assign(x); }));
  CHECK(is_refused([&] { empty.assign_add(x); }));
  CHECK(is_refused([&] { empty.assign_sub(x); }));
  CHECK(is_refused([&] { empty.is_initialized(); }));
  CHECK(is_refused([&] { empty.initializer(); }));
  CHECK(is_refused([&] { empty.initialized_value(); }));
  CHECK(is_refused([&] { empty.name(); }));
  CHECK(is_refused([&] { empty.scatter_add(df::placeholder<std::int32_t>(graph), x); }));
  CHECK(is_refused([&] { empty + x; }));
  CHECK(is_refused([&] { df::Variable<float>(graph, df::Output<float>()); }));
}

TEST_CASE("A variable without its own read is that of another, and one that nothing reads is named") {
  df::Graph graph;
  const auto one = df::constant(graph, 1.0f);
  const auto handle = [&](const char* name) {
    const df::AnyOutput made = df::build<df::VariableOp>(
        *graph.store(), {}, {.shape = df::PartialShape({}), .container = {}, .shared_name = {}, .slice = {}},
        {.name = name}, df::type_args<float>());
    graph.add_to_collection("variables", made.operation());
    return made;
  };
  const df::AnyOutput w = handle("w");
  df::AnyOutput late;
  {
    const df::ScopeGuard after = graph.control_dependencies({one.operation()});
    late = df::build<df::ReadVariable>({w}, {}, {}, df::type_args<float>());
  }
  const df::AnyOutput read = df::build<df::ReadVariable>({w}, {}, {.name = "value"}, df::type_args<float>());
  const std::vector<df::AnyVariable> variables = df::global_variables(graph);
  REQUIRE(variables.size() == 1);
  CHECK(variables[0].read_edge() == read);
  CHECK(contains(error_of([&] { return variables[0].initializer(); }), "no node 'w/Assign'"));
  handle("unread");
  CHECK(contains(error_of([&] { return df::global_variables(graph); }), "no node reads variable 'unread'"));
  CHECK(contains(error_of([&] { return df::AnyVariable::of(one.operation()); }), "is not the handle of a variable"));
}
