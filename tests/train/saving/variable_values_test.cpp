#include <dflow/train/saving/variable_values.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <string>

namespace df = dflow;

TEST_CASE("the values of all variables are kept and come back, of every type") {
  df::Graph graph;
  const df::Variable<float> w(graph, df::Tensor<float>(df::Shape{2}, {1, 2}));
  const df::Variable<std::int64_t> n(graph, 3, {.trainable = false});
  const df::Variable<std::string> s(graph, df::Tensor<std::string>(std::string("four")), {.trainable = false});
  const auto change = df::group({w.assign_add(w), n.assign_add(1)});
  const auto rename = s.assign(df::constant(graph, df::Tensor<std::string>(std::string("five"))));
  df::train::VariableValues values(*graph.store()), more(*graph.store());
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(code_of([&] { return values.assign(session), 0; }) == df::Code::failed_precondition);
  values.read(session);
  session.run(change, rename);
  more.read(session);
  values.assign(session);
  CHECK(session.run(w)(1) == 2);
  CHECK(session.run(n).scalar() == 3);
  CHECK(session.run(s).scalar() == "four");
  more.assign(session);
  CHECK(session.run(w)(1) == 4);
  CHECK(session.run(n).scalar() == 4);
  CHECK(session.run(s).scalar() == "five");
  df::Graph empty;
  CHECK(code_of([&] { return df::train::VariableValues(*empty.store()).has_values(); }) == df::Code::invalid_argument);
}
