#include <dflow/ops/control/function.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

using TableNorm = Output<float>(Output<float>, Output<float>);

/// A graph that holds only functions.
Graph function_library() {
  Graph library;
  register_function(library, "norm", [](Output<float> a, Output<float> b) { return sqrt(a * a + b * b); });
  register_function(library, "sums", [&](Output<float> a) {
    const auto norm = find_function<TableNorm>(library, "norm");
    return std::tuple{norm(a, a), cast<std::int32_t>(a)};
  });
  return library;
}

/// The def of a graph with one call of "norm"; the function is not part of the graph.
GraphDef call_alone() {
  Graph graph = function_library();
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  find_function<TableNorm>(graph, "norm")(x, x, {.name = "called"});
  GraphDef def = to_graph_def(graph);
  std::erase_if(def.nodes, [](const NodeDef& node) { return node.name != "x" && node.name != "called"; });
  def.collections.clear();
  return def;
}

}  // namespace

TEST_CASE("a function is registered once and found by its name, while a session runs the graph", "[function_table]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Session session(graph);
  CHECK(session.run({{x, 3.0f}}, x + 1.0f).scalar() == 4);
  {
    const auto scope = graph.name_scope("inside");
    const auto norm =
        register_function(graph, "norm", [](Output<float> a, Output<float> b) { return sqrt(a * a + b * b); });
    CHECK(norm.name() == "norm");
  }
  const auto y = find_function<TableNorm>(graph, "norm")(x, x + 1.0f, {.name = "y"});
  CHECK(session.run({{x, 3.0f}}, y).scalar() == 5);
  CHECK(session.run({{x, 3.0f}}, gradients(y, x)).scalar() == Catch::Approx(7.0 / 5));
  REQUIRE(graph.collection("functions").size() == 1);
  CHECK(graph.collection("functions")[0].name() == "norm");
}

TEST_CASE("a function that is found sees what the one that was built did", "[function_table]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Variable<float> w(graph, 10);
  const auto shifted = x + w;
  register_function(graph, "read", [&](Output<float> a) { return std::tuple{a + shifted, w.assign_add(1)}; });
  const auto read = find_function<std::tuple<Output<float>, Operation>(Output<float>)>(graph, "read");
  const auto [sum, done] = read(x);
  Session session(graph);
  session.run(initialize_variables(graph));
  CHECK(session.run({{x, 1.0f}}, sum, done).scalar() == 12);
  CHECK(session.run(w).scalar() == 11);
}

TEST_CASE("a graph of functions is a library of any number of graphs", "[function_table]") {
  const Graph library = function_library();
  for (int i = 0; i < 2; ++i) {
    Graph graph;
    merge(graph, library);
    const auto x = placeholder<float>(graph, {});
    const auto [norm, whole] =
        find_function<std::tuple<Output<float>, Output<std::int32_t>>(Output<float>)>(graph, "sums")(x);
    CHECK(Session(graph).run({{x, 4.0f}}, norm).scalar() == Catch::Approx(5.656854));
    CHECK(Session(graph).run({{x, 4.5f}}, whole).scalar() == 4);
    CHECK(graph.collection("functions").size() == 2);
    CHECK(code_of([&] {
            merge(graph, library);
            return 0;
          }) == Code::invalid_argument);
  }
}

TEST_CASE("an imported graph calls functions of the graph by name", "[function_table]") {
  const GraphDef def = call_alone();
  Graph graph = function_library();
  const auto x = placeholder<float>(graph, {});
  const auto operations = import_graph_into(graph, def, standard_op_table(), {.prefix = "in", .input_map = {{"x", x}}});
  const Output<float> called(AnyOutput(graph.store(), {operations[1].node_id(), 0}));
  CHECK(called.name() == "in/called");
  CHECK(Session(graph).run({{x, 1.0f}}, called).scalar() == Catch::Approx(1.414214));

  Graph without;
  CHECK(contains(error_of([&] { return import_graph_into(without, def, standard_op_table()); }, Code::not_found),
                 "function 'norm'"));
  CHECK(without.num_nodes() == 0);
  Graph other;
  register_function(other, "norm", [](Output<double> a) { return a; });
  const std::size_t before = other.num_nodes();
  CHECK(contains(error_of([&] { return import_graph_into(other, def, standard_op_table()); }), "function 'norm'"));
  CHECK(other.num_nodes() == before);
}

TEST_CASE("functions that are there, that are not and of other types are errors of their own", "[function_table]") {
  Graph graph = function_library();
  constant(graph, 1.0f, {.name = "one"});
  const std::size_t before = graph.num_nodes();
  const auto same = [](Output<float> a) { return a; };
  CHECK(contains(error_of([&] { return register_function(graph, "norm", same); }, Code::already_exists), "'norm'"));
  CHECK(code_of([&] { return register_function(graph, "one", same); }) == Code::already_exists);
  CHECK(code_of([&] { return register_function(graph, "a b", same); }) == Code::invalid_argument);
  CHECK(contains(error_of([&] { return find_function<TableNorm>(graph, "nor"); }, Code::not_found), "'nor'"));
  CHECK(contains(error_of([&] { return find_function<TableNorm>(graph, "one"); }, Code::not_found), "is a Const"));
  const std::string types = error_of([&] { return find_function<Output<double>(Output<float>)>(graph, "norm"); });
  CHECK(contains(types, "(float, float) -> (float)"));
  CHECK(contains(types, "(float) -> (double)"));
  CHECK(contains(types, "function_table_test.cpp"));
  CHECK(graph.num_nodes() == before);
  CHECK(graph.collection("functions").size() == 2);
  // A function that is being built cannot be found.
  CHECK(code_of([&] {
          return register_function(graph, "self", [&](Output<float> a) {
            return find_function<Output<float>(Output<float>)>(graph, "self")(a);
          });
        }) == Code::invalid_argument);
  CHECK(graph.num_nodes() == before);
}
