#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/end_when_cancelled.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <source_location>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

/// Throws on a negative input; else passes it on.
struct FailOnNegative : Op<"FailOnNegative", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

/// Runs until the step is cancelled.
struct UntilCancelled : Op<"UntilCancelled", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};

/// Passes its input on; its kernel is made when the test says so.
struct MadeSlowly : Op<"MadeSlowly", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
struct MadeSlowlySteps {
  std::atomic<bool> is_being_made{false}, may_go_on{true};
};
MadeSlowlySteps& made_slowly() {
  static MadeSlowlySteps steps;
  return steps;
}

/// Passes its input on; a second of the test's clock goes by in its kernel. The second op has an asynchronous kernel.
struct TakesASecond : Op<"TakesASecond", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
struct TakesASecondAsync : Op<"TakesASecondAsync", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
std::shared_ptr<VirtualClock>& slow_clock() {
  static auto clock = std::make_shared<VirtualClock>();
  return clock;
}

constexpr auto session_ops =
    standard_ops + ops<FailOnNegative, UntilCancelled, MadeSlowly, TakesASecond, TakesASecondAsync>;

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

template <>
struct dflow::Kernel<TakesASecond, Cpu, float> {
  void operator()(KernelContext& context) const {
    slow_clock()->advance(std::chrono::seconds(1));
    context.set_output(0, context.input(0));
  }
};

template <>
struct dflow::Kernel<TakesASecondAsync, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    slow_clock()->advance(std::chrono::seconds(1));
    context.set_output(0, context.input(0));
    done(Status());
  }
};

template <>
struct dflow::Kernel<FailOnNegative, Cpu, float> {
  void operator()(KernelContext& context, const Tensor<float>& x, Tensor<float>& y) const {
    for (std::size_t i = 0; i < x.span().size(); ++i) {
      if (x.span()[i] < 0) context.fail(str_cat("element ", i, " is negative"));
      y.span()[i] = x.span()[i];
    }
  }
};

template <>
struct dflow::Kernel<MadeSlowly, Cpu, float> {
  explicit Kernel(const KernelInit&) {
    made_slowly().is_being_made = true;
    while (!made_slowly().may_go_on) std::this_thread::yield();
  }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

template <>
struct dflow::Kernel<UntilCancelled, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const { end_when_cancelled(context, std::move(done)); }
};

TEST_CASE("run returns what was fetched: nothing, one tensor, a tuple") {
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic});
  auto y = x * 2.0f + 1.0f;
  auto n = size(x);
  Session session(graph);
  static_assert(std::is_void_v<decltype(session.run({}, y.operation()))>);
  const Tensor<float> in({3}, {1, 2, 3});
  const Tensor<float> doubled = session.run({{x, in}}, y);
  CHECK(doubled(2) == 7);
  const auto [sum, count] = session.run({{x, in}}, reduce_sum(y), n);
  CHECK(sum.scalar() == 15);
  CHECK(count.scalar() == 3);
  CHECK(session.run({{x, in}}, x)(1) == 2);
}

TEST_CASE("a feed that does not fit is refused with the place it was built") {
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic, 2}, {.name = "images"});
  auto y = reduce_sum(x);
  Session session(graph);
  CHECK(code_of([&] { session.run({{x, Tensor<float>({3}, {1, 2, 3})}}, y); }) == Code::invalid_argument);
  const std::string message = message_of([&] { session.run({{x, Tensor<float>({1, 3}, {1, 2, 3})}}, y); });
  CHECK(message.find("images") != std::string::npos);
  CHECK(message.find("[?,2]") != std::string::npos);
  CHECK(message.find("[1,3]") != std::string::npos);
  CHECK(message.find("session_test.cpp") != std::string::npos);
  const AnyOutput erased = x;
  CHECK(code_of([&] { session.run({{erased, AnyTensor(Tensor<int>({1, 2}, {1, 2}))}}, y); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run(y); }) == Code::invalid_argument);
  CHECK(session.run({{x, Tensor<float>({1, 2}, {1, 2})}}, y).scalar() == 3);
}

TEST_CASE("fetching from another graph, an empty edge or feeding twice is an error") {
  Graph graph, other;
  auto x = placeholder<float>(graph);
  auto foreign = constant(other, 1.0f);
  Session session(graph);
  CHECK(code_of([&] { session.run(foreign); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run(Output<float>()); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run({{x, 1.0f}, {x, 2.0f}}, x); }) == Code::invalid_argument);
}

TEST_CASE("what belongs to another graph or is empty is named by its place among the feeds and fetches") {
  Graph graph, other;
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  const auto says = [&](const auto& run, std::string_view text) {
    const std::string message = message_of(run);
    INFO(message);
    CHECK(message.find(text) != std::string::npos);
  };
  const unsigned line = std::source_location::current().line() + 1;
  const auto foreign = placeholder<float>(other, {}, {.name = "theirs"});
  says([&] { session.run({{x, 1.0f}}, x, foreign); }, "fetched edge 1 belongs to another graph than the session's");
  for (const Status& status : {status_of([&] {
                                 session.run({{x, 1.0f}}, x, foreign);
                                 return 0;
                               }),
                               status_of([&] {
                                 session.run({{foreign, 1.0f}}, x);
                                 return 0;
                               }),
                               status_of([&] {
                                 session.run({{x, 1.0f}}, foreign.operation());
                                 return 0;
                               })}) {
    CHECK(status.op() == "Placeholder");
    CHECK(status.node() == "theirs");
    CHECK(status.where().line() == line);
    CHECK(std::string_view(status.where().file_name()).ends_with("session_test.cpp"));
  }
  says([&] { session.run({{x, 1.0f}, {foreign, 1.0f}}, x); }, "fed edge 1 belongs to another graph");
  says([&] { session.run({{x, 1.0f}}, x, no_op(graph), no_op(other)); }, "target 1 belongs to another graph");
  says([&] { session.run({{x, 1.0f}}, x, Output<float>()); }, "fetched edge 1 is empty");
  says([&] { session.run({{Output<float>(), 1.0f}}, x); }, "fed edge 0 is empty");
  says([&] { session.run({{x, 1.0f}}, x, Operation()); }, "target 0 is empty");
}

TEST_CASE("a kernel's error names op, node, device and line, and the session goes on") {
  Graph graph;
  auto x = placeholder<float>(graph);
  auto y = apply<FailOnNegative>(x, {}, {.name = "guard"});
  Session session(graph, {.ops = session_ops});
  const std::string message = message_of([&] { session.run({{x, Tensor<float>({2}, {1, -1})}}, y); });
  for (const char* part :
       {"INVALID_ARGUMENT", "element 1 is negative", "FailOnNegative", "guard", "CPU:0", "session_test.cpp"}) {
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  }
  CHECK(session.run({{x, 4.0f}}, y).scalar() == 4);
}

TEST_CASE("an op outside the session's table is said to be outside, not to lack a kernel") {
  Graph graph;
  auto y = apply<FailOnNegative>(constant(graph, 1.0f));
  Session session(graph);
  CHECK(code_of([&] { session.run(y); }) == Code::not_found);
  CHECK(message_of([&] { session.run(y); })
            .find("op FailOnNegative is not in the session's table of ops; make the session "
                  "with a list that has it") != std::string::npos);
}

TEST_CASE("a graph may grow while its session lives") {
  Graph graph;
  auto x = constant(graph, 2.0f);
  Session session(graph);
  CHECK(session.run(x).scalar() == 2);
  auto y = x * x;
  CHECK(session.run(y).scalar() == 4);
}

TEST_CASE("a prepared step runs again and again") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto y = x * 3.0f;
  Session session(graph);
  auto step = session.prepare(feeds(x), fetches(y));
  for (int i = 0; i < 100; ++i) CHECK(step(static_cast<float>(i)).scalar() == 3.0f * static_cast<float>(i));
}

TEST_CASE("steps run concurrently from many threads") {
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic});
  auto y = reduce_sum(x * x);
  Session session(graph, {.num_threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto v = static_cast<float>(t * 1000 + i);
        if (session.run({{x, Tensor<float>({2}, {v, 1})}}, y).scalar() != v * v + 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("updates and reads from many threads leave a variable whole") {
  Graph graph;
  Variable<float> w(graph, zeros<float>(graph, {1000}), {.name = "w"});
  auto bump = w.assign_add(ones<float>(graph, {1000}));
  Session session(graph, {.num_threads = 2});
  session.run(initialize_variables(graph));
  std::atomic<int> torn{0};
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) session.run(bump);
  });
  for (int i = 0; i < 300; ++i) {
    const Tensor<float> value = session.run(w);
    for (const float v : value) torn += v != value(0) ? 1 : 0;
  }
  writer.join();
  CHECK(torn == 0);
  CHECK(session.run(w)(999) == 300);
}

TEST_CASE("an asynchronous run delivers its results or its error") {
  Graph graph;
  auto x = placeholder<float>(graph);
  auto y = apply<FailOnNegative>(x) + 1.0f;
  for (const int threads : {1, 2}) {
    Session session(graph, {.ops = session_ops, .num_threads = threads});
    std::promise<float> value;
    session.run_async({{x, 2.0f}}, y, [&](const Status& status, const Tensor<float>& r) {
      value.set_value(status.ok() ? r.scalar() : -1);
    });
    CHECK(value.get_future().get() == 3);
    std::promise<Code> code;
    session.run_async({{x, -2.0f}}, y,
                      [&](const Status& status, const Tensor<float>&) { code.set_value(status.code()); });
    CHECK(code.get_future().get() == Code::invalid_argument);
  }
}

TEST_CASE("a passed deadline and a stop request end a step that waits") {
  Graph graph;
  auto y = apply<UntilCancelled>(constant(graph, 1.0f));
  for (const int threads : {1, 2}) {
    Session session(graph, {.ops = session_ops, .num_threads = threads});
    CHECK(code_of([&] { session.run({.deadline = std::chrono::milliseconds(20)}, {}, y); }) == Code::deadline_exceeded);
    std::stop_source stop;
    stop.request_stop();
    CHECK(code_of([&] { session.run({.stop = stop.get_token()}, {}, y); }) == Code::cancelled);
    CHECK(session.run(constant(graph, 3.0f)).scalar() == 3);
  }
}

TEST_CASE("a deadline and a stop say which node they have ended, and its line") {
  Graph graph;
  FifoQueue<float> queue(graph, {.capacity = 1, .shapes = {{}}});
  const unsigned line = std::source_location::current().line() + 1;
  auto y = queue.dequeue({.name = "next"}) + 1.0f;
  Session session(graph);
  for (const bool stops : {false, true}) {
    std::stop_source stop;
    RunOptions options;
    if (stops) {
      stop.request_stop();
      options.stop = stop.get_token();
    } else {
      options.deadline = std::chrono::milliseconds(20);
    }
    try {
      session.run(options, {}, y);
      FAIL("it has ended");
    } catch (const Error& error) {
      CHECK(error.code() == (stops ? Code::cancelled : Code::deadline_exceeded));
      // A step that was stopped before it began has met no node.
      if (stops) continue;
      CHECK(error.status().op() == "QueueDequeue");
      CHECK(error.status().node() == "next");
      CHECK(error.status().where().line() == line);
    }
  }
}

TEST_CASE("a deadline that comes while a kernel runs names the kernel's node, the last one of a step too") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const unsigned line = std::source_location::current().line() + 1;
  const auto slow = apply<TakesASecond>(x * 2.0f, {}, {.name = "slow"});
  const auto async = apply<TakesASecondAsync>(x * 2.0f, {}, {.name = "async"});
  const auto more = slow + 1.0f;
  for (const int threads : {1, 2}) {
    Session session(graph, {.ops = session_ops, .num_threads = threads, .clock = slow_clock()});
    const auto ends_at = [&](const Output<float>& y, bool traces) {
      RunMetadata metadata;
      return status_of([&] {
        return session.run({.deadline = std::chrono::milliseconds(500), .trace = traces}, traces ? &metadata : nullptr,
                           {{x, 1.0f}}, y);
      });
    };
    for (const bool traces : {false, true}) {
      for (const auto& y : {slow, more, async, slow + async}) {
        const Status status = ends_at(y, traces);
        INFO(status.to_string());
        CHECK(status.code() == Code::deadline_exceeded);
        const bool is_slow = status.node() == "slow";
        CHECK((is_slow || status.node() == "async"));
        CHECK(status.op() == (is_slow ? "TakesASecond" : "TakesASecondAsync"));
        CHECK(status.where().line() == (is_slow ? line : line + 1));
      }
      CHECK(ends_at(slow, traces).node() == "slow");
      CHECK(ends_at(more, traces).node() == "slow");
      CHECK(ends_at(async, traces).node() == "async");
    }
    CHECK(session.run({.deadline = std::chrono::seconds(10)}, {{x, 1.0f}}, more).scalar() == 3);
  }
}

TEST_CASE("memory beyond the limit is ResourceExhausted and the session goes on") {
  Graph graph;
  auto n = placeholder<std::int32_t>(graph, {1});
  auto y = reduce_sum(fill(n, constant(graph, 1.0f)));
  Session session(graph, {.memory_limit_bytes = 1 << 20});
  CHECK(code_of([&] { session.run({{n, Tensor<std::int32_t>({1}, {1 << 22})}}, y); }) == Code::resource_exhausted);
  CHECK(session.run({{n, Tensor<std::int32_t>({1}, {100})}}, y).scalar() == 100);
}

TEST_CASE("fetched tensors outlive their session") {
  Tensor<float> kept;
  {
    Graph graph;
    Session session(graph);
    kept = session.run(fill(graph, {1000}, 2.0f) * 2.0f);
  }
  CHECK(kept(999) == 4);
}

TEST_CASE("a 100,000-deep chain and a 200,000-node graph run") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Output<float> y = x;
  const auto one = constant(graph, 1.0f);
  for (int i = 0; i < 100'000; ++i) y = y + one;
  std::vector<Output<float>> wide;
  for (int i = 0; i < 100'000; ++i) wide.push_back(x * one);
  for (const int threads : {1, 2}) {
    Session session(graph, {.num_threads = threads, .passes = PassOptions::none()});
    CHECK(session.run({{x, 0.0f}}, y).scalar() == 100'000);
    CHECK(session.run({{x, 1.0f}}, add_n(wide)).scalar() == 100'000);
  }
}

TEST_CASE("a step over two devices gives what one device gives") {
  Graph graph;
  auto x = placeholder<float>(graph, {dynamic});
  Output<float> a, b;
  Operation after;
  {
    auto on = graph.device("/cpu:0");
    a = x * 2.0f;
    after = a.operation();
  }
  {
    auto on = graph.device("/cpu:1");
    auto wait = graph.control_dependencies({after});
    b = a + x;
  }
  Output<float> c;
  {
    auto on = graph.device("/cpu:0");
    c = reduce_sum(b * a);
  }
  for (const int threads : {1, 2}) {
    Session two(graph, {.num_threads = threads, .num_cpu_devices = 2});
    CHECK(two.run({{x, Tensor<float>({2}, {1, 2})}}, c).scalar() == 30);
    CHECK(two.placement_log().find("CPU:1") != std::string::npos);
    auto step = two.prepare(feeds(x), fetches(c, b));
    for (int i = 0; i < 100; ++i) CHECK(std::get<0>(step(Tensor<float>({1}, {1.0f}))).scalar() == 6);
  }
  Session one(graph);
  CHECK(code_of([&] { one.run({{x, Tensor<float>({2}, {1, 2})}}, c); }) == Code::invalid_argument);
  Session soft(graph, {.soft_placement = true});
  CHECK(soft.run({{x, Tensor<float>({2}, {1, 2})}}, c).scalar() == 30);
}

TEST_CASE("the umbrella header has what orders and traces steps, and one device needs no placement log") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  const auto [same, twice] = dflow::tuple(x, mul(x, x, {.name = "square"}));
  const auto y = with_dependencies({assert_that(x > 0.0f, {x})}, same + twice);
  Session session(graph);
  RunMetadata metadata;
  CHECK(session.run(RunOptions{.trace = true}, &metadata, {{x, 3.0f}}, y).scalar() == 12);
  CHECK(contains(chrome_trace(metadata.stats), "square"));
  CHECK(session.placement_log().empty());
}

TEST_CASE("an error on one device ends the step on the other") {
  Graph graph;
  auto x = placeholder<float>(graph);
  Output<float> y;
  {
    auto on = graph.device("/cpu:1");
    y = apply<FailOnNegative>(x);
  }
  Output<float> z;
  {
    auto on = graph.device("/cpu:0");
    z = y + 1.0f;
  }
  for (const int threads : {1, 2}) {
    Session session(graph, {.ops = session_ops, .num_threads = threads, .num_cpu_devices = 2});
    const std::string message = message_of([&] { session.run({{x, -1.0f}}, z); });
    CHECK(message.find("FailOnNegative") != std::string::npos);
    CHECK(session.run({{x, 1.0f}}, z).scalar() == 2);
  }
}

TEST_CASE("a traced step tells what ran where") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto y = x * 2.0f;
  Session session(graph);
  RunMetadata metadata;
  session.run({.trace = true}, &metadata, {{x, 1.0f}}, y);
  REQUIRE(metadata.stats.nodes.size() == 1);
  CHECK(metadata.stats.nodes[0].op == "Mul");
  CHECK(metadata.stats.nodes[0].output_bytes == 4);
  CHECK(metadata.stats.nodes[0].end_ns >= metadata.stats.nodes[0].start_ns);
}

TEST_CASE("metadata tells of the last call alone, and a trace without it is refused") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  auto y = x * 2.0f;
  Session session(graph);
  auto step = session.prepare(feeds(x), fetches(y));
  RunMetadata metadata;
  const auto trace = [&] {
    session.run({.trace = true}, &metadata, {{x, 1.0f}}, y);
    REQUIRE(metadata.stats.nodes.size() == 1);
  };
  trace();
  session.run({.trace = false}, &metadata, {{x, 1.0f}}, y);
  CHECK(metadata.stats.nodes.empty());
  CHECK(metadata.stats.step_id == 0);
  trace();
  CHECK(code_of([&] { session.run({.trace = true}, &metadata, {}, y); }) == Code::invalid_argument);
  CHECK(metadata.stats.nodes.empty());
  trace();
  step.run({}, &metadata, 1.0f);
  CHECK(metadata.stats.nodes.empty());
  trace();
  std::promise<Code> done;
  session.run_async({}, &metadata, {{x, 1.0f}}, y,
                    [&](const Status& status, const Tensor<float>&) { done.set_value(status.code()); });
  CHECK(done.get_future().get() == Code::ok);
  CHECK(metadata.stats.nodes.empty());

  CHECK(code_of([&] { session.run({.trace = true}, {{x, 1.0f}}, y); }) == Code::invalid_argument);
  CHECK(code_of([&] { step.run({.trace = true}, nullptr, 1.0f); }) == Code::invalid_argument);
  std::promise<Code> refused;
  session.run_async({.trace = true}, {{x, 1.0f}}, y,
                    [&](const Status& status, const Tensor<float>&) { refused.set_value(status.code()); });
  CHECK(refused.get_future().get() == Code::invalid_argument);
}

TEST_CASE("a step that neither fetches nor runs anything is refused") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  const Feed feed(x, 1.0f);  // the typed calls do not compile then
  CHECK(code_of([&] { session.run_erased({}, nullptr, {}, {}, {}, {}); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run_erased({}, nullptr, {&feed, 1}, {}, {}, {}); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.prepare(feeds(x), fetches()); }) == Code::invalid_argument);
  std::promise<Code> refused;
  session.run_async({{x, 1.0f}}, [&](const Status& status) { refused.set_value(status.code()); });
  CHECK(refused.get_future().get() == Code::invalid_argument);
}

TEST_CASE("the erased run needs room for each fetched edge, and no more") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Session session(graph);
  const std::vector<Feed> fed{{x, 1.0f}};
  const std::vector<AnyOutput> edges{x, x};
  for (const std::size_t room : {0, 1, 3}) {
    std::vector<AnyTensor> results(room);
    CHECK(code_of([&] { session.run_erased({}, nullptr, fed, edges, {}, results); }) == Code::invalid_argument);
  }
  std::vector<AnyTensor> results(2);
  session.run_erased({}, nullptr, fed, edges, {}, results);
  CHECK(Tensor<float>(results[1]).scalar() == 1);
}

TEST_CASE("two sessions share state only through devices given to both") {
  Graph graph;
  Variable<float> w(graph, constant(graph, 1.0f), {.name = "w"});
  Session a(graph), b(graph);
  a.run(initialize_variables(graph));
  CHECK(a.run(w).scalar() == 1);
  CHECK(code_of([&] { b.run(w); }) == Code::failed_precondition);
  Session c(graph, {.devices = a.devices()});
  CHECK(c.run(w).scalar() == 1);
}

TEST_CASE("steps over two devices follow each other without losing a wake-up") {
  Graph graph;
  auto x = placeholder<float>(graph, {});
  Output<float> y = x;
  for (int i = 0; i < 6; ++i) {
    auto on = graph.device(i % 2 == 0 ? "/cpu:1" : "/cpu:0");
    y = y + 1.0f;
  }
  Session session(graph, {.num_threads = 4, .num_cpu_devices = 2});
  auto step = session.prepare(feeds(x), fetches(y));
  float sum = 0;
  for (int i = 0; i < 3000; ++i) sum += step(0.0f).scalar();
  CHECK(sum == 18000);
}

TEST_CASE("a session that another thread lets go of gives its value to who is in run, and still compiles") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<MadeSlowly>(x);
  auto session = std::make_unique<Session>(graph, SessionOptions{.ops = session_ops});
  MadeSlowlySteps& steps = made_slowly();
  steps.is_being_made = steps.may_go_on = false;
  float value = 0;
  std::thread runs([&, of = session.get()] { value = of->run({{x, 3.0f}}, y).scalar(); });
  while (!steps.is_being_made) std::this_thread::yield();
  session.reset();
  steps.may_go_on = true;
  runs.join();
  CHECK(value == 3.0f);
}
