#include <dflow/graph/graph_store.hpp>

#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/node_list.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/control/function.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/operators.hpp>

#include "catch.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <source_location>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

Node named(std::string name) {
  Node node;
  node.op = &op_def<NoOp>;
  node.name = std::move(name);
  return node;
}

/// Runs `read` on a thread of its own, over and over, while `write` runs on this one.
template <class Read, class Write>
void read_while(Read&& read, Write&& write) {
  std::atomic<bool> is_reading{false}, is_done{false};
  std::thread reader([&] {
    do {
      read();
      is_reading = true;
    } while (!is_done);
  });
  while (!is_reading) std::this_thread::yield();
  write();
  is_done = true;
  reader.join();
}

}  // namespace

TEST_CASE("nodes of a list stay where they are, and are seen once they are published", "[graph]") {
  NodeList nodes;
  std::vector<const Node*> places;
  constexpr std::size_t count = 1000;
  for (std::size_t i = 0; i < count; ++i) {
    nodes.reserve_one();
    nodes.append(named(std::to_string(i)));
    CHECK(nodes.size() == i);
    nodes.publish();
    places.push_back(&nodes[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    CHECK(&nodes[i] == places[i]);
    CHECK(nodes[i].name == std::to_string(i));
  }
  nodes.reserve_one();
  nodes.append(named("dropped"));
  nodes.drop_from(count);
  CHECK(nodes.num_appended() == count);
  nodes.reserve_one();
  nodes.append(named("kept"));
  nodes.publish();
  CHECK(nodes.size() == count + 1);
  CHECK(nodes[count].name == "kept");
}

TEST_CASE("a draft is invisible until it is published, and gone if it is not", "[graph]") {
  Graph graph;
  GraphStore& store = *graph.store();
  static_cast<void>(no_op(graph, {.name = "before"}));
  {
    const GraphStore::Draft draft(store);
    static_cast<void>(no_op(graph, {.name = "inside"}));
    CHECK(graph.num_nodes() == 1);
    const auto is_found = [&] { return store.find("inside").is_valid(); };
    CHECK(is_found());  // by the thread that builds
    CHECK_FALSE(std::async(std::launch::async, is_found).get());
    CHECK(to_graph_def(graph).nodes.size() == 1);
    CHECK_THROWS_AS(no_op(graph, {.name = "inside"}), Error);
  }
  CHECK(graph.num_nodes() == 1);
  CHECK(graph.version() == 1);
  {
    GraphStore::Draft outer(store);
    {
      GraphStore::Draft inner(store);
      static_cast<void>(no_op(graph, {.name = "inside"}));
      inner.publish();
    }
    CHECK(graph.num_nodes() == 1);
    outer.publish();
  }
  CHECK(graph.num_nodes() == 2);
  CHECK(graph.find("inside").node_id() == NodeId(1));
}

TEST_CASE("a view of the nodes does not grow with the graph", "[graph]") {
  Graph graph;
  static_cast<void>(no_op(graph));
  const GraphStore::Nodes nodes = graph.store()->nodes();
  const std::uint64_t version = graph.version();
  static_cast<void>(no_op(graph));
  CHECK(nodes.size() == 1);
  CHECK(nodes[NodeId(0)].name == "NoOp");
  CHECK(graph.version() != version);
}

TEST_CASE("nodes, names and collections are read while another thread builds", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  graph.add_to_collection("inputs", x.operation());
  std::atomic<bool> is_right{true};
  const auto require = [&](bool claim) {
    if (!claim) is_right = false;
  };
  std::size_t last_size = 0;
  const auto read = [&] {
    const GraphStore::Nodes nodes = graph.store()->nodes();
    require(nodes.size() >= last_size);
    last_size = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); i += 97) {
      const NodeId id(i);
      require(nodes[id].op != nullptr && !nodes[id].name.empty());
      require(graph.find(nodes[id].name).node_id() == id);
    }
    require(x.dtype() == DType::float32 && x.name() == "x");
    require(graph.output("x") == x);
    for (const Operation& operation : graph.collection("inputs")) require(operation.node().outputs.size() == 1);
    require(!graph.find("nobody").is_valid());
  };
  const auto write = [&] {
    for (int i = 0; i < 3000; ++i) {
      const ScopeGuard scope = graph.name_scope("layer");
      const ScopeGuard on = graph.device("/cpu:0");
      const ScopeGuard after = graph.control_dependencies({x.operation()});
      const auto y = placeholder<float>(graph, {2});
      if (i % 10 == 0) graph.add_to_collection("inputs", y.operation());
    }
  };
  read_while(read, write);
  CHECK(is_right);
  CHECK(graph.num_nodes() == 3001);
}

TEST_CASE("a graph is copied and saved while another thread builds", "[graph]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  graph.add_to_collection("inputs", x.operation());
  std::atomic<bool> is_right{true};
  const auto read = [&] {
    const Graph copy = graph;
    const GraphDef def = to_graph_def(graph);
    if (copy.output("x").dtype() != DType::float32 || def.nodes.front().name != "x") is_right = false;
    for (const auto& [name, members] : def.collections) {
      if (name != "inputs" || members.empty() || members.size() > def.nodes.size()) is_right = false;
    }
  };
  read_while(read, [&] {
    for (int i = 0; i < 1000; ++i) {
      const ScopeGuard scope = graph.name_scope("layer");
      graph.add_to_collection("inputs", placeholder<float>(graph, {2}).operation());
      static_cast<void>(next_op_seed(*graph.store(), 0));
    }
  });
  CHECK(is_right);
  CHECK(graph.collection("inputs").size() == 1001);
}

TEST_CASE("what a draft adds to a collection is seen by the thread that builds it alone, and goes with it") {
  GraphStore graph;
  graph.add_to_collection("all", graph.append(named("before")));
  const auto seen_elsewhere = [&] {
    std::vector<std::size_t> sizes;
    std::thread([&] {
      sizes = {graph.collection("all").size(), graph.collection("new").size(), graph.collections().size()};
    }).join();
    return sizes;
  };
  for (const bool is_published : {false, true}) {
    GraphStore::Draft draft(graph);
    graph.add_to_collection("all", graph.append(named("drafted")));
    graph.add_to_collection("new", graph.append(named("other")));
    CHECK(graph.collection("all").size() == 2);
    CHECK(graph.collections().size() == 2);
    CHECK(seen_elsewhere() == std::vector<std::size_t>{1, 0, 1});
    const GraphStore copy(graph);
    CHECK(copy.collection("all").size() == 1);
    if (is_published) draft.publish();
  }
  CHECK(seen_elsewhere() == std::vector<std::size_t>{2, 1, 2});
}

TEST_CASE("what was built with a draft is told that it is dropped, the last first, and not what was published") {
  GraphStore graph;
  std::string told;
  const auto build = [&](const char* name) {
    graph.append(named(name));
    graph.on_drop([&told, name] { told += name; });
  };
  {
    GraphStore::Draft outer(graph);
    build("a");
    {
      GraphStore::Draft inner(graph);
      build("b");
      inner.publish();
    }
    {
      GraphStore::Draft inner(graph);
      build("c");
    }
    CHECK(told == "c");
    build("d");
  }
  CHECK(told == "cdba");
  {
    GraphStore::Draft draft(graph);
    build("e");
    draft.publish();
  }
  CHECK(told == "cdba");
  build("f");  // without a draft nothing is dropped
  CHECK(graph.size() == 2);
}

TEST_CASE("a function of several nodes that throws leaves the graph as it was, and its nodes have the caller's place") {
  Graph graph;
  GraphStore& store = *graph.store();
  const auto where = std::source_location::current();
  const auto build = [&](bool throws) {
    const Composite place(store, where);
    const NodeId first = no_op(graph, {.name = "first"}).node_id();
    store.add_to_collection("all", first);
    if (throws) throw_error(Status::invalid_argument("refused"));
    return no_op(graph, {.name = "second"});
  };
  CHECK_THROWS_AS(build(true), Error);
  CHECK(graph.num_nodes() == 0);
  CHECK(store.collections().empty());
  CHECK(build(false).node().where.line() == where.line());
  CHECK(graph.num_nodes() == 2);
  // One that is called while an exception is under way keeps its nodes.
  struct AtEnd {
    ~AtEnd() { build(); }
    std::function<void()> build;
  };
  const auto build_at_end = [&] {
    const AtEnd last{[&] {
      const Composite place(store, where);
      static_cast<void>(no_op(graph, {.name = "third"}));
    }};
    throw_error(Status::invalid_argument("refused"));
  };
  CHECK_THROWS_AS(build_at_end(), Error);
  CHECK(graph.find("third").node_id() == NodeId(2));
  // An inner one that was caught leaves the nodes of the outer one.
  {
    const Composite outer(store, where);
    static_cast<void>(no_op(graph, {.name = "outer"}));
    try {
      const Composite inner(store, where);
      static_cast<void>(no_op(graph, {.name = "inner"}));
      throw_error(Status::invalid_argument("refused"));
    } catch (const Error&) {
    }
  }
  CHECK(graph.num_nodes() == 4);
  CHECK_FALSE(store.find("inner").is_valid());
}

TEST_CASE("functions and loops of a draft that is dropped leave no note behind") {
  Graph graph;
  GraphStore& store = *graph.store();
  auto i = frames::merge({frames::enter(constant(graph, 0), "f")});
  const NodeId merge = i.value.node_id();
  const auto grow = [&] {
    frames::next_iteration(i.value, i);
    return std::vector<NodeId>(store.next_iterations(merge));
  };
  const auto first = NodeId(store.size());
  {
    const GraphStore::Draft draft(store);
    CHECK(grow() == std::vector<NodeId>{first});
  }
  CHECK(store.next_iterations(merge).empty());
  CHECK(grow() == std::vector<NodeId>{first});
  const auto begin = NodeId(store.size());
  {
    const GraphStore::Draft draft(store);
    register_function(graph, "norm", [](Output<float> a) { return a * a; });
    CHECK(store.function(begin).has_value());
  }
  CHECK(!store.function(begin).has_value());
}

TEST_CASE("a function loses the arguments and results of a draft that is dropped, and keeps the others") {
  GraphStore store;
  const auto append = [&](const OpDef& op, std::string name, NodeId function, std::shared_ptr<const void> attrs = {}) {
    Node node = named(std::move(name));
    node.op = &op;
    node.function = function;
    node.attrs = std::move(attrs);
    return store.append(std::move(node));
  };
  const auto append_argument = [&](NodeId function, std::int64_t number) {
    return append(op_def<FunctionArgument>, str_cat("x", number), function,
                  reflect::share(FunctionArgument::Attrs{number, {}}));
  };
  const NodeId begin = append(op_def<FunctionBegin>, "f", {}, reflect::share(FunctionBegin::Attrs()));
  const NodeId first = append_argument(begin, 0);
  for (const bool ends_with_argument : {true, false}) {
    {
      const GraphStore::Draft draft(store);
      const NodeId drafted =
          ends_with_argument ? append_argument(begin, 1) : append(op_def<FunctionResults>, "r", begin);
      CHECK(store.function(begin)->arguments.size() == 2);
      CHECK((ends_with_argument ? store.function(begin)->arguments[1] : store.function(begin)->results) == drafted);
    }
    REQUIRE(store.function(begin)->arguments.size() == 2);
    CHECK(store.function(begin)->arguments[0] == first);
    CHECK(!store.function(begin)->arguments[1].is_valid());
    CHECK(!store.function(begin)->results.is_valid());
  }
  const NodeId results = append(op_def<FunctionResults>, "r", begin);
  {
    const GraphStore::Draft draft(store);
    append(op_def<NoOp>, "other", {});
  }
  CHECK(store.function(begin)->results == results);
}
