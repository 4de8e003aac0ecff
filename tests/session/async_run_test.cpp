#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/end_when_cancelled.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// Ends when the test says so.
struct Gate : Op<"Gate", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Ends when the step is cancelled, and leaves nothing behind: its registration goes in its own callback.
struct Waits : Op<"Waits", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto async_run_ops = standard_ops + ops<Gate, Waits>;

/// Kernels that have begun, and the gates that end them.
struct Gates {
  std::mutex mutex;
  std::vector<AsyncKernel::Done> waiting;
  std::promise<void> begun;

  void open() {
    std::vector<AsyncKernel::Done> all;
    {
      const std::lock_guard lock(mutex);
      all.swap(waiting);
    }
    for (AsyncKernel::Done& done : all) done(Status());
  }
};
Gates* gates = nullptr;
std::promise<void>* waits_begun = nullptr;

struct WithGates {
  Gates here;
  WithGates() { gates = &here; }
  ~WithGates() { gates = nullptr; }
};

}  // namespace

template <>
struct dflow::Kernel<Gate, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    {
      const std::lock_guard lock(gates->mutex);
      gates->waiting.push_back(std::move(done));
    }
    gates->begun.set_value();
  }
};

template <>
struct dflow::Kernel<Waits, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    end_when_cancelled(context, std::move(done));
    waits_begun->set_value();
  }
};

TEST_CASE("what is wrong with an asynchronous call is delivered, never thrown", "[session][async]") {
  Graph graph, other;
  const auto x = placeholder<float>(graph, {dynamic, 2}, {.name = "x"});
  const auto y = reduce_sum(x);
  const auto foreign = constant(other, 1.0f);
  Session session(graph);
  const auto status_of_run = [&](const RunOptions& options, const std::vector<Feed>& feeds, const AnyOutput& fetch) {
    std::promise<std::pair<Status, std::size_t>> ended;
    session.run_async_erased(options, feeds, {&fetch, 1}, {}, [&](Status status, std::vector<AnyTensor> results) {
      ended.set_value({std::move(status), results.size()});
    });
    const auto [status, num_results] = ended.get_future().get();
    CHECK(num_results == (status.ok() ? 1u : 0u));
    return status.code();
  };
  const Feed good(x, Tensor<float>({1, 2}, {1, 2}));
  CHECK(status_of_run({}, {good}, y) == Code::ok);
  CHECK(status_of_run({}, {}, y) == Code::invalid_argument);
  CHECK(status_of_run({}, {Feed(x, Tensor<float>({3}, {1, 2, 3}))}, y) == Code::invalid_argument);
  CHECK(status_of_run({}, {good, good}, y) == Code::invalid_argument);
  CHECK(status_of_run({}, {good}, foreign) == Code::invalid_argument);
  CHECK(status_of_run({}, {good}, AnyOutput()) == Code::invalid_argument);
  CHECK(status_of_run({.deadline = Duration::zero()}, {good}, y) == Code::deadline_exceeded);
  CHECK(status_of_run({.deadline = Duration::min()}, {good}, y) == Code::deadline_exceeded);
  CHECK(status_of_run({.deadline = Duration::max()}, {good}, y) == Code::ok);
  std::stop_source stop;
  stop.request_stop();
  CHECK(status_of_run({.stop = stop.get_token()}, {good}, y) == Code::cancelled);
}

TEST_CASE("an asynchronous run takes a deadline of a clock, a stop token and a trace", "[session][async]") {
  for (const int threads : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = x * 2.0f;
    const auto z = apply<Gate>(x);
    const auto clock = std::make_shared<VirtualClock>();
    Session session(graph, {.ops = async_run_ops, .num_threads = threads, .clock = clock});
    RunMetadata metadata;
    std::promise<Status> traced;
    session.run_async({.trace = true}, &metadata, {{x, 1.0f}}, y,
                      [&](Status status, const Tensor<float>&) { traced.set_value(std::move(status)); });
    CHECK(traced.get_future().get().ok());
    REQUIRE(metadata.stats.nodes.size() == 1);
    CHECK(metadata.stats.nodes[0].op == "Mul");

    const WithGates opened;
    std::promise<Status> late;
    session.run_async({.deadline = std::chrono::seconds(2)}, {{x, 1.0f}}, z,
                      [&](Status status, const Tensor<float>&) { late.set_value(std::move(status)); });
    gates->begun.get_future().wait();
    clock->advance(std::chrono::seconds(1));
    clock->advance(std::chrono::seconds(1));
    gates->open();
    CHECK(late.get_future().get().code() == Code::deadline_exceeded);
    CHECK(clock->next_deadline() == Clock::never);
  }
}

TEST_CASE("a step that has ended leaves no timer behind", "[session][async]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  const auto clock = std::make_shared<VirtualClock>();
  Session session(graph, {.num_threads = 1, .clock = clock});
  CHECK(session.run({.deadline = std::chrono::hours(1)}, {{x, 1.0f}}, y).scalar() == 2);
  CHECK(clock->next_deadline() == Clock::never);
  CHECK(session.run({.deadline = Duration::max()}, {{x, 1.0f}}, y).scalar() == 2);
}

TEST_CASE("memory that was lent to an asynchronous step is not written and not kept", "[session][async]") {
  for (const int devices : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {4});
    Variable<float> v(graph, Tensor<float>::zeros({4}), {.name = "v"});
    Output<float> negated, passed;
    Operation assign;
    {
      const auto gate = apply<Gate>(constant(graph, 0.0f));
      const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
      const auto after = graph.control_dependencies({gate.operation()});
      assign = v.assign(x);
      negated = -x;
      passed = reshape(identity(x), {2, 2});
    }
    Session session(graph, {.ops = async_run_ops, .num_threads = 2, .num_cpu_devices = devices});
    session.run(initialize_variables(graph));
    const auto lend = [&](std::vector<float>& data, const auto&... what) {
      const WithGates opened;
      std::promise<AnyTensor> ended;
      session.run_async({{x, borrow(data, {4})}}, what..., [&](const Status& status, const auto&... results) {
        CHECK(status.ok());
        AnyTensor last;
        ((last = results), ...);
        ended.set_value(last);
      });
      gates->begun.get_future().wait();
      gates->open();  // the caller's handles to the feed are long gone
      return ended.get_future().get();
    };
    std::vector<float> data{1, 2, 3, 4};
    lend(data, assign);
    data[0] = 777;
    CHECK(session.run(v)(0) == 1);
    data = {1, 2, 3, 4};
    const AnyTensor minus = lend(data, negated);
    CHECK(data == std::vector<float>{1, 2, 3, 4});
    CHECK(minus.span<float>()[0] == -1);
    const AnyTensor through = lend(data, passed);
    data.assign(4, 9.0f);
    CHECK(through.span<float>()[3] == 4);
  }
}

TEST_CASE("a callback may run steps and wait for asynchronous ones", "[session][async]") {
  for (const int threads : {1, 2}) {
    for (const int devices : {1, 2, 3}) {
      Graph graph;
      const auto x = placeholder<float>(graph, {});
      Output<float> y = x;
      for (int i = 0; i < 6; ++i) {
        const auto on = graph.device(str_cat("/cpu:", i % devices));
        y = y * 2.0f;
      }
      Session session(graph, {.num_threads = threads, .num_cpu_devices = devices});
      constexpr int callbacks = 8;
      std::vector<std::promise<float>> sums(callbacks);
      for (std::promise<float>& sum : sums) {
        session.run_async({{x, 1.0f}}, y, [&](const Status&, const Tensor<float>& first) {
          float total = first.scalar();
          for (int i = 0; i < 5; ++i) total += session.run({{x, 1.0f}}, y).scalar();
          std::promise<float> second;
          session.run_async({{x, 1.0f}}, y,
                            [&](const Status&, const Tensor<float>& value) { second.set_value(value.scalar()); });
          sum.set_value(total + second.get_future().get());
        });
      }
      for (std::promise<float>& sum : sums) CHECK(sum.get_future().get() == 7 * 64);
    }
  }
}

TEST_CASE("a step may be run from a task of the pool that it runs on", "[session][async]") {
  for (const int threads : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Output<float> y = x;
    for (int i = 0; i < 4; ++i) {
      const auto on = graph.device(str_cat("/cpu:", i % 2));
      y = y * 2.0f;
    }
    const auto pool = std::make_shared<WorkStealingPool>(threads);
    Session session(graph, {.pool = pool, .num_cpu_devices = 2, .inter_op = InterOp::parallel});
    constexpr int tasks = 6;
    std::vector<std::promise<float>> values(tasks);
    for (std::promise<float>& value : values) {
      pool->schedule([&] { value.set_value(session.run({{x, 1.0f}}, y).scalar()); });
    }
    for (std::promise<float>& value : values) CHECK(value.get_future().get() == 16);
  }
}

TEST_CASE("what a callback throws goes to on_callback_error and the session goes on", "[session][async]") {
  for (const int threads : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = x * 2.0f;
    std::promise<Status> own, foreign;
    SessionOptions options;
    options.num_threads = threads;
    options.on_callback_error = [&](const Status& status) {
      (status.code() == Code::data_loss ? own : foreign).set_value(status);
      throw std::runtime_error("nobody is told of this one");
    };
    Session session(graph, std::move(options));
    session.run_async({{x, 1.0f}}, y,
                      [](const Status&, const Tensor<float>&) { throw Error(Status::data_loss("mine")); });
    session.run_async({{x, 1.0f}}, y, [](const Status&, const Tensor<float>&) { throw std::runtime_error("other"); });
    CHECK(own.get_future().get().message() == "mine");
    CHECK(foreign.get_future().get().to_string().find("other") != std::string::npos);
    CHECK(session.run({{x, 1.0f}}, y).scalar() == 2);
  }
}

TEST_CASE("a callback may let go of the last handle to its session", "[session][async]") {
  for (const int threads : {1, 2}) {
    for (const int devices : {1, 2}) {
      Graph graph;
      const auto x = placeholder<float>(graph, {});
      const auto y = x * 2.0f;
      Output<float> z;
      {
        const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
        z = y + 1.0f;
      }
      auto session =
          std::make_unique<Session>(graph, SessionOptions{.num_threads = threads, .num_cpu_devices = devices});
      std::promise<float> value;
      session->run_async({{x, 1.0f}}, z, [&](const Status&, const Tensor<float>& result) {
        session = nullptr;
        value.set_value(result.scalar());
      });
      CHECK(value.get_future().get() == 3);
    }
  }
}

TEST_CASE("a session may go while its steps are under way", "[session][async]") {
  for (const int threads : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto y = apply<Gate>(x) * 2.0f;
    const WithGates opened;
    auto session = std::make_unique<Session>(graph, SessionOptions{.ops = async_run_ops, .num_threads = threads});
    std::promise<float> value;
    session->run_async({{x, 1.0f}}, y, [&](const Status&, const Tensor<float>& r) { value.set_value(r.scalar()); });
    gates->begun.get_future().wait();
    session = nullptr;
    gates->open();
    CHECK(value.get_future().get() == 2);
  }
}

TEST_CASE("a deadline may end the last step of a session that is gone", "[session][async]") {
  Graph graph;
  const auto y = apply<Waits>(constant(graph, 1.0f));
  std::promise<void> begun;
  waits_begun = &begun;
  const auto clock = std::make_shared<VirtualClock>();
  auto session =
      std::make_unique<Session>(graph, SessionOptions{.ops = async_run_ops, .num_threads = 2, .clock = clock});
  std::promise<Code> code;
  session->run_async({.deadline = std::chrono::seconds(1)}, {}, y,
                     [&](const Status& status, const Tensor<float>&) { code.set_value(status.code()); });
  begun.get_future().wait();
  session = nullptr;
  clock->advance(std::chrono::seconds(1));
  CHECK(code.get_future().get() == Code::deadline_exceeded);
}

TEST_CASE("a kernel that ends in its own cancellation callback may end the step there", "[session][async]") {
  for (const int threads : {1, 2}) {
    for (const bool blocks : {true, false}) {
      Graph graph;
      const auto y = apply<Waits>(constant(graph, 1.0f));
      std::promise<void> begun;
      waits_begun = &begun;
      Session session(graph, {.ops = async_run_ops, .num_threads = threads});
      std::stop_source stop;
      std::promise<Code> code;
      std::thread runner;
      if (blocks) {
        runner = std::thread([&] {
          try {
            session.run({.stop = stop.get_token()}, {}, y);
            code.set_value(Code::ok);
          } catch (const Error& error) {
            code.set_value(error.code());
          }
        });
      } else {
        session.run_async({.stop = stop.get_token()}, {}, y,
                          [&](const Status& status, const Tensor<float>&) { code.set_value(status.code()); });
      }
      begun.get_future().wait();
      stop.request_stop();
      CHECK(code.get_future().get() == Code::cancelled);
      if (blocks) runner.join();
      CHECK(session.run(constant(graph, 3.0f)).scalar() == 3);
    }
  }
}

TEST_CASE("callbacks run where the caller says, and never on the thread that cancels", "[session][async]") {
  Graph graph;
  const auto y = apply<Waits>(constant(graph, 1.0f));
  std::promise<void> begun;
  waits_begun = &begun;
  const auto callbacks = std::make_shared<WorkStealingPool>(1);
  const auto clock = std::make_shared<VirtualClock>();
  Session session(graph, {.ops = async_run_ops, .num_threads = 2, .clock = clock, .callbacks = callbacks});
  std::promise<bool> is_there;
  session.run_async({.deadline = std::chrono::seconds(1)}, {}, y, [&](const Status&, const Tensor<float>&) {
    is_there.set_value(callbacks->current_thread_is_worker());
  });
  begun.get_future().wait();
  clock->advance(std::chrono::seconds(2));
  CHECK(is_there.get_future().get());
}

TEST_CASE("a prepared step that was moved from says so") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Session session(graph);
  auto step = session.prepare(feeds(x), fetches(x * 2.0f));
  const auto moved = std::move(step);
  CHECK(moved(4.0f).scalar() == 8.0f);
  Status status;
  step.run_async(  // NOLINT(bugprone-use-after-move)
      {}, nullptr, 4.0f, [&](const Status& ended, const Tensor<float>&) { status = ended; });
  CHECK(status.code() == Code::failed_precondition);
  try {
    static_cast<void>(step(4.0f));
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.code() == Code::failed_precondition);
    CHECK_THAT(error.what(), Catch::Matchers::Contains("the prepared step was moved from"));
  }
}

TEST_CASE("a prepared step runs asynchronously with options") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<Waits>(x);
  std::promise<float> result;
  std::promise<Code> ended;
  std::promise<void> begun;
  RunMetadata metadata;
  const auto clock = std::make_shared<VirtualClock>();
  {
    Session session(graph, {.ops = async_run_ops, .clock = clock});
    const auto doubled = session.prepare(feeds(x), fetches(x * 2.0f));
    doubled.run_async({.trace = true}, &metadata, 4.0f, [&](const Status& status, const Tensor<float>& value) {
      result.set_value(status.ok() ? value.scalar() : -1.0f);
    });
    waits_begun = &begun;
    const auto waits = session.prepare(feeds(x), fetches(y));
    waits.run_async({.deadline = std::chrono::seconds(1)}, nullptr, 1.0f,
                    [&](const Status& status, const Tensor<float>&) { ended.set_value(status.code()); });
  }
  begun.get_future().wait();
  clock->advance(std::chrono::seconds(2));
  CHECK(result.get_future().get() == 8.0f);
  CHECK_FALSE(metadata.stats.nodes.empty());
  CHECK(ended.get_future().get() == Code::deadline_exceeded);
  waits_begun = nullptr;
}
