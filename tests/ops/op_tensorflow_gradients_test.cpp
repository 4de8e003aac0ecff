#include "op_runner.hpp"

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <iostream>
#include <set>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// The rows' limits for values also hold for gradients, with two differences. A gradient goes through several kernels,
/// and each rounds to the element type. The terms that cancel are the gradient's terms.
OracleCase as_case_of_gradients(OracleCase oracle_case) {
  oracle_case.terms = oracle_case.gradient_terms;
  oracle_case.roundings += 3;
  return oracle_case;
}

/// The first of the case's gradients that differs from TensorFlow's gradient, or nothing.
std::string wrong_gradient(const OracleCase& oracle_case, DType t) {
  const auto built = build_case(oracle_case, t, InputsAs::known_feeds);
  GraphStore& graph = *built->graph.store();
  std::vector<AnyOutput> ys, xs, grad_ys;
  for (std::size_t o = 0; o < oracle_case.dy.size(); ++o) {
    if (!oracle_case.dy[o]) continue;
    ys.push_back(built->outputs.at(o));
    grad_ys.push_back(detail::any_constant(graph, oracle_case.dy[o]->make(oracle_case.dy[o]->dtype_for(t)), {}));
  }
  std::vector<const OracleTensor*> expected;
  for (std::size_t i = 0; i < oracle_case.dx.size(); ++i) {
    if (!oracle_case.dx[i]) continue;
    xs.push_back(built->inputs.at(i));
    expected.push_back(&*oracle_case.dx[i]);
  }
  const std::vector<Gradient> gradients = dflow::gradients(ys, xs, {.grad_ys = grad_ys});
  std::vector<AnyOutput> edges;
  for (std::size_t i = 0; i < xs.size(); ++i) edges.push_back(densify(gradients[i], xs[i]));
  SessionOptions session_options;
  session_options.pool = std::make_shared<InlinePool>();
  Session session(built->graph, session_options);
  std::vector<AnyTensor> results(edges.size());
  session.run_erased({}, nullptr, built->feeds, edges, {}, results);
  const OracleCase of_gradients = as_case_of_gradients(oracle_case);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string why = difference(results[i], *expected[i], expected[i]->dtype_for(t), of_gradients);
    if (!why.empty()) return str_cat("gradient ", i, ": ", why);
  }
  return "";
}

}  // namespace

TEST_CASE("gradients of complex numbers, at ties, zeros and kinks are TensorFlow's own", "[ops]") {
  std::set<std::string> ops;
  int checks = 0, failures = 0;
  for (const OracleCase& oracle_case : oracle_cases()) {
    for (const DType t : oracle_case.gradient_types) {
      ops.insert(oracle_case.op);
      ++checks;
      std::string why;
      try {
        why = wrong_gradient(oracle_case, t);
      } catch (const std::exception& error) {
        why = error.what();
      }
      if (why.empty()) continue;
      ++failures;
      std::cout << "  " << oracle_case.title(t) << ": " << why << '\n';
    }
  }
  std::cout << "count: " << ops.size() << " ops, " << checks << " gradients of TensorFlow, " << failures << " failed\n";
  CHECK(failures == 0);
}
