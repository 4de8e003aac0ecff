#include <dflow/session/partial_run.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// A branch that is never taken.
struct PartialUntaken : Op<"PartialUntaken", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

/// Fails for negative numbers.
struct PartialFailing : Op<"PartialFailing", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

}  // namespace

template <>
struct dflow::Kernel<PartialUntaken, Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

template <>
struct dflow::Kernel<PartialFailing, Cpu, float> {
  void operator()(KernelContext& context, const Tensor<float>& x, Tensor<float>& y) const {
    if (x.span()[0] < 0) context.fail("it is negative");
    y.span()[0] = x.span()[0];
  }
};

namespace {

/// On one thread, on several, and on three devices.
std::vector<SessionOptions> partial_sessions() {
  std::vector<SessionOptions> all(3);
  all[0].num_threads = 1;
  all[1].num_threads = 4;
  all[2].num_threads = 2;
  all[2].num_cpu_devices = 3;
  return all;
}

}  // namespace

TEST_CASE("a partial run computes what it is asked for from what it has been fed, call by call") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<float>(graph, {dynamic}), b = placeholder<float>(graph, {dynamic});
    const auto c = placeholder<float>(graph, {});
    Output<float> doubled, sum;
    {
      const auto on = graph.device(options.num_cpu_devices > 1 ? "/cpu:1" : "");
      doubled = a * 2.0f;
    }
    {
      const auto on = graph.device(options.num_cpu_devices > 1 ? "/cpu:2" : "");
      sum = doubled + b;
    }
    const auto total = reduce_sum(sum) * c;
    Session session(graph, options);
    for (int round = 0; round < 3; ++round) {
      auto run = session.partial_run(feeds(a, b, c), fetches(doubled, sum, total));
      CHECK(run.feed(a, Tensor<float>({2}, {1, 2})).fetch(doubled)(1) == 4);
      CHECK(run.feed(b, Tensor<float>({2}, {10, 20})).fetch(sum)(1) == 24);
      CHECK(run.feed(c, 3.0f).fetch(total).scalar() == 3 * (12 + 24));
      run.finish();
      run.finish();
    }
    // In another order, and some at once.
    auto run = session.partial_run(feeds(a, b, c), fetches(doubled, sum, total));
    run.feed(c, 2.0f).feed(b, Tensor<float>({1}, {5.0f})).feed(a, Tensor<float>({1}, {1.0f}));
    const auto [t, d] = run.fetch(total, doubled);
    CHECK(t.scalar() == 14);
    CHECK(d(0) == 2);
    CHECK(run.fetch(sum)(0) == 7);
  }
}

TEST_CASE("nodes of a partial run run once, and its operations have run when it has ended") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const Variable<float> w(graph, 0);
    const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
    const Operation first = w.assign_add(x);
    Output<float> after_x;
    {
      const auto after = graph.control_dependencies({first});
      after_x = w.read();
    }
    Operation last;
    {
      const auto after = graph.control_dependencies({after_x.operation()});
      last = w.assign_add(y * 10.0f);
    }
    Session session(graph, options);
    session.run(initialize_variables(graph));
    float expected = 0;
    for (int round = 0; round < 3; ++round) {
      auto run = session.partial_run(feeds(x, y), fetches(after_x, last));
      CHECK(run.feed(x, 1.0f).fetch(after_x).scalar() == expected + 1);
      CHECK(session.run(w).scalar() == expected + 1);  // other steps go on meanwhile
      CHECK(code_of([&] { run.fetch(last); }) == Code::invalid_argument);
      run.feed(y, 2.0f).fetch(last);
      expected += 21;
      CHECK(session.run(w).scalar() == expected);
    }
    // The last operation runs without a request: the caller that takes the last value waits for it.
    auto run = session.partial_run(feeds(x, y), fetches(after_x, last));
    CHECK(run.feed(y, 2.0f).feed(x, 1.0f).fetch(after_x).scalar() == expected + 1);
    CHECK(session.run(w).scalar() == expected + 21);
  }
}

TEST_CASE("what is wrong with a call of a partial run is said, and the run goes on") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}, {.name = "a"}), b = placeholder<float>(graph, {}, {.name = "b"});
  const auto c = placeholder<float>(graph, {dynamic}, {.name = "c"});
  const auto one = constant(graph, 1.0f), y = add(a, one, {.name = "y"}), z = add(y, b, {.name = "z"});
  Session session(graph);
  auto run = session.partial_run(feeds(a, b, c), fetches(y, z));
  const auto says = [&](const auto& call, std::string_view text) {
    const Status status = status_of(call);
    INFO(status.to_string());
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.message().find(text) != std::string::npos);
  };
  says([&] { run.fetch(y); }, "'y' needs 'a', not fed yet");
  says([&] { run.fetch(z); }, "'z' needs 'a', 'b', not fed yet");
  says([&] { run.fetch(a); }, "'a' is none of the edges that may be fetched");
  says([&] { run.fetch(y, y); }, "fetched twice in one call");
  says([&] { run.feed(y, 1.0f); }, "'y' is none of the edges that may be fed");
  says([&] { run.feed(Output<float>(), 1.0f); }, "an empty edge");
  says([&] { run.feed(c, 1.0f); }, "'c' carries");
  says([&] { run.feed(AnyOutput(a), AnyTensor(Tensor<int>(1))); }, "'a' carries");
  says([&] { run.fetch(z.operation()); }, "none of the operations");
  says([&] { run.finish(); }, "needs 'a', 'b', 'c', not fed yet");
  run.feed(a, 1.0f);
  says([&] { run.feed(a, 2.0f); }, "'a' is fed twice");
  CHECK(run.fetch(y).scalar() == 2);
  says([&] { run.fetch(y); }, "'y' was fetched before");
  CHECK(run.feed(b, 3.0f).fetch(z).scalar() == 5);
  says([&] { run.finish(); }, "needs 'c'");
  run.feed(c, Tensor<float>({1}, {1.0f}));
  run.finish();
  PartialRun other = std::move(run);
  CHECK(code_of([&] { run.finish(); }) == Code::failed_precondition);
  other.finish();

  says([&] { session.partial_run(feeds(a), fetches(z)); }, "placeholder 'b' must be fed");
  says([&] { session.partial_run(feeds(a, a), fetches(y)); }, "fed twice");
  says([&] { session.partial_run(feeds(a), fetches()); }, "a step must fetch or run something");
  RunOptions traced;
  traced.trace = true;
  says([&] { session.partial_run(traced, nullptr, feeds(a), fetches(y)); }, "a trace needs metadata");
}

TEST_CASE("a fetch that needs a feed by a control edge alone is refused before that feed comes") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const Variable<float> w(graph, 0);
    const auto a = placeholder<float>(graph, {}, {.name = "a"}), b = placeholder<float>(graph, {}, {.name = "b"});
    Output<float> y;
    {
      const auto on = graph.device(options.num_cpu_devices > 1 ? "/cpu:1" : "");
      const auto after = graph.control_dependencies({w.assign_add(a)});
      y = add(b, b, {.name = "y"});
    }
    Session session(graph, options);
    session.run(initialize_variables(graph));
    auto run = session.partial_run(feeds(a, b), fetches(y));
    run.feed(b, 3.0f);
    const Status status = status_of([&] { return run.fetch(y); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(mentions(status, "'y' needs 'a', not fed yet"));
    CHECK(run.feed(a, 2.0f).fetch(y).scalar() == 6);
    run.finish();
    CHECK(session.run(w).scalar() == 2);
  }
}

TEST_CASE("a partial run hands over feeds and constants as they are, and its caller may write what it has") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<float>(graph, {dynamic}), b = placeholder<float>(graph, {});
    const auto three = constant(graph, Tensor<float>({2}, {3, 3}));
    const auto doubled = a * 2.0f, late = a * b;
    Session session(graph, options);
    for (int round = 0; round < 3; ++round) {
      auto run = session.partial_run(feeds(a, b), fetches(a, three, doubled, late));
      Tensor<float> x({2}, {1, 2});
      CHECK(run.fetch(three)(0) == 3);
      run.feed(a, x);
      x(1) = 100;
      Tensor<float> fed = run.fetch(a);
      CHECK(fed(1) == 2);
      fed(1) = 200;
      Tensor<float> d = run.fetch(doubled);
      CHECK(d(1) == 4);
      d(1) = 300;
      CHECK(run.feed(b, 5.0f).fetch(late)(1) == 10);
    }
    // Nothing to compute.
    auto run = session.partial_run(feeds(a), fetches(a, three));
    CHECK(run.fetch(three)(1) == 3);
    CHECK(run.feed(a, Tensor<float>({1}, {7.0f})).fetch(a)(0) == 7);
    run.finish();
  }
}

TEST_CASE("what ends a partial run is thrown by all its calls from then on") {
  for (SessionOptions options : partial_sessions()) {
    options.ops = standard_ops + ops<PartialFailing, PartialUntaken>;
    Graph graph;
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto line = __LINE__ + 1;
    const auto failing = apply<PartialFailing>(a, {}, {.name = "failing"});
    const auto sum = failing + b;
    const auto dead = apply<PartialUntaken>(a, {}, {.name = "dead"});
    Session session(graph, options);
    for (int round = 0; round < 3; ++round) {
      auto run = session.partial_run(feeds(a, b), fetches(failing, sum));
      run.feed(a, -1.0f);
      const Status status = status_of([&] { run.fetch(failing); });
      CHECK(status.node() == "failing");
      CHECK(status.where().line() == line);
      CHECK(status_of([&] { run.fetch(sum); }) == status_of([&] { run.feed(b, 1.0f); }));
      CHECK(status_of([&] { run.finish(); }).node() == "failing");
      auto next = session.partial_run(feeds(a, b), fetches(failing, sum));
      CHECK(next.feed(a, 1.0f).feed(b, 1.0f).fetch(sum).scalar() == 2);
    }
    auto run = session.partial_run(feeds(a, b), fetches(dead, sum));
    const Status status = status_of([&] { run.feed(a, 1.0f).fetch(dead); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.node() == "dead");
  }
}

TEST_CASE("a stop ends a partial run that waits for its caller, and so does its deadline") {
  for (const SessionOptions& given : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto y = a + 1.0f, z = y + b;
    SessionOptions options = given;
    const auto clock = std::make_shared<VirtualClock>();
    options.clock = clock;
    Session session(graph, options);
    RunOptions limits;
    limits.deadline = std::chrono::seconds(5);
    auto late = session.partial_run(limits, nullptr, feeds(a, b), fetches(y, z));
    CHECK(late.feed(a, 1.0f).fetch(y).scalar() == 2);
    clock->advance(std::chrono::seconds(6));
    CHECK(code_of([&] { late.feed(b, 1.0f).fetch(z); }) == Code::deadline_exceeded);

    std::stop_source source;
    RunOptions stops;
    stops.stop = source.get_token();
    auto stopped = session.partial_run(stops, nullptr, feeds(a, b), fetches(y, z));
    stopped.feed(a, 1.0f);
    source.request_stop();
    CHECK(code_of([&] { stopped.feed(b, 1.0f).fetch(z); }) == Code::cancelled);
  }
}

TEST_CASE("a partial run that is let go of is cancelled, or goes on to its end if it has been fed all") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const Variable<float> w(graph, 0);
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto y = a + 1.0f;
    const Operation add_all = w.assign_add(a + b);
    auto session = std::make_optional<Session>(graph, options);
    session->run(initialize_variables(graph));
    for (int round = 0; round < 3; ++round) {
      static_cast<void>(session->partial_run(feeds(a, b), fetches(y, add_all)));
      auto run = session->partial_run(feeds(a, b), fetches(y, add_all));
      CHECK(run.feed(a, 1.0f).fetch(y).scalar() == 2);
      run = session->partial_run(feeds(a, b), fetches(y, add_all));
      run.feed(a, 1.0f).feed(b, 1.0f);
    }
    while (session->run(w).scalar() != 6) std::this_thread::yield();
    auto run = session->partial_run(feeds(a, b), fetches(y, add_all));
    session.reset();
    CHECK(run.feed(a, 1.0f).feed(b, 1.0f).fetch(y).scalar() == 2);
  }
}

TEST_CASE("partial runs of one step run side by side, and threads share one") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<std::int64_t>(graph, {}), b = placeholder<std::int64_t>(graph, {});
    const auto y = a * std::int64_t{2}, z = y + b;
    Session session(graph, options);
    auto first = session.partial_run(feeds(a, b), fetches(y, z));
    auto second = session.partial_run(feeds(a, b), fetches(y, z));
    auto third = session.partial_run(feeds(a, b), fetches(y, z));
    second.feed(a, std::int64_t{2});
    third.feed(a, std::int64_t{3});
    first.feed(a, std::int64_t{1});
    CHECK(third.fetch(y).scalar() == 6);
    CHECK(first.fetch(y).scalar() == 2);
    CHECK(second.feed(b, std::int64_t{10}).fetch(z).scalar() == 14);
    CHECK(second.fetch(y).scalar() == 4);

    for (int round = 0; round < 20; ++round) {
      auto run = session.partial_run(feeds(a, b), fetches(y, z));
      const auto value = [](std::int64_t v) { return Tensor<std::int64_t>(v); };
      std::atomic<int> num_fed = 0, num_fetched = 0;
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
          try {
            run.feed(a, value(round));
            ++num_fed;
          } catch (const Error&) {  // another was quicker
          }
          try {
            run.feed(b, value(1));
          } catch (const Error&) {
          }
        });
      }
      threads.clear();
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
          try {
            if (run.fetch(z).scalar() == 2 * round + 1) ++num_fetched;
          } catch (const Error&) {
          }
        });
      }
      threads.clear();
      CHECK(num_fed == 1);
      CHECK(num_fetched == 1);
    }
  }
}

TEST_CASE("a fetch waits in its thread for what another thread feeds into the queue that it depends on") {
  Graph graph;
  FifoQueue<float> queue(graph, {.capacity = 3});
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const auto put = queue.enqueue(x);
  const auto sum = queue.dequeue() + y;
  for (const SessionOptions& options : partial_sessions()) {
    if (options.num_cpu_devices > 1) continue;
    Session session(graph, options);
    auto run = session.partial_run(feeds(y), fetches(sum));
    run.feed(y, 1.0f);
    auto value = std::async(std::launch::async, [&] { return run.fetch(sum).scalar(); });
    session.run({{x, 41.0f}}, put);
    CHECK(value.get() == 42);
  }
}

TEST_CASE("the trace of a partial run tells of the whole step") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  const auto y = a + 1.0f, z = y * b;
  Session session(graph);
  RunOptions traced;
  traced.trace = true;
  RunMetadata metadata;
  auto run = session.partial_run(traced, &metadata, feeds(a, b), fetches(y, z));
  run.feed(a, 1.0f).fetch(y);
  run.feed(b, 1.0f).fetch(z);
  CHECK(metadata.stats.nodes.size() == 2);
}

TEST_CASE("a partial run is the last that holds its session, and lets go of it at any time") {
  for (const SessionOptions& options : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto y = a + b;
    for (int round = 0; round < 30; ++round) {
      auto run = std::make_optional(Session(graph, options).partial_run(feeds(a, b), fetches(y)));
      run->feed(a, 1.0f);
      if (round % 3 == 0) run->feed(b, 1.0f);
      if (round % 3 == 1) CHECK(run->feed(b, 1.0f).fetch(y).scalar() == 2);
      run.reset();
    }
  }
}

TEST_CASE("metadata may go as soon as the partial run has gone") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  const auto y = a + b;
  Session session(graph);
  RunOptions traced;
  traced.trace = true;
  for (int round = 0; round < 30; ++round) {
    RunMetadata metadata;
    auto run = session.partial_run(traced, &metadata, feeds(a, b), fetches(y));
    run.feed(a, 1.0f);
    if (round % 2 == 0) run.feed(b, 1.0f);
  }
}

TEST_CASE("what is fed is there for other threads, also of a run with nothing to compute") {
  Graph graph;
  const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
  Session session(graph);
  for (int round = 0; round < 200; ++round) {
    auto run = session.partial_run(feeds(a, b), fetches(a, b));
    std::atomic<int> num_right = 0;
    {
      std::jthread fetcher([&] {
        for (const auto& edge : {a, b}) {
          for (bool is_there = false; !is_there;) {
            try {
              num_right += run.fetch(edge).scalar() == 3 ? 1 : 0;
              is_there = true;
            } catch (const Error&) {  // it has not been fed yet
            }
          }
        }
      });
      run.feed(a, 3.0f).feed(b, 3.0f);
    }
    REQUIRE(num_right == 2);
  }
}

TEST_CASE("a fetch that does not wait is told what has been made, what was wrong, and the end of the step") {
  for (SessionOptions options : partial_sessions()) {
    options.ops = standard_ops + ops<PartialFailing>;
    Graph graph;
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto y = apply<PartialFailing>(a) + 1.0f, z = y + b;
    Session session(graph, options);
    struct Told {
      Status status;
      std::vector<AnyTensor> tensors;
    };
    const auto fetch = [](PartialRun& run, std::vector<AnyOutput> edges, bool until_end = false) {
      auto promise = std::make_shared<std::promise<Told>>();
      run.fetch_async_erased({}, edges, until_end, [promise](Status status, std::vector<AnyTensor> tensors) {
        promise->set_value({std::move(status), std::move(tensors)});
      });
      return promise->get_future();
    };
    auto run = session.partial_run(feeds(a, b), fetches(a, y, z));
    auto end = fetch(run, {}, true);
    CHECK(fetch(run, {y}).get().status.code() == Code::invalid_argument);
    CHECK(fetch(run, {b}).get().status.code() == Code::invalid_argument);
    run.feed(a, 1.0f);
    CHECK(fetch(run, {y}).get().tensors.at(0).as<float>().scalar() == 2);
    CHECK(fetch(run, {y}).get().status.code() == Code::invalid_argument);
    CHECK(fetch(run, {a}).get().tensors.at(0).as<float>().scalar() == 1);
    run.feed(b, 1.0f);
    CHECK(fetch(run, {z}, true).get().tensors.at(0).as<float>().scalar() == 3);
    CHECK(end.get().status.ok());
    CHECK(fetch(run, {}).get().status.ok());

    auto failing = session.partial_run(feeds(a, b), fetches(y, z));
    end = fetch(failing, {}, true);
    failing.feed(a, -1.0f);
    CHECK(end.get().status.code() == status_of([&] { failing.finish(); }).code());
    auto stopped = std::make_optional(session.partial_run(feeds(a, b), fetches(z)));
    end = fetch(*stopped, {}, true);
    stopped.reset();
    CHECK(end.get().status.code() == Code::cancelled);
    PartialRun moved = std::move(run);
    CHECK(fetch(run, {z}).get().status.code() == Code::failed_precondition);
  }
}

TEST_CASE("of a call that feeds and fetches nothing is taken where something is wrong", "[session]") {
  for (SessionOptions options : partial_sessions()) {
    Graph graph;
    const auto a = placeholder<float>(graph, {}), b = placeholder<float>(graph, {});
    const auto y = a + 1.0f, z = y + b;
    Session session(graph, options);
    auto run = session.partial_run(feeds(a, b), fetches(a, y, z));
    using Values = std::vector<std::pair<AnyOutput, AnyTensor>>;
    const AnyTensor one = Tensor<float>(1.0f), two = Tensor<float>(2.0f), wide = Tensor<float>({2});
    const auto fed = [&](Values values) { return status_of([&] { run.feed_erased(std::move(values)); }); };
    const auto fetched = [&](Values values, std::vector<AnyOutput> edges) {
      std::promise<std::pair<Status, std::vector<AnyTensor>>> promise;
      run.fetch_async_erased(std::move(values), edges, false, [&](Status status, std::vector<AnyTensor> tensors) {
        promise.set_value({std::move(status), std::move(tensors)});
      });
      return promise.get_future().get();
    };
    for (const Values& wrong : {Values{{a, one}, {y, one}}, Values{{a, one}, {b, wide}}, Values{{a, one}, {a, one}}}) {
      CHECK(fed(wrong).code() == Code::invalid_argument);
      CHECK(fetched(wrong, {y}).first.code() == Code::invalid_argument);
    }
    CHECK(mentions(fetched({{a, one}}, {z}).first, "needs"));  // b
    CHECK(fetched({{a, one}}, {b}).first.code() == Code::invalid_argument);
    CHECK(fetched({{a, one}}, {y, y}).first.code() == Code::invalid_argument);
    const auto [status, tensors] = fetched({{a, two}}, {a, y});
    REQUIRE(status.ok());
    CHECK(tensors.at(0).as<float>().scalar() == 2);
    CHECK(tensors.at(1).as<float>().scalar() == 3);
    CHECK(fetched({{b, one}, {a, one}}, {}).first.code() == Code::invalid_argument);
    CHECK(fetched({{b, one}}, {y}).first.code() == Code::invalid_argument);  // taken before
    CHECK(fed({{b, two}}).ok());
    CHECK(run.fetch(z).scalar() == 5);
  }
}
