#include <dflow/op/merge.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// y = 2 x + w, with w a variable of 10.
struct MergedLine {
  Graph graph{{.seed = 3}};
  Output<float> x = placeholder<float>(graph, {dynamic}, {.name = "x"});
  Variable<float> w{graph, 10, {.name = "w"}};
  Output<float> doubled = mul(x, constant(graph, 2.0f, {.name = "two"}), {.name = "doubled"});
  Output<float> y = add(doubled, w, {.name = "y"});
};

float merged_value(Session& session, const Output<float>& y, const Output<float>& x, float at) {
  return session.run({{x, Tensor<float>({1}, {at})}}, y)(0);
}

}  // namespace

TEST_CASE("three graphs become one, each under its prefix, with its variables and collections", "[merge]") {
  MergedLine a, b, c;
  const MergedGraph from_b = merge(a.graph, b.graph, {.prefix = "b"});
  // c reads the value that a has computed.
  const MergedGraph from_c = merge(a.graph, c.graph, {.prefix = "c", .input_map = EdgeMap().add(c.x, a.y)});
  CHECK(from_b.prefix() == "b");
  CHECK(from_b(b.y).name() == "b/y");
  CHECK(from_b.output("y") == from_b(b.y));
  CHECK(from_b.output("y:0") == a.graph.output("b/y"));
  CHECK(from_b.operation("w").name() == "b/w");
  CHECK(from_c(c.doubled).node().inputs[0] == a.y.endpoint());
  CHECK(global_variables(a.graph).size() == 3);
  CHECK(trainable_variables(a.graph)[2].name() == "c/w");
  CHECK(b.graph.num_nodes() == c.graph.num_nodes());

  Session session(a.graph);
  session.run(initialize_variables(a.graph));
  session.run(AnyVariable::of(from_b(b.w.handle().operation())).assign(constant(a.graph, 100.0f)));
  CHECK(merged_value(session, a.y, a.x, 1) == 12);
  CHECK(merged_value(session, from_b(b.y), from_b(b.x), 1) == 102);
  CHECK(merged_value(session, from_c(c.y), a.x, 1) == 34);
  // Each node keeps the line at which it was built.
  CHECK(from_c(c.y).node().where.line() == c.y.node().where.line());
}

TEST_CASE("a graph is merged into itself", "[merge]") {
  MergedLine a;
  const std::size_t before = a.graph.num_nodes();
  const MergedGraph twice = merge(a.graph, a.graph, {.prefix = "again"});
  CHECK(a.graph.num_nodes() == 2 * before);
  const MergedGraph thrice = merge(a.graph, a.graph, {.prefix = "again", .input_map = EdgeMap().add(a.x, twice(a.y))});
  CHECK(a.graph.num_nodes() == 4 * before);
  CHECK(thrice.prefix() == "again_1");
  CHECK(thrice.output("again/y").name() == "again_1/again/y");
  Session session(a.graph);
  session.run(initialize_variables(a.graph));
  CHECK(global_variables(a.graph).size() == 4);
  CHECK(merged_value(session, thrice(a.y), twice(a.x), 1) == 34);
  CHECK(code_of([&] { return merge(a.graph, a.graph); }) == Code::invalid_argument);
}

TEST_CASE("functions, branches, loops and their gradients are merged with their bodies", "[merge]") {
  Graph from({.seed = 4});
  const auto x = placeholder<float>(from, {}, {.name = "x"});
  const auto norm = function(from, "norm", [](Output<float> a, Output<float> b) { return sqrt(a * a + b * b); });
  const auto called = norm(x, x * 2.0f);
  const auto branched = cond(
      x > 0.0f, [&] { return norm(x, x); }, [&] { return -x; });
  const auto [i, looped] = while_loop([](auto n, auto) { return n < 3; },
                                      [&](auto n, auto v) {
                                        return std::tuple{n + 1, v * v + x};
                                      },
                                      std::tuple{constant(from, 0), x});
  const auto slope = gradients(looped, x), called_slope = gradients(called, x), branched_slope = gradients(branched, x);
  Session alone(from);
  const auto expected = alone.run({{x, 0.5f}}, called, branched, looped, slope, called_slope, branched_slope);

  Graph into;
  const auto fed = placeholder<float>(into, {});
  const auto check = [&](Graph& graph, const MergedGraph& merged, const Output<float>& input) {
    Session session(graph);
    const auto got = session.run({{input, 0.5f}}, merged(called), merged(branched), merged(looped), merged(slope),
                                 merged(called_slope), merged(branched_slope));
    const auto values = [](const auto& all) {
      return std::apply([](const auto&... each) { return std::vector<float>{each.scalar()...}; }, all);
    };
    CHECK(values(got) == values(expected));
  };
  check(into, merge(into, from, {.prefix = "one", .input_map = EdgeMap().add(x, fed)}), fed);
  check(into, merge(into, from, {.prefix = "two", .input_map = EdgeMap().add(x, fed)}), fed);
  const MergedGraph self = merge(from, from, {.prefix = "self"});
  check(from, self, self(x));

  // A GraphDef is imported under a prefix the same way.
  Graph imported;
  const auto in = placeholder<float>(imported, {});
  import_graph_into(imported, to_graph_def(from), standard_op_table(),
                    {.prefix = "def", .input_map = {{"x", in}, {"self/x", in}}});
  Session session(imported);
  const Output<float> imported_slope(imported.output("def/" + slope.name()));
  CHECK(session.run({{in, 0.5f}}, imported_slope).scalar() == std::get<3>(expected).scalar());
}

TEST_CASE("frames of the raw form are told apart after a merge", "[merge]") {
  Graph from;
  const auto limit = placeholder<std::int32_t>(from, {}, {.name = "limit"});
  const auto i = frames::merge({frames::enter(constant(from, 0), "count")});
  const auto goes_on = frames::loop_cond(i.value < frames::enter(limit, "count", {.is_constant = true}));
  const auto [last, now] = frames::switch_on(i.value, goes_on);
  frames::next_iteration(now + 1, i);
  const auto count = frames::exit(last);

  Graph into;
  const auto fed = placeholder<std::int32_t>(into, {});
  const MergedGraph one = merge(into, from, {.prefix = "one", .input_map = EdgeMap().add(limit, fed)});
  // Two loops, one after the other: with one name they would be one frame.
  const MergedGraph two =
      merge(into, from, {.prefix = "two", .input_map = EdgeMap().add(limit, one(count) + one(count))});
  Session session(into);
  CHECK(session.run({{fed, 5}}, two(count)).scalar() == 10);

  Graph unnamed;
  merge(unnamed, from);
  const MergedGraph renamed = merge(unnamed, from, {.prefix = "b"});
  CHECK(Session(unnamed).run({{Output<std::int32_t>(renamed(limit)), 4}}, renamed(count)).scalar() == 4);
}

TEST_CASE("a merge takes over devices, colocation and scopes", "[merge]") {
  Graph from;
  Output<float> placed;
  Variable<float> w(from, 1, {.name = "w"});
  {
    const auto on = from.device("/cpu:1");
    placed = constant(from, 1.0f, {.name = "placed"});
  }
  const auto bump = w.assign_add(1);
  Graph into;
  const auto gate = no_op(into);
  const auto on = into.device("/job:ps");
  const auto names = into.name_scope("outer");
  const auto after = into.control_dependencies({gate});
  const MergedGraph merged = merge(into, from);
  CHECK(merged(placed).name() == "outer/placed");
  CHECK(merged(placed).node().device == "/job:ps/device:CPU:1");
  CHECK(merged(placed).node().control_inputs == std::vector<NodeId>{gate.node_id()});
  CHECK(merged(bump).node().colocated_with == merged(w.handle().operation()).node_id());
  CHECK(merged(w.handle().operation()).node().control_inputs.empty());
}

TEST_CASE("a merge that does not fit says why and changes nothing", "[merge]") {
  MergedLine a, b;
  const auto rows = constant(a.graph, Tensor<float>({2, 2}, {1, 2, 3, 4}), {.name = "rows"});
  const AnyOutput integers = constant(a.graph, 1, {.name = "integers"});
  const auto matrix = placeholder<float>(b.graph, {2, 3}, {.name = "matrix"});
  matmul(matrix, matrix, {.transpose_b = true}, {.name = "product"});
  const std::size_t before = a.graph.num_nodes(), variables = global_variables(a.graph).size();
  const auto message = [&](const GraphMergeOptions& options) {
    return error_of([&] { return merge(a.graph, b.graph, options); });
  };
  CHECK(contains(message({}), "a node named 'x' exists already"));
  CHECK(contains(message({.prefix = "a b"}), "not a legal node name"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(a.x, a.y)}), "is of another graph"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(b.x, b.y)}), "is of another graph"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(b.x, Output<float>())}), "is empty"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(b.x, a.x).add(b.x, a.y)}), "'x' is mapped twice"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(b.y, a.x)}), "no node reads 'y'"));
  const std::string shapes = message({.prefix = "b", .input_map = EdgeMap().add(matrix, a.x)});
  CHECK(contains(shapes, "product"));
  CHECK(contains(shapes, "merge_test.cpp"));
  CHECK(contains(message({.prefix = "b", .input_map = EdgeMap().add(b.x, integers)}), "Mul"));
  CHECK(a.graph.num_nodes() == before);
  CHECK(global_variables(a.graph).size() == variables);

  const MergedGraph merged = merge(a.graph, b.graph, {.prefix = "b"});
  CHECK(code_of([&] { return merged.output("nothing"); }) == Code::not_found);
  CHECK(code_of([&] { return merged.output("y:1"); }) == Code::not_found);
  CHECK(code_of([&] { return merged.output("y:"); }) == Code::invalid_argument);
  CHECK(code_of([&] { return merged(a.y); }) == Code::invalid_argument);
  CHECK(code_of([&] { return merged(Output<float>()); }) == Code::invalid_argument);
  const auto later = b.y + 1.0f;
  CHECK(code_of([&] { return merged(later); }) == Code::not_found);
  CHECK(rows.is_valid());
}

TEST_CASE("substitute copies what lies between and shares the rest", "[merge]") {
  MergedLine a;
  const auto z = placeholder<float>(a.graph, {dynamic});
  const auto loop = std::get<1>(while_loop([](auto n, auto) { return n < 2; },
                                           [&](auto n, auto v) {
                                             return std::tuple{n + 1, v * a.y};
                                           },
                                           std::tuple{constant(a.graph, 0), a.doubled}));
  const auto apart = constant(a.graph, 1.0f);
  const std::size_t before = a.graph.num_nodes();
  const auto other = substitute(a.y, EdgeMap().add(a.doubled, z));
  CHECK(a.graph.num_nodes() == before + 1);
  CHECK(other.name() == "given/y");
  CHECK(substitute(apart, EdgeMap().add(a.doubled, z)) == apart);
  CHECK(substitute(a.x, EdgeMap().add(a.x, z)) == z);
  const auto looped = substitute(loop, EdgeMap().add(a.x, z), "other");
  CHECK(global_variables(a.graph).size() == 1);
  Session session(a.graph);
  session.run(initialize_variables(a.graph));
  CHECK(merged_value(session, other, z, 5) == 15);
  CHECK(merged_value(session, a.y, a.x, 5) == 20);
  CHECK(merged_value(session, looped, z, 1) == 2 * 12 * 12);
  CHECK(merged_value(session, loop, a.x, 2) == 4 * 14 * 14);
  MergedLine b;
  CHECK(code_of([&] { return substitute(a.y, EdgeMap().add(b.x, a.x)); }) == Code::invalid_argument);
  CHECK(code_of([&] { return substitute(Output<float>(), EdgeMap()); }) == Code::invalid_argument);
}

TEST_CASE("a graph that was read again, or merged without a prefix, knows its scopes", "[merge]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 3}, {.name = "x"});
  const Variable<float> v(graph, 1.0f, {.name = "v"});
  const train::Saver saver(graph);
  dense(x, 4);
  {
    const auto outer = graph.name_scope("n");
    const auto inner = graph.name_scope("m");
    constant(graph, 1.0f, {.name = "c"});
  }
  const auto goes_on = [&](Graph& again) {
    const train::Saver another(again);
    const auto y = dense(Output<float>(again.output("x")), 5);
    CHECK(y.name() == "dense_1/BiasAdd");
    {
      const auto outer = again.name_scope("n");
      CHECK(constant(again, 2.0f, {.name = "c"}).name() == "n_1/c");
    }
    Session session(again);
    session.run(initialize_variables(again));
    CHECK(session.run({{again.output("x"), Tensor<float>({2, 3})}}, y).shape() == Shape{2, 5});
  };
  Graph imported = import_graph(to_graph_def(graph), standard_op_table());
  goes_on(imported);
  Graph merged;
  merge(merged, graph);
  goes_on(merged);
  Graph under;
  merge(under, graph, {.prefix = "p"});
  const auto p = under.name_scope("p");
  CHECK(constant(under, 2.0f, {.name = "c"}).name() == "p_1/c");
  Graph deep;
  merge(deep, graph, {.prefix = "q/r"});
  const auto q = deep.name_scope("q");
  CHECK(constant(deep, 2.0f, {.name = "c"}).name() == "q_1/c");
}
