#include <dflow/train/finite.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/optimizers.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace df = dflow;
using df::train::NonFiniteVariables;
using df::train::require_finite;

namespace {

constexpr float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("variables that are not finite are found by name") {
  df::Graph graph;
  const df::Variable<float> scalar(graph, 1.0f, {.name = "scalar"});
  const df::Variable<float> matrix(graph, df::Tensor<float>::zeros({2, 3}), {.name = "matrix"});
  const df::Variable<df::Half> narrow(graph, df::Tensor<df::Half>::zeros({3}), {.name = "narrow"});
  const df::Variable<float> best(graph, infinite, {.name = "best", .trainable = false});
  const df::Variable<float> empty(graph, df::Tensor<float>(df::Shape{0, 2}), {.name = "empty"});
  const df::Variable<std::int32_t> count(graph, 0, {.name = "count"});
  const NonFiniteVariables variables(*graph.store());
  const df::Variable<float> later(graph, none, {.name = "later"});
  df::Session session(graph);
  CHECK(variables.find(session).empty());  // none has a value
  session.run(df::initialize_variables(graph));
  CHECK(variables.find(session).empty());

  using Names = std::vector<std::string>;
  const auto found = [&](df::Operation change, df::Operation back) {
    session.run(change);
    const Names names = variables.find(session);
    session.run(back);
    return names;
  };
  const auto of_matrix = [&](float last) {
    return matrix.assign(df::constant<float>(graph, {{0, 0, 0}, {0, 0, last}}));
  };
  const auto of_narrow = [&](float middle) {
    return narrow.assign(df::constant(graph, df::Tensor<df::Half>({3}, {df::Half(0), df::Half(middle), df::Half(0)})));
  };
  CHECK(found(scalar.assign(none), scalar.assign(1.0f)) == Names{"scalar"});
  for (const float bad : {none, infinite, -infinite}) {
    INFO(bad);
    CHECK(found(of_matrix(bad), of_matrix(0)) == Names{"matrix"});
    CHECK(found(of_narrow(bad), of_narrow(0)) == Names{"narrow"});
  }
  // A variable that is not trained may be infinite.
  CHECK(found(best.assign(-infinite), best.assign(none)).empty());
  CHECK(found(of_matrix(-infinite), of_matrix(0)) == Names{"matrix", "best"});
  CHECK(NonFiniteVariables(*graph.store()).find(session) == Names{"best", "later"});
}

TEST_CASE("a step loop with a loss that is not finite ends with an error that names all places") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  const df::Variable<float> w(graph, df::Tensor<float>({2}, {1, 1}), {.name = "w"}), idle(graph, 1.0f);
  const auto loss = df::reduce_mean(x * w);
  const auto train = df::train::GradientDescent(0.1).minimize(loss);
  df::Session session(graph);
  const auto run = [&](const df::Tensor<float>& batch, std::int64_t step) {
    require_finite(static_cast<double>(session.run({{x, batch}}, loss, train).scalar()), step, session, graph, batch);
  };
  session.run(df::initialize_variables(graph));
  run(df::Tensor<float>({2, 2}, {1, 2, 3, 4}), 0);
  const std::string text = error_of([&] { return run(df::Tensor<float>({3, 2}, {1, 2, 3, 4, none, 6}), 7), 0; });
  CHECK(contains(text, "the loss is nan in step 7; tensor 0 is nan in row 2 of 3; the variable 'w' is not finite"));
}

TEST_CASE("an error of a loss says what is finite") {
  df::Graph graph;
  const df::Variable<float> w(graph, 1.0f, {.name = "w"});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(code_of([&] { return require_finite(1e300, 0, session, graph), 0; }) == df::Code::ok);
  const df::Tensor<float> good({2}, {1, 2});
  const df::Tensor<std::string> text("nan");
  df::Tensor<std::complex<double>> complex(df::Shape{2});
  complex(0) = {1, 2};
  complex(1) = {3, -std::numeric_limits<double>::infinity()};
  const auto error = [&](double loss, const auto&... batch) {
    return error_of([&] { return require_finite(loss, 3, session, graph, batch...), 0; });
  };
  CHECK(contains(error(infinite), "the loss is inf in step 3; all variables are finite"));
  CHECK(contains(error(-infinite, good, text), "-inf in step 3; all tensors of the batch are finite; all variables"));
  CHECK(contains(error(none, good, complex, df::Tensor<df::BFloat16>(df::BFloat16(none))),
                 "step 3; tensor 1 is -inf in row 1 of 2; tensor 2 is nan; all variables are finite"));
}

TEST_CASE("an error of a loss names a few variables and counts the others") {
  df::Graph graph;
  std::vector<df::Variable<float>> variables;
  df::Session session(graph);
  const auto error = [&](std::size_t count) {
    while (variables.size() < count) {
      const std::string name = "v" + std::to_string(variables.size());
      variables.emplace_back(graph, none, df::VariableOptions{.name = name});
    }
    session.run(df::initialize_variables(graph));
    return error_of([&] { return require_finite(none, 0, session, graph), 0; });
  };
  CHECK(contains(error(1), "the variable 'v0' is not finite"));
  CHECK(contains(error(2), "the variables 'v0' and 'v1' are not finite"));
  CHECK(contains(error(5), "the variables 'v0', 'v1', 'v2', 'v3' and 'v4' are not finite"));
  CHECK(contains(error(6), "the variables 'v0', 'v1', 'v2', 'v3' and 2 others are not finite"));
}

TEST_CASE("an error of a loss is no other error if the variables cannot be read") {
  df::Graph graph, other;
  const df::Variable<float> w(other, 1.0f, {.name = "w"});
  df::Session session(graph);
  const std::string text = error_of([&] { return require_finite(none, 1, session, other), 0; });
  CHECK(contains(text, "the loss is nan in step 1; the variables could not be read: "));
}
