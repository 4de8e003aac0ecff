// Graph, session and what a session makes are destroyed in every order.
#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/orders.hpp"

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

bool says_gone(const auto& use) {
  const Status status = status_of([&] {
    static_cast<void>(use());
    return 0;
  });
  return status.code() == Code::invalid_argument && mentions(status, "a graph that is gone");
}

/// A graph of y = x * 3, and all that runs it.
struct RunWorld {
  using Step = PreparedStep<FeedList<float>, FetchList<Output<float>>>;

  std::vector<Mortal> mortals() {
    return {mortal("graph", graph, [this](Graph& of) { CHECK((y + 1.0f).graph() == of.store()); }),
            mortal("session", session,
                   [this](Session& of) {
                     CHECK(of.run({{x, 2.0f}}, y).scalar() == 6);
                     CHECK(of.run({{x, 2.0f}}, y + 1.0f).scalar() == 7);
                     CHECK(of.graph() == y.graph());
                     CHECK_FALSE(of.device_of(y.operation()).empty());
                   }),
            mortal("step", step, [](const Step& of) { CHECK(of(2.0f).scalar() == 6); }),
            mortal("run", run,
                   [this](PartialRun& of) {
                     if (std::exchange(is_fed, true)) {
                       CHECK(contains(error_of([&] {
                                        of.feed(x, 2.0f);
                                        return 0;
                                      }),
                                      "fed twice"));
                     } else {
                       of.feed(x, 2.0f);
                       CHECK(of.fetch(y).scalar() == 6);
                     }
                   }),
            mortal("function", function,
                   [](const CompiledFunction<Tensor<float>(float)>& of) { CHECK(of(2).scalar() == 6); })};
  }
  bool keeps_graph() const { return graph || session || step || run || function; }

  std::optional<Graph> graph{std::in_place};
  Output<float> x = placeholder<float>(*graph, {}, {.name = "x"});
  Output<float> y = x * 3.0f;
  std::optional<Session> session{std::in_place, *graph, SessionOptions{.num_threads = 1}};
  std::optional<Step> step = session->prepare(feeds(x), fetches(y));
  std::optional<PartialRun> run = session->partial_run(feeds(x), fetches(y));
  std::optional<CompiledFunction<Tensor<float>(float)>> function = compile(*session, inputs(x), outputs(y));
  bool is_fed = false;
};

/// A graph that was merged into another one.
struct MergeWorld {
  std::vector<Mortal> mortals() {
    return {mortal("from", from, [this](Graph& of) { CHECK(x.is_of(of.store())); }),
            mortal("into", into, [](Graph& of) { CHECK(of.find("copy/x").is_valid()); }),
            mortal("merged", merged, [this](const MergedGraph& of) {
              const Output<float> copy = of(x);
              CHECK(copy.is_dangling() == !into.has_value());
              if (into) CHECK(copy.name() == "copy/x");
              if (from) CHECK(of.operation("x") == copy.operation());
              if (!from) CHECK(says_gone([&] { return of.operation("x"); }));
            })};
  }

  std::optional<Graph> from{std::in_place}, into{std::in_place};
  Output<float> x = placeholder<float>(*from, {}, {.name = "x"});
  std::optional<MergedGraph> merged = merge(*into, *from, {.prefix = "copy"});
};

}  // namespace

TEST_CASE("graph, session, prepared step, partial run and function end in every order", "[session][lifetime]") {
  destroy_in_every_order<RunWorld>([](const RunWorld& world) {
    CHECK(world.y.is_dangling() != world.keeps_graph());
    if (world.keeps_graph()) {
      CHECK(world.x.name() == "x");
      CHECK(world.y.graph() != nullptr);
      return;
    }
    CHECK(world.y.is_valid());
    CHECK(says_gone([&] { return world.y.graph(); }));
    CHECK(says_gone([&] { return world.x.name(); }));
    CHECK(says_gone([&] { return world.y.shape(); }));
    CHECK(says_gone([&] { return world.y.operation().node().name; }));
    CHECK(says_gone([&] { return world.y + 1.0f; }));
    CHECK(says_gone([&] { return build<Add>({world.x, world.y}).operation(); }));
    CHECK(says_gone([&] { return gradients(world.y, world.x); }));
  });
}

TEST_CASE("a merged graph knows which of its graphs is gone", "[session][lifetime]") {
  destroy_in_every_order<MergeWorld>([](const MergeWorld&) {});
}

TEST_CASE("a handle of a graph that is gone is refused by the graphs and sessions that came after", "[lifetime]") {
  Output<float> old;
  Operation old_operation;
  std::optional<BuiltNode> built;
  {
    Graph graph;
    old = placeholder<float>(graph, {}, {.name = "old"});
    built = build<Neg>({old});
    old_operation = built->operation();
  }
  // One of them has the place of the graph that is gone.
  std::vector<std::unique_ptr<Graph>> graphs;
  for (int i = 0; i < 4; ++i) graphs.push_back(std::make_unique<Graph>());
  for (const auto& graph : graphs) {
    const Output<float> x = placeholder<float>(*graph, {});
    Session session(*graph, {.num_threads = 1});
    CHECK(says_gone([&] { return session.run(old); }));
    CHECK(says_gone([&] { return session.run({{old, 1.0f}}, x); }));
    CHECK(says_gone([&] {
      session.run({{x, 1.0f}}, x, old_operation);
      return 0;
    }));
    CHECK(says_gone([&] { return compile(session, inputs(x), outputs(old)); }));
    CHECK(says_gone([&] { return x + old; }));
    CHECK(says_gone([&] { return old + x; }));
    CHECK(code_of([&] { return session.device_of(old_operation); }) == Code::invalid_argument);
    CHECK(code_of([&] { return graph->control_dependencies({old_operation}); }) == Code::invalid_argument);
    CHECK(code_of([&] { return gradients(x, old); }) == Code::invalid_argument);
    CHECK_FALSE(old.is_of(graph->store()));
    CHECK_FALSE(old.shares_graph(x));
  }
  CHECK(built->operation().is_dangling());
  CHECK(built->output(0).is_dangling());
  CHECK(says_gone([&] { return built->output(0).dtype(); }));
}

TEST_CASE("a session runs the graph that it was made of when another one was assigned to it", "[session][lifetime]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 3.0f;
  Session session(graph, {.num_threads = 1});
  graph = Graph();
  const auto z = constant(graph, 1.0f);
  CHECK(session.run({{x, 2.0f}}, y).scalar() == 6);
  CHECK(code_of([&] { return session.run(z); }) == Code::invalid_argument);
  CHECK(Session(graph, {.num_threads = 1}).run(z).scalar() == 1);
  Session other(graph, {.num_threads = 1});
  session = std::move(other);
  CHECK(y.is_dangling());
  CHECK(session.run(z).scalar() == 1);
}

TEST_CASE("an asynchronous run goes on without its graph, its session and its metadata", "[session][lifetime]") {
  for (const bool drops_metadata : {true, false}) {
    std::optional<Graph> graph(std::in_place);
    const FifoQueue<float> queue(*graph, {.shapes = {{}}});
    const auto taken = queue.dequeue() * 2.0f;
    const auto put = queue.enqueue(constant(*graph, 4.0f));
    std::optional<Session> session(std::in_place, *graph, SessionOptions{.num_threads = 2});
    const auto enqueue = session->prepare(feeds(), fetches(put));
    auto metadata = std::make_unique<RunMetadata>();
    std::promise<float> value;
    session->run_async({.trace = true}, metadata.get(), {}, taken, [&](const Status& status, const Tensor<float>& y) {
      value.set_value(status.ok() ? y.scalar() : -1.0f);
    });
    graph.reset();
    session.reset();
    if (drops_metadata) metadata.reset();
    enqueue();
    CHECK(value.get_future().get() == 8);
    if (!drops_metadata) CHECK_FALSE(metadata->stats.nodes.empty());
  }
}

TEST_CASE("a partial run reports nothing to metadata that are gone", "[session][lifetime]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 3.0f;
  Session session(graph, {.num_threads = 1});
  auto metadata = std::make_unique<RunMetadata>();
  PartialRun run = session.partial_run({.trace = true}, metadata.get(), feeds(x), fetches(y));
  metadata.reset();
  run.feed(x, 2.0f);
  CHECK(run.fetch(y).scalar() == 6);
  RunMetadata kept;
  PartialRun next = session.partial_run({.trace = true}, &kept, feeds(x), fetches(y));
  next.feed(x, 2.0f);
  CHECK(next.fetch(y).scalar() == 6);
  CHECK_FALSE(kept.stats.nodes.empty());
}

TEST_CASE("a variable, a queue and a layer whose graph is gone say so", "[lifetime]") {
  Variable<float> w;
  FifoQueue<float> queue;
  Dense layer(3);
  {
    Graph graph;
    w = Variable<float>(graph, 1.0f, {.name = "w"});
    queue = FifoQueue<float>(graph);
    static_cast<void>(layer(placeholder<float>(graph, {2, 4})));
  }
  CHECK(says_gone([&] { return w.name(); }));
  CHECK(says_gone([&] { return w.assign(2.0f); }));
  CHECK(says_gone([&] { return w.initializer(); }));
  CHECK(says_gone([&] { return w + 1.0f; }));
  CHECK(says_gone([&] { return queue.dequeue(); }));
  CHECK(says_gone([&] { return queue.size(); }));
  CHECK(says_gone([&] { return layer.variables().at(0).name(); }));
}
