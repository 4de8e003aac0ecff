#include <dflow/train/variables/variable_scope.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

std::vector<std::string> scoped_variable_names(const df::Graph& graph) {
  std::vector<std::string> names;
  for (const df::AnyVariable& variable : df::global_variables(graph)) names.push_back(variable.name());
  return names;
}

/// Three layers, the last one with a name of its call.
df::Output<float> scoped_model(const df::Output<float>& x) {
  return df::dense(df::dense(df::dense(x, 3), 4), 5, {}, {.name = "out"});
}

/// The mean of a variable and a number: the regularizers of TensorFlow's variable_scope_test.py.
df::Regularizer mean_and(double more) {
  return [more](const df::AnyOutput& w) -> df::AnyOutput {
    return df::reduce_mean(df::Output<float>(w)) + static_cast<float>(more);
  };
}

}  // namespace

TEST_CASE("A model that is built twice in a variable scope has one set of variables", "[variable_scope]") {
  df::Graph graph({.seed = 1});
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  df::Output<float> first, second;
  {
    const df::VariableScope scope(graph, "tower");
    first = scoped_model(x);
  }
  const std::vector<std::string> names = scoped_variable_names(graph);
  // TensorFlow gives the same names to layers that open variable_scope(name, "dense"), and to their nodes.
  CHECK(names == std::vector<std::string>{"tower/dense/kernel", "tower/dense/bias", "tower/dense_1/kernel",
                                          "tower/dense_1/bias", "tower/out/kernel", "tower/out/bias"});
  {
    const df::VariableScope scope(graph, "tower", {.reuse = df::Reuse::always});
    second = scoped_model(x);
  }
  CHECK(scoped_variable_names(graph) == names);
  CHECK(df::trainable_variables(graph).size() == 6);
  CHECK(first.name().starts_with("tower/out/"));
  CHECK(second.name().starts_with("tower_1/out/"));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto [a, b] = session.run({{x, df::Tensor<float>({1, 2}, {1, -2})}}, first, second);
  for (std::int64_t i = 0; i < 5; ++i) CHECK(a(0, i) == b(0, i));
  CHECK(a(0, 0) != 0);
}

TEST_CASE("get_variable makes, finds or refuses by the scope's reuse", "[variable_scope]") {
  df::Graph graph;
  df::Variable<float> made;
  {
    const df::VariableScope scope(graph, "foo");
    CHECK(scope.reuse() == df::Reuse::never);
    made = scope.get_variable<float>("v", {2, 3});
    CHECK(made.name() == "foo/v");
    CHECK(made.shape() == df::PartialShape{2, 3});
    const std::size_t before = graph.num_nodes();
    const std::string again = error_of(
        [&] {
          return scope.get_variable<float>("v", {2, 3});
        },
        df::Code::already_exists);
    CHECK(contains(again, "variable 'foo/v' exists already, made at"));
    CHECK(contains(again, __FILE__));
    CHECK(graph.num_nodes() == before);
  }
  {
    const df::VariableScope scope(graph, "foo", {.reuse = df::Reuse::always});
    CHECK(scope.get_variable<float>("v", {2, 3}) == made);
    CHECK(scope.existing_variable<float>("v") == made);
    CHECK(contains(error_of([&] { return scope.get_variable<float>("w", {1}); }, df::Code::not_found),
                   "there is no variable 'foo/w'"));
    CHECK(code_of([&] { return scope.existing_variable<float>("w"); }) == df::Code::not_found);
    const std::string shape = error_of([&] { return scope.get_variable<float>("v", {3, 2}); });
    CHECK(contains(shape, "variable 'foo/v' is float [2,3]"));
    CHECK(contains(shape, "asked for as float [3,2]"));
    CHECK(contains(error_of([&] { return scope.get_variable<double>("v", {2, 3}); }), "asked for as double [2,3]"));
    CHECK(code_of([&] { return scope.existing_variable<double>("v"); }) == df::Code::invalid_argument);
  }
  const df::VariableScope scope(graph, "foo", {.reuse = df::Reuse::automatic});
  CHECK(scope.get_variable<float>("v", {2, 3}) == made);
  const auto w = scope.get_variable<float>("w", {1}, {.trainable = false});
  CHECK(scope.get_variable<float>("w", {1}) == w);
  CHECK(scoped_variable_names(graph) == std::vector<std::string>{"foo/v", "foo/w"});
  CHECK(df::trainable_variables(graph).size() == 1);
  // The free function uses the innermost scope. Outside of all scopes it makes its variable.
  CHECK(df::get_variable<float>(graph, "w", {1}) == w);
  df::Graph other;
  CHECK(df::get_variable<float>(other, "w", {1}).name() == "w");
  CHECK(code_of([&] { return df::get_variable<float>(other, "w", {1}); }) == df::Code::already_exists);
}

TEST_CASE("Names of variables are those of variable scopes, names of nodes those of name scopes", "[variable_scope]") {
  df::Graph graph;
  // Run by TensorFlow 2's compat.v1 as well.
  const auto path_of_foo = [&] {
    const auto names = graph.name_scope("ns");
    const df::VariableScope foo(graph, "foo");
    const auto v = foo.get_variable<float>("v", {1});
    CHECK(v.name() == "foo/v");
    CHECK(df::tanh(v, {.name = "o"}).name() == "ns/foo/o");
    return foo.reopened();
  }();
  const df::VariableScope bar(graph, "bar");
  const df::VariableScope foo(graph, path_of_foo, {.reuse = df::Reuse::always});
  const auto v = foo.get_variable<float>("v", {1});
  CHECK(v.name() == "foo/v");
  CHECK(df::tanh(v, {.name = "o"}).name() == "bar/foo/o");
  const df::VariableScope inner(graph, "bar2");
  CHECK(inner.path() == "foo/bar2");
  CHECK(inner.reuse() == df::Reuse::always);
  CHECK(bar.get_variable<float>("v", {1}).name() == "bar/v");
}

TEST_CASE("Nested scopes inherit reuse, initializer and regularizer", "[variable_scope]") {
  df::Graph graph;
  std::vector<df::Variable<float>> made;
  {
    // 0.3, 0.7 and the losses 0.4, 0.5, 0.8: TensorFlow's variable_scope_test.py, run by compat.v1.
    const df::VariableScope t(graph, "t", {.initializer = df::init::constant(0.3), .regularizer = mean_and(0.1)});
    made.push_back(t.get_variable<float>("u", {}));
    {
      const df::VariableScope foo(graph, "foo", {.regularizer = mean_and(0.2)});
      made.push_back(foo.get_variable<float>("v", {}));
    }
    const df::VariableScope bar(graph, "bar");
    made.push_back(bar.get_variable<float>("w", {}, {.initializer = df::init::constant(0.7)}));
    // A variable that is not trained is regularised only on request.
    bar.get_variable<float>("step", {}, {.trainable = false});
  }
  {
    const df::VariableScope t(graph, "t", {.reuse = df::Reuse::always, .regularizer = mean_and(1)});
    CHECK(t.get_variable<float>("u", {}) == made[0]);  // shared, and regularised once
    const df::VariableScope bar(graph, "bar");
    CHECK(bar.get_variable<float>("w", {}) == made[2]);
  }
  const std::vector<df::Operation> losses = graph.collection("regularization_losses");
  REQUIRE(losses.size() == 3);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const float values[] = {0.3f, 0.3f, 0.7f}, expected[] = {0.4f, 0.5f, 0.8f};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(session.run(made[i]).scalar() == values[i]);
    const df::Output<float> loss(df::AnyOutput(losses[i].graph(), {losses[i].node_id(), 0}));
    CHECK(session.run(loss).scalar() == Catch::Approx(expected[i]));
  }
}

TEST_CASE("A scope can be told to make nothing any more, and one without a name stays where it is",
          "[variable_scope]") {
  df::Graph graph;
  df::VariableScope scope(graph, "a");
  scope.get_variable<float>("v", {1});
  {
    const df::VariableScope here(graph, "", {.reuse = df::Reuse::automatic});
    CHECK(here.path() == "a");
    CHECK(here.get_variable<float>("v", {1}).name() == "a/v");
    CHECK(here.get_variable<float>("w", {1}).name() == "a/w");
  }
  CHECK(code_of([&] { return scope.get_variable<float>("w", {1}); }) == df::Code::already_exists);
  scope.reuse_variables();
  CHECK(scope.get_variable<float>("w", {1}).name() == "a/w");
  const df::VariableScope inner(graph, "b");
  CHECK(code_of([&] { return inner.get_variable<float>("w", {1}); }) == df::Code::not_found);
}

TEST_CASE("Objects of layers, norms and partitioned tables are shared through a scope too", "[variable_scope]") {
  df::Graph graph({.seed = 5});
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const auto build = [&](df::Reuse reuse, bool is_training) {
    const df::VariableScope scope(graph, "net", {.reuse = reuse});
    const df::Dense hidden(4, {.kernel_regularizer = df::regularizer::l2(0.5)});
    const df::BatchNormalization norm;
    const auto table = df::partitioned_variable<float>(graph, {5, 4}, 2);
    const auto y = norm(hidden(x) + hidden(x) + df::embedding_lookup(table, ids), df::Training(is_training));
    CHECK(hidden.kernel().name() == "net/dense/kernel");
    CHECK(hidden.regularization_losses().size() == (reuse == df::Reuse::never ? 1 : 0));
    CHECK(norm.moving_mean().name() == "net/batch_normalization/moving_mean");
    CHECK(table[1].name() == "net/table/part_1");
    return y;
  };
  const auto trained = build(df::Reuse::never, true);
  const std::size_t count = df::global_variables(graph).size();
  CHECK(count == 8);
  const auto tested = build(df::Reuse::always, false), again = build(df::Reuse::automatic, false);
  CHECK(df::global_variables(graph).size() == count);
  CHECK(graph.collection("regularization_losses").size() == 1);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> at({2, 2}, {1, 2, 3, 4});
  const df::Tensor<std::int32_t> rows({2}, {0, 4});
  const auto [a, b, c] = session.run({{x, at}, {ids, rows}}, trained, tested, again);
  CHECK(b(1, 2) == c(1, 2));
  CHECK(a(1, 2) != b(1, 2));
}

TEST_CASE("A layer of another size than the shared one is refused with both shapes", "[variable_scope]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  {
    const df::VariableScope scope(graph, "net");
    df::dense(x, 3);
  }
  const df::VariableScope scope(graph, "net", {.reuse = df::Reuse::always});
  const std::string message = error_of([&] { return df::dense(x, 4); });
  CHECK(contains(message, "variable 'net/dense/kernel' is float [2,3]"));
  CHECK(contains(message, "asked for as float [2,4]"));
  CHECK(code_of([&] { return df::dense(x, 3, {}, {.name = "another"}); }) == df::Code::not_found);
  CHECK(df::global_variables(graph).size() == 2);
}

TEST_CASE("A layer that is given no initializer takes the scope's", "[variable_scope]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  CHECK(code_of([&] { return df::dense(x, 3, {.kernel_initializer = {}}); }) == df::Code::invalid_argument);
  const df::VariableScope scope(graph, "net", {.initializer = df::init::constant(2)});
  const auto y = df::dense(x, 3, {.kernel_initializer = {}});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(session.run({{x, df::Tensor<float>({1, 2}, {1, 1})}}, y)(0, 0) == 4);
}

TEST_CASE("Variables are found in the body of a loop, and by a graph that was copied", "[variable_scope]") {
  df::Graph graph({.seed = 2});
  const auto x = df::constant(graph, df::Tensor<float>({1, 2}, {1, 2}));
  df::Output<float> looped;
  {
    const df::VariableScope scope(graph, "net", {.reuse = df::Reuse::automatic});
    looped = std::get<1>(df::while_loop([](auto i, auto) { return i < 3; },
                                        [&](auto i, auto y) {
                                          const df::VariableScope again(graph, scope.reopened());
                                          auto first = df::dense(y, 2);
                                          const df::VariableScope once_more(graph, scope.reopened());
                                          return std::tuple{i + 1, first + df::dense(y, 2)};
                                        },
                                        std::tuple{df::constant(graph, 0), x}));
  }
  CHECK(scoped_variable_names(graph) == std::vector<std::string>{"net/dense/kernel", "net/dense/bias"});
  df::Graph copy = graph;
  const df::VariableScope scope(copy, "net", {.reuse = df::Reuse::always});
  CHECK(scope.get_variable<float>("dense/kernel", {2, 2}).graph() == copy.store());
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(session.run(looped).shape() == df::Shape{1, 2});
}

TEST_CASE("A variable scope refuses illegal names and nodes that are no variables", "[variable_scope]") {
  df::Graph graph;
  CHECK(code_of([&] { return df::VariableScope(graph, "a b").path(); }) == df::Code::invalid_argument);
  df::constant(graph, 1.0f, {.name = "v"});
  CHECK(contains(error_of([&] { return df::get_variable<float>(graph, "v", {}); }, df::Code::already_exists),
                 "'v' is the name of a Const, not of a variable"));
  CHECK(code_of([&] { return df::get_variable<float>(graph, "", {}); }) == df::Code::invalid_argument);
  const std::size_t before = graph.num_nodes();
  const df::Regularizer no_scalar = [](const df::AnyOutput& w) { return w; };
  CHECK(code_of([&] { return df::get_variable<float>(graph, "w", {2}, {.regularizer = no_scalar}); }) ==
        df::Code::invalid_argument);
  CHECK(graph.num_nodes() == before);
  CHECK(df::global_variables(graph).empty());
}

TEST_CASE("A call of a layer that fails leaves its scope as it was", "[variable_scope]") {
  for (const df::Reuse reuse : {df::Reuse::never, df::Reuse::automatic}) {
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {2, 3});
    bool fails = true;
    const df::Initializer initializer = [&](df::GraphStore& store, df::DType dtype, const df::Shape& shape) {
      if (fails) df::throw_error(df::Status::unavailable("no value"));
      return df::init::zeros()(store, dtype, shape);
    };
    const df::VariableScope scope(graph, "tower", {.reuse = reuse});
    const df::Dense layer(4, {.bias_initializer = initializer});
    const std::size_t before = graph.num_nodes();
    CHECK(code_of([&] { layer(x); }) == df::Code::unavailable);
    CHECK(code_of([&] { layer(x, {.name = "named"}); }) == df::Code::unavailable);
    CHECK(graph.num_nodes() == before);
    fails = false;
    const auto y = layer(x);
    CHECK(scoped_variable_names(graph) == std::vector<std::string>{"tower/dense/kernel", "tower/dense/bias"});
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    CHECK(session.run({{x, df::Tensor<float>::zeros({2, 3})}}, y)(0, 0) == 0);
  }
}

TEST_CASE("Layers behind an object keep their names where a scope is opened again", "[variable_scope]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  const df::Dense shared(3);
  std::vector<std::string> kernels;
  const auto model = [&](df::Reuse reuse) {
    const df::VariableScope scope(graph, "tower", {.reuse = reuse});
    const df::Dense own(3), last(3, {.name = "last"});
    static_cast<void>(last(own(shared(x))));
    kernels.insert(kernels.end(), {shared.kernel().name(), own.kernel().name(), last.kernel().name()});
  };
  model(df::Reuse::never);
  model(df::Reuse::always);
  CHECK(kernels == std::vector<std::string>{"tower/dense/kernel", "tower/dense_1/kernel", "tower/last/kernel",
                                            "tower/dense/kernel", "tower/dense_1/kernel", "tower/last/kernel"});
}

TEST_CASE("What an initializer gives is compared with what the variable is asked for", "[variable_scope]") {
  df::Graph graph;
  const auto gives = [&](const df::AnyTensor& tensor) -> df::Initializer {
    return [&graph, tensor](df::GraphStore&, df::DType, const df::Shape&) -> df::AnyOutput {
      return df::visit_dtype<df::TypeList<float, int>>(
          tensor.dtype(), [&]<class T>() -> df::AnyOutput { return df::constant(graph, df::Tensor<T>::of(tensor)); });
    };
  };
  const df::VariableScope scope(graph, "s");
  const std::size_t num_nodes = graph.num_nodes();
  for (const df::AnyTensor& wrong :
       std::vector<df::AnyTensor>{df::Tensor<float>(df::Shape{3}), df::Tensor<int>(df::Shape{2})}) {
    const std::string error =
        error_of([&] { return scope.get_variable<float>("w", {2}, {.initializer = gives(wrong)}).name(); });
    CHECK(contains(error, "w: the initializer gives"));
    CHECK(contains(error, "variable_scope_test.cpp"));
    CHECK(graph.num_nodes() == num_nodes);
    CHECK(df::global_variables(graph).empty());
  }
  CHECK(code_of([&] {
          return df::partitioned_variable<float>(graph, {4},
                                                 {.partitioner = df::fixed_size_partitioner(2),
                                                  .initializer = gives(df::Tensor<float>(df::Shape{3})),
                                                  .name = "p"})
              .shape();
        }) == df::Code::invalid_argument);
  CHECK(code_of([&] {
          return scope
              .get_variable<float>(
                  "e", {2},
                  {.initializer = [](df::GraphStore&, df::DType, const df::Shape&) { return df::AnyOutput(); }})
              .name();
        }) == df::Code::invalid_argument);
  CHECK(graph.num_nodes() == num_nodes);
  for (const auto& bad :
       {df::init::normal(-1), df::init::uniform(1, -1), df::init::value(df::Tensor<float>(df::Shape{5}))}) {
    const std::string error =
        error_of([&] { return scope.get_variable<float>("b", {2}, {.initializer = bad}).name(); });
    CHECK(contains(error, "b: "));
    CHECK(contains(error, "variable_scope_test.cpp"));
  }

  // The step checks a shape that only the step knows.
  const auto fed = df::placeholder<float>(graph, {df::dynamic});
  const auto w = scope.get_variable<float>(
      "w", {2}, {.initializer = [&](df::GraphStore&, df::DType, const df::Shape&) -> df::AnyOutput { return fed; }});
  CHECK(w.shape() == df::PartialShape{2});
  df::Session session(graph);
  const auto initialize = df::initialize_variables(graph);
  session.run({{fed, df::Tensor<float>({2}, {1, 2})}}, initialize);
  CHECK(session.run(w)(1) == 2);
  CHECK(code_of([&] {
          return session.run({{fed, df::Tensor<float>({3}, {1, 2, 3})}}, initialize), 0;
        }) == df::Code::invalid_argument);
}
