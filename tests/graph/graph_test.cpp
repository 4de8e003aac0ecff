#include <dflow/graph/graph.hpp>

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/dependencies.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/operators.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <limits>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

TEST_CASE("nodes are named after their op, made unique, or as asked", "[graph]") {
  Graph graph;
  CHECK(no_op(graph).name() == "NoOp");
  CHECK(no_op(graph).name() == "NoOp_1");
  CHECK(no_op(graph).name() == "NoOp_2");
  CHECK(no_op(graph, {.name = "init"}).name() == "init");
  CHECK(no_op(graph, {.name = "NoOp_3"}).name() == "NoOp_3");
  CHECK(no_op(graph).name() == "NoOp_4");
  CHECK(graph.num_nodes() == 6);
  CHECK(graph.find("init") == graph.find("init"));
  CHECK_FALSE(graph.find("nobody").is_valid());
}

TEST_CASE("a name that exists or is not legal is refused, and nothing is built", "[graph]") {
  Graph graph;
  static_cast<void>(no_op(graph, {.name = "a"}));
  for (const std::string& name :
       {std::string("a"), std::string("a b"), std::string("/a"), std::string("-a"), std::string("a:0"),
        std::string("^a"), std::string("\xc3\xa9"), std::string(4097, 'n')}) {
    const Status status = status_of([&] { return no_op(graph, {.name = name}); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.op() == "NoOp");
  }
  CHECK(graph.num_nodes() == 1);
  CHECK(no_op(graph, {.name = "A.b_c/d-e>f9"}).name() == "A.b_c/d-e>f9");
  CHECK(no_op(graph, {.name = std::string(4096, 'n')}).name() == std::string(4096, 'n'));
}

TEST_CASE("name scopes nest and are made unique", "[graph]") {
  Graph graph;
  for (const char* expected : {"layer/NoOp", "layer_1/NoOp"}) {
    const auto scope = graph.name_scope("layer");
    CHECK(no_op(graph).name() == expected);
    const auto inner = graph.name_scope("cell");
    CHECK(no_op(graph, {.name = "x"}).name() ==
          std::string(expected).substr(0, std::string(expected).find('/')) + "/cell/x");
  }
  CHECK(no_op(graph).name() == "NoOp");
  CHECK(status_of([&] {
          static_cast<void>(graph.name_scope("not legal"));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(status_of([&] {
          static_cast<void>(graph.name_scope(""));
          return 0;
        }).code() == Code::invalid_argument);
}

TEST_CASE("a full name is limited like a single one", "[graph]") {
  Graph graph;
  const auto outer = graph.name_scope(std::string(4000, 'a'));
  const auto inner = graph.name_scope(std::string(4000, 'b'));
  CHECK(status_of([&] { return no_op(graph, {.name = "c"}); }).code() == Code::invalid_argument);
}

TEST_CASE("device scopes refine each other", "[graph]") {
  Graph graph;
  const auto outer = graph.device("/job:ps/task:1");
  {
    const auto inner = graph.device("/cpu:0");
    CHECK(no_op(graph).node().device == "/job:ps/task:1/device:CPU:0");
    const auto innermost = graph.device("/task:2");
    CHECK(no_op(graph).node().device == "/job:ps/task:2/device:CPU:0");
  }
  CHECK(no_op(graph).node().device == "/job:ps/task:1");
  CHECK(status_of([&] {
          static_cast<void>(graph.device("cpu"));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(no_op(graph).node().device == "/job:ps/task:1");
}

TEST_CASE("control dependencies and colocation hold for what is built inside", "[graph]") {
  Graph graph, other;
  const Operation a = no_op(graph), b = no_op(graph);
  {
    const auto after_a = graph.control_dependencies({a});
    const auto after_b = graph.control_dependencies({b});
    const auto beside = graph.colocate_with(a);
    const Node& node = no_op(graph).node();
    CHECK(node.control_inputs == std::vector<NodeId>{a.node_id(), b.node_id()});
    CHECK(node.colocated_with == a.node_id());
  }
  CHECK(no_op(graph).node().control_inputs.empty());
  CHECK(no_op(graph).node().colocated_with == NodeId());
  const Operation stranger = no_op(other);
  CHECK(status_of([&] {
          static_cast<void>(graph.control_dependencies({stranger}));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(status_of([&] {
          static_cast<void>(graph.control_dependencies({Operation()}));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(status_of([&] {
          static_cast<void>(graph.colocate_with(stranger));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(status_of([&] {
          static_cast<void>(graph.add_to_collection("c", stranger));
          return 0;
        }).code() == Code::invalid_argument);
  CHECK(graph.collection("c").empty());
}

TEST_CASE("colocation takes the place of the device scope around it; one inside adds a constraint", "[graph]") {
  Graph graph;
  const Operation a = no_op(graph);
  const auto worker = graph.device("/job:worker/cpu:1");
  {
    const auto beside = graph.colocate_with(a);
    CHECK(no_op(graph).node().device.empty());
    CHECK(no_op(graph).node().colocated_with == a.node_id());
    const auto on = graph.device("/job:ps");
    CHECK(no_op(graph).node().device == "/job:ps");
    CHECK(no_op(graph).node().colocated_with == a.node_id());
  }
  CHECK(no_op(graph).node().device == "/job:worker/device:CPU:1");
}

TEST_CASE("a scope that is refused names the line of the program and leaves the graph as it was", "[graph]") {
  Graph graph, other;
  const Operation foreign = no_op(other);
  const auto line_of = [](auto&& enter) {
    const Status status = status_of(enter);
    CHECK(status.code() == Code::invalid_argument);
    CHECK(std::string(status.where().file_name()) == __FILE__);
    return status.where().line();
  };
  CHECK(line_of([&] { return graph.name_scope("not legal!"); }) == __LINE__);
  CHECK(line_of([&] { return graph.device("cpu0"); }) == __LINE__);
  CHECK(line_of([&] { return graph.control_dependencies({foreign}); }) == __LINE__);
  CHECK(line_of([&] { return graph.control_dependencies({Operation()}); }) == __LINE__);
  CHECK(line_of([&] { return graph.colocate_with(foreign); }) == __LINE__);
  CHECK(line_of([&] { return graph.colocate_with(AnyOutput()); }) == __LINE__);
  CHECK(line_of([&] { return graph.add_to_collection("kept", foreign), 0; }) == __LINE__);
  CHECK(line_of([&] { return with_dependencies({foreign}, constant(graph, 1.0f)); }) == __LINE__);
  CHECK(line_of([&] { return placeholder<float>(graph, {2, -5}); }) == __LINE__);
  CHECK(mentions(status_of([&] { return placeholder<float>(graph, {-5}); }), "op Placeholder"));
  CHECK(no_op(graph).node().control_inputs.empty());
  CHECK(graph.collection("kept").empty());
}

TEST_CASE("a scope refuses a node that the graph does not have", "[graph]") {
  Graph graph;
  const Operation there = no_op(graph);
  for (const NodeId id : {NodeId(), NodeId(1), NodeId(std::numeric_limits<int>::min()), NodeId(NodeId::max_position)}) {
    const Operation absent(graph.store(), id);
    CHECK(mentions(status_of([&] { return graph.control_dependencies({there, absent}); }), "no node number"));
    CHECK(mentions(status_of([&] { return graph.colocate_with(absent); }), "no node number"));
    CHECK(mentions(status_of([&] {
                     return graph.colocate_with(AnyOutput(graph.store(), {id, 0}));
                   }),
                   "no node number"));
    CHECK(mentions(status_of([&] { return graph.add_to_collection("kept", absent), 0; }), "no node number"));
  }
  const Operation next = no_op(graph);
  CHECK(next.node().control_inputs.empty());
  CHECK(next.node().colocated_with == NodeId());
}

TEST_CASE("a guard ends its own scope, in whatever order guards end", "[graph]") {
  Graph graph;
  std::optional<ScopeGuard> outer(graph.name_scope("outer"));
  std::optional<ScopeGuard> inner(graph.device("/cpu:1"));
  outer.reset();
  CHECK(no_op(graph).name() == "outer/NoOp");
  CHECK(no_op(graph).node().device == "/device:CPU:1");
  inner.reset();
  CHECK(no_op(graph).name() == "NoOp");
  CHECK(no_op(graph).node().device.empty());

  std::optional<ScopeGuard> first(graph.name_scope("first"));
  ScopeGuard moved = std::move(*first);
  first.reset();
  CHECK(no_op(graph).name() == "first/NoOp");
}

TEST_CASE("a guard may outlive its graph", "[graph]") {
  std::optional<Graph> graph(std::in_place);
  const auto scope = graph->name_scope("scope");
  *graph = Graph();
  CHECK(no_op(*graph).name() == "NoOp");
  graph.reset();
}

TEST_CASE("a place of the scope wins over the one a builder is given", "[graph]") {
  Graph graph;
  const auto line_of = [](const Operation& operation) { return operation.node().where.line(); };
  const std::source_location user = std::source_location::current();
  {
    const auto place = enter_place(*graph.store(), user);
    CHECK(line_of(no_op(graph)) == user.line());
    const auto named = graph.name_scope("inside");
    const auto library = enter_place(*graph.store(), std::source_location::current());
    CHECK(line_of(no_op(graph)) == user.line());
    const auto x = placeholder<float>(graph, {2}), y = placeholder<float>(graph, {3});
    CHECK(status_of([&] { return add(x, y); }).where().line() == user.line());
  }
  CHECK(line_of(no_op(graph)) == __LINE__);
}

TEST_CASE("an empty handle is refused when it is asked for its node", "[graph]") {
  CHECK(status_of([] { return AnyOutput().name(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return AnyOutput().dtype(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return AnyOutput().shape(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return AnyOutput().node(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return Operation().name(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return Operation().node(); }).code() == Code::invalid_argument);
  Graph graph;
  const auto x = placeholder<float>(graph);
  CHECK(status_of([&] { return AnyOutput(graph.store(), {x.node_id(), 1}).dtype(); }).code() == Code::invalid_argument);
  const Graph moved = std::move(graph);
  CHECK(status_of([&] { return graph.num_nodes(); }).code() == Code::failed_precondition);
  CHECK(status_of([&] { return no_op(graph); }).code() == Code::failed_precondition);
}

TEST_CASE("group says which operation is empty or foreign", "[graph]") {
  Graph graph, other;
  const Operation a = no_op(graph);
  CHECK(mentions(status_of([&] { return group({}); }), "at least one"));
  CHECK(mentions(status_of([&] { return group({Operation(), a}); }), "operation 0 is empty"));
  CHECK(mentions(status_of([&] { return group({a, Operation()}); }), "operation 1 is empty"));
  CHECK(mentions(status_of([&] { return group({a, no_op(other)}); }), "operation 1 belongs to another graph"));
}

TEST_CASE("errors of builders carry op, node and the line of the program", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 3}), y = placeholder<float>(graph, {2, 3});
  const int line = __LINE__ + 1;
  const Status status = status_of([&] { return matmul(x, y, {}, {.name = "bad"}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.op() == "MatMul");
  CHECK(status.node() == "bad");
  CHECK(status.where().line() == static_cast<unsigned>(line));
  CHECK(mentions(status, "graph_test.cpp"));
  CHECK(mentions(status, "[2,3]"));
  CHECK(graph.num_nodes() == 2);
}

TEST_CASE("edges of different graphs and empty edges do not mix", "[graph]") {
  Graph graph, other;
  const auto x = placeholder<float>(graph), y = placeholder<float>(other);
  CHECK(status_of([&] { return add(x, y); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return add(x, Output<float>()); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return add(Output<float>(), Output<float>()); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return Output<int>(x); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return Output<float>(AnyOutput()); }).code() == Code::invalid_argument);
}

TEST_CASE("edges are found by name", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  CHECK(graph.output("x") == x);
  CHECK(graph.output("x:0") == x);
  CHECK(x.name() == "x");
  CHECK(AnyOutput(graph.store(), Endpoint{x.node_id(), 1}).name() == "x:1");
  for (const char* missing : {"y", "x:1", "y:0", ""})
    CHECK(status_of([&] { return graph.output(missing); }).code() == Code::not_found);
  for (const char* malformed : {"x:", "x:-1", "x:a", "x:99999999999999999999"}) {
    CHECK(status_of([&] { return graph.output(malformed); }).code() == Code::invalid_argument);
  }
}

TEST_CASE("a node is found by its number, and one that the graph lacks is NotFound", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  CHECK(graph.node(x.node_id()).name == "x");
  for (const NodeId missing : {NodeId(1), NodeId(5000), NodeId()}) {
    CHECK(status_of([&] { return graph.node(missing).name; }).code() == Code::not_found);
  }
  CHECK(mentions(status_of([&] { return graph.node(NodeId(5000)).name; }), "no node number 5000"));
}

TEST_CASE("handles stay valid when the graph moves", "[graph]") {
  Graph graph({.seed = 5});
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  Graph moved = std::move(graph);
  CHECK(x.name() == "x");
  const auto y = x + x;
  CHECK(moved.num_nodes() == 2);
  CHECK(moved.output(y.name()) == y);
  Graph assigned;
  assigned = std::move(moved);
  CHECK((y + x).graph() == assigned.store());
  CHECK(assigned.num_nodes() == 3);
  CHECK(assigned.seed() == 5);
}

TEST_CASE("a copy is a graph of its own", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  graph.add_to_collection("inputs", x.operation());
  Graph copy = graph;
  static_cast<void>(no_op(copy));
  CHECK(graph.num_nodes() == 1);
  CHECK(copy.num_nodes() == 2);
  CHECK(copy.collection("inputs").at(0) == copy.find("x"));
  CHECK_FALSE(copy.output("x") == x);
  CHECK(status_of([&] { return x + Output<float>(copy.output("x")); }).code() == Code::invalid_argument);
  copy = graph;
  CHECK(copy.num_nodes() == 1);
  Graph& alias = copy;
  copy = alias;
  CHECK(copy.find("x").is_valid());
}

TEST_CASE("attributes are equal by their bits", "[graph]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<AttrValue, AttrValue>> equal{
      {nan, nan}, {FunctionName{"f"}, FunctionName{"f"}}, {std::vector<double>{nan}, std::vector<double>{nan}}};
  const std::vector<std::pair<AttrValue, AttrValue>> different{{0.0, -0.0},
                                                               {std::vector<double>{0.0}, std::vector<double>{-0.0}},
                                                               {std::int64_t{1}, true},
                                                               {1.0, std::int64_t{1}},
                                                               {FunctionName{"f"}, FunctionName{"g"}},
                                                               {FunctionName{"f"}, std::string("f")}};
  for (const auto& [a, b] : equal) {
    CHECK(attr_equal(a, b));
    CHECK(attr_hash(a) == attr_hash(b));
  }
  for (const auto& [a, b] : different) CHECK_FALSE(attr_equal(a, b));
}

TEST_CASE("a name that no node has is answered with the nearest one of at most two edits", "[graph]") {
  Graph graph;
  for (const char* name : {"hidden", "layer/logits", "ab"}) static_cast<void>(no_op(graph, {.name = name}));
  const auto message = [&](std::string_view name) {
    return std::string(status_of([&] { return graph.output(name); }).message());
  };
  CHECK(message("hiden") == "the graph has no node named 'hiden'; did you mean 'hidden'?");
  CHECK(message("idden:1") == "the graph has no node named 'idden'; did you mean 'hidden'?");
  CHECK(message("layer/logist") == "the graph has no node named 'layer/logist'; did you mean 'layer/logits'?");
  CHECK(message("hidnen_1") == "the graph has no node named 'hidnen_1'");
  CHECK(message("logits") == "the graph has no node named 'logits'");
  CHECK(message("xy") == "the graph has no node named 'xy'");
  CHECK(message("") == "the graph has no node named ''");
}

TEST_CASE("an input of another graph and an empty one are named by their number", "[graph]") {
  Graph graph, other;
  const auto a = placeholder<float>(graph), foreign = placeholder<float>(other);
  CHECK(mentions(status_of([&] { return add(a, foreign); }), "Add: input 1 belongs to another graph"));
  CHECK(mentions(status_of([&] { return add(Output<float>(), a); }), "Add: input 0 is an empty Output"));
}

TEST_CASE("a handle of a graph that is gone is none of the next graph at its address", "[graph]") {
  alignas(GraphStore) std::byte room[sizeof(GraphStore)];
  auto* store = new (room) GraphStore();
  const Operation old = detail::no_op_after(*store, {}, {});
  CHECK(old.is_of(store));
  store->~GraphStore();
  store = new (room) GraphStore();
  const Operation now = detail::no_op_after(*store, {}, {});
  CHECK(old.is_dangling());
  CHECK(mentions(status_of([&] { return old.graph(); }), "a graph that is gone"));
  CHECK(now.graph() == store);
  CHECK(old != now);
  CHECK_FALSE(old.is_of(store));
  CHECK_FALSE(old.shares_graph(now));
  CHECK_FALSE(AnyOutput().is_of(nullptr));
  CHECK(mentions(status_of([&] { return group({now, old}); }), "operation 1 belongs to another graph"));
  CHECK(mentions(status_of([&] { return group({old, old}); }), "a graph that is gone"));
  CHECK(mentions(status_of([&] { return enter_control_dependencies(*store, std::vector{old}); }),
                 "an operation is empty or belongs to another graph"));
  store->~GraphStore();
}
