#include <dflow/net/asio.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <asio/use_future.hpp>
#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cluster_harness.hpp"
#include "support/end_when_cancelled.hpp"

#if defined(ASIO_HAS_CO_AWAIT)  // only if Asio knows the compiler's coroutines
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/use_awaitable.hpp>
#endif

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// Ends when the step is cancelled.
struct AsioWaits : df::Op<"AsioWaits", df::TypeList<float>> {
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto asio_ops = df::standard_ops + df::ops<AsioWaits>;

/// The number of these steps that have begun since the program's start.
std::atomic<int> num_waiting = 0;
void await_waiting(int count) {
  for (int seen = num_waiting; seen < count; seen = num_waiting) num_waiting.wait(seen);
}

df::Code code_of_exception(const std::exception_ptr& error) {
  if (error == nullptr) return df::Code::ok;
  try {
    std::rethrow_exception(error);
  } catch (const df::Error& thrown) {
    return thrown.code();
  }
}

template <class Future>
df::Code code_of_future(Future&& future) {
  try {
    static_cast<void>(future.get());
    return df::Code::ok;
  } catch (const df::Error& thrown) {
    return thrown.code();
  }
}

/// A graph with the same steps in this process and on a cluster.
struct Steps {
  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {}, {.name = "x"});
  df::Output<float> y, z, waits;
  df::Variable<float> v{graph, df::Tensor<float>(1.0f), {.name = "v"}};
  df::Operation bump = v.assign_add(x);

  explicit Steps(const std::string& device = "") {
    const auto on = graph.device(device);
    y = x * 2.0f;
    z = y + 1.0f;
    waits = df::apply<AsioWaits>(x);
  }
};

}  // namespace

template <>
struct dflow::Kernel<AsioWaits, df::Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    end_when_cancelled(context, std::move(done));
    ++num_waiting;
    num_waiting.notify_all();
  }
};

namespace {

/// The promises of each token, checked on a session of this process and on a session of a cluster.
void check_tokens(Steps& steps, df::Session& session) {
  using df::Tensor;
  const df::Output<float>&x = steps.x, &y = steps.y, &z = steps.z;
  const df::Operation& bump = steps.bump;
  session.run(df::initialize_variables(steps.graph));

  auto none = session.run_async({{x, 2.0f}}, bump, asio::use_future);
  static_assert(std::is_same_v<decltype(none), std::future<void>>);
  none.get();
  auto one = session.run_async({{x, 2.0f}}, y, asio::use_future);
  static_assert(std::is_same_v<decltype(one), std::future<Tensor<float>>>);
  CHECK(one.get().scalar() == 4);
  auto two = session.run_async({{x, 2.0f}}, y, bump, z, asio::use_future);
  static_assert(std::is_same_v<decltype(two), std::future<std::tuple<Tensor<float>, Tensor<float>>>>);
  const auto [first, second] = two.get();
  CHECK(first.scalar() == 4);
  CHECK(second.scalar() == 5);
  CHECK(session.run_async(steps.v, asio::use_future).get().scalar() == 5);

  const auto step = session.prepare(df::feeds(x), df::fetches(z));
  CHECK(step.run_async(3.0f, asio::use_future).get().scalar() == 7);

#if defined(ASIO_HAS_CO_AWAIT)
  asio::io_context context;
  std::vector<float> values;
  const auto three = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      const auto value = co_await session.run_async({{x, static_cast<float>(i)}}, z, asio::use_awaitable);
      values.push_back(value.scalar());
    }
    co_await session.run_async({{x, 1.0f}}, bump, asio::use_awaitable);
    values.push_back((co_await step.run_async(10.0f, asio::use_awaitable)).scalar());
    const auto [a, b] = co_await session.run_async({{x, 2.0f}}, y, z, asio::use_awaitable);
    values.push_back(a.scalar() + b.scalar());
  };
  auto ended = asio::co_spawn(context, three, asio::use_future);
  context.run();
  ended.get();
  CHECK(values == std::vector<float>{1, 3, 5, 21, 9});

  context.restart();
  float sum = 0;
  const auto at_once = [&]() -> asio::awaitable<void> {
    using namespace asio::experimental::awaitable_operators;
    const auto [a, b] = co_await (session.run_async({{x, 1.0f}}, z, asio::use_awaitable) &&
                                  session.run_async({{x, 2.0f}}, z, asio::use_awaitable));
    sum = a.scalar() + b.scalar();
  };
  ended = asio::co_spawn(context, at_once, asio::use_future);
  context.run();
  ended.get();
  CHECK(sum == 8);
#endif
}

}  // namespace

TEST_CASE("a step takes each completion token of Asio, and returns what run does", "[net][asio]") {
  Steps steps;
  for (const int threads : {1, 2}) {
    df::Session session(steps.graph, {.ops = asio_ops, .num_threads = threads});
    check_tokens(steps, session);
  }
}

TEST_CASE("a step of a cluster takes each completion token of Asio", "[net][asio]") {
  df::net::ServerOptions options;
  options.ops = asio_ops;
  MemoryCluster cluster({{"ps", 1}, {"worker", 1}}, std::move(options));
  Steps steps("/job:ps/task:0");
  df::Session session(steps.graph, {.ops = asio_ops, .target = cluster.server("worker", 0).target()});
  check_tokens(steps, session);

  const int seen = num_waiting;
  asio::cancellation_signal signal;
  std::promise<df::Code> ended;
  session.run_async({{steps.x, 1.0f}}, steps.waits,
                    asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr error, df::Tensor<float>) {
                      ended.set_value(code_of_exception(error));
                    }));
  await_waiting(seen + 1);
  signal.emit(asio::cancellation_type::terminal);
  CHECK(ended.get_future().get() == df::Code::cancelled);
}

TEST_CASE("an operation that is deferred begins when it is called", "[net][asio]") {
  Steps steps;
  df::Session session(steps.graph, {.ops = asio_ops});
  auto operation = session.run_async({{steps.x, 3.0f}}, steps.z, asio::experimental::deferred);
  auto value = std::move(operation)(asio::use_future);
  CHECK(value.get().scalar() == 7);
}

TEST_CASE("a handler runs on its executor, which has work until then", "[net][asio]") {
  Steps steps;
  df::Session session(steps.graph, {.ops = asio_ops});
  asio::io_context context;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 3; ++i) {
    session.run_async(
        {{steps.x, 3.0f}}, steps.z,
        asio::bind_executor(context, [&](std::exception_ptr error, df::Tensor<float> value) {
          threads.push_back(error == nullptr && value.scalar() == 7 ? std::this_thread::get_id() : std::thread::id());
        }));
  }
  session.run_async({{steps.x, 3.0f}}, steps.bump, asio::bind_executor(context, [&](const df::Status& status) {
                      CHECK_FALSE(status.ok());
                      threads.push_back(std::this_thread::get_id());
                    }));
  context.run();
  CHECK(threads == std::vector(4, std::this_thread::get_id()));
}

namespace {

/// Runs each function in a thread of its own; its call returns a while after the function may have begun.
struct LingeringExecutor {
  std::shared_ptr<std::atomic<bool>> is_inside = std::make_shared<std::atomic<bool>>(false);

  template <class F>
  void execute(F f) const {
    is_inside->store(true);
    std::thread([f = std::move(f)]() mutable { std::move(f)(); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    is_inside->store(false);
  }
  LingeringExecutor require(asio::execution::blocking_t::never_t) const { return *this; }
  static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
    return asio::execution::blocking.never;
  }
  friend bool operator==(const LingeringExecutor& a, const LingeringExecutor& b) noexcept {
    return a.is_inside == b.is_inside;
  }
  friend bool operator!=(const LingeringExecutor& a, const LingeringExecutor& b) noexcept { return !(a == b); }
};

}  // namespace

TEST_CASE("a handler may destroy its executor's context: nobody is handing it over any more", "[net][asio]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  df::Session session(graph);
  const LingeringExecutor executor;
  for (int i = 0; i < 3; ++i) {
    std::promise<bool> was_inside;
    session.run_async({{x, df::Tensor<float>(1.0f)}}, y,
                      asio::bind_executor(executor, [&](const df::Status&, const df::Tensor<float>&) {
                        was_inside.set_value(executor.is_inside->load());
                      }));
    CHECK_FALSE(was_inside.get_future().get());
  }
  asio::thread_pool pool(1);
  const auto waiting = asio::require(pool.executor(), asio::execution::blocking.always);
  std::promise<float> result;
  session.run_async({{x, df::Tensor<float>(1.0f)}}, y,
                    asio::bind_executor(waiting, [&](const df::Status&, const df::Tensor<float>& value) {
                      result.set_value(value.span()[0]);
                    }));
  CHECK(result.get_future().get() == 2);
  for (int i = 0; i < 100; ++i) {
    asio::thread_pool passing(1);
    session.run_async({{x, df::Tensor<float>(1.0f)}}, y, asio::bind_executor(passing, asio::use_future)).get();
  }
}

TEST_CASE("errors come as exceptions, and never inside the call", "[net][asio]") {
  Steps steps;
  const auto clock = std::make_shared<df::VirtualClock>();
  df::Session session(steps.graph, {.ops = asio_ops, .clock = clock});
  df::Graph other;
  const auto foreign = df::constant(other, 1.0f);
  CHECK(code_of_future(session.run_async({}, steps.z, asio::use_future)) == df::Code::invalid_argument);
  CHECK(code_of_future(session.run_async({}, foreign, asio::use_future)) == df::Code::invalid_argument);
  CHECK(code_of_future(session.run_async({.deadline = df::Duration::zero()}, {{steps.x, 1.0f}}, steps.z,
                                         asio::use_future)) == df::Code::deadline_exceeded);

#if defined(ASIO_HAS_CO_AWAIT)
  std::vector<df::Code> codes;
  asio::io_context context;
  const auto failing = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      try {
        static_cast<void>(co_await session.run_async(steps.z, asio::use_awaitable));
        codes.push_back(df::Code::ok);
      } catch (const df::Error& error) {
        codes.push_back(error.code());
      }
    }
  };
  auto ended = asio::co_spawn(context, failing, asio::use_future);
  context.run();
  ended.get();
  CHECK(codes == std::vector(3, df::Code::invalid_argument));
#endif

  const int seen = num_waiting;
  auto late =
      session.run_async({.deadline = std::chrono::seconds(1)}, {{steps.x, 1.0f}}, steps.waits, asio::use_future);
  await_waiting(seen + 1);
  clock->advance(std::chrono::seconds(2));
  CHECK(code_of_future(late) == df::Code::deadline_exceeded);

  auto step = session.prepare(df::feeds(steps.x), df::fetches(steps.z));
  const auto moved_step = std::move(step);
  const df::Session moved = std::move(session);
  std::mutex inside;  // a handler that runs inside the call would find it locked by its own thread
  std::promise<df::Code> of_session, of_step;
  {
    const std::lock_guard lock(inside);
    session.run_async(  // NOLINT(bugprone-use-after-move)
        {{steps.x, 1.0f}}, steps.z, asio::bind_executor(asio::system_executor(), [&](std::exception_ptr e, auto) {
          { const std::lock_guard again(inside); }
          of_session.set_value(code_of_exception(e));
        }));
    step.run_async(  // NOLINT(bugprone-use-after-move)
        1.0f, asio::bind_executor(asio::system_executor(), [&](std::exception_ptr e, auto) {
          { const std::lock_guard again(inside); }
          of_step.set_value(code_of_exception(e));
        }));
  }
  CHECK(of_session.get_future().get() == df::Code::failed_precondition);
  CHECK(of_step.get_future().get() == df::Code::failed_precondition);
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_CASE("a step that is awaited needs its session no longer", "[net][asio]") {
  Steps steps;
  asio::io_context context;
  auto session = std::make_unique<df::Session>(steps.graph, df::SessionOptions{.ops = asio_ops});
  std::optional<asio::awaitable<df::Tensor<float>>> later(
      session->run_async({{steps.x, 3.0f}}, steps.z, asio::use_awaitable));
  const int seen = num_waiting;
  std::stop_source stop;
  auto under_way = session->run_async({.stop = stop.get_token()}, {{steps.x, 3.0f}}, steps.waits, asio::use_future);
  await_waiting(seen + 1);
  session = nullptr;
  auto value = asio::co_spawn(context, std::move(*later), asio::use_future);
  context.run();
  CHECK(value.get().scalar() == 7);
  stop.request_stop();
  CHECK(code_of_future(under_way) == df::Code::cancelled);
}
#endif

TEST_CASE("a slot that is cancelled stops the step, and so does the stop token", "[net][asio]") {
  Steps steps;
  df::Session session(steps.graph, {.ops = asio_ops});
  const auto step = session.prepare(df::feeds(steps.x), df::fetches(steps.waits));
  for (int i = 0; i < 6; ++i) {
    asio::io_context context;
    asio::cancellation_signal signal;
    std::stop_source stop;
    df::Code code = df::Code::ok;
    const auto token = asio::bind_cancellation_slot(
        signal.slot(), asio::bind_executor(context, [&](std::exception_ptr error, df::Tensor<float> value) {
          code = code_of_exception(error);
          if (value.is_initialized()) code = df::Code::internal;
        }));
    const int seen = num_waiting;
    if (i % 2 == 0) {
      session.run_async({.stop = stop.get_token()}, {{steps.x, 1.0f}}, steps.waits, token);
    } else {
      step.run_async({.stop = stop.get_token()}, nullptr, 1.0f, token);
    }
    await_waiting(seen + 1);
    signal.emit(asio::cancellation_type::total);  // a step is not undone
    if (i / 2 == 0) signal.emit(asio::cancellation_type::terminal);
    if (i / 2 == 1) signal.emit(asio::cancellation_type::partial);
    if (i / 2 == 2) stop.request_stop();
    context.run();
    CHECK(code == df::Code::cancelled);
    CHECK_FALSE(signal.slot().has_handler());
  }
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_CASE("of two coroutines that race the one that loses is cancelled", "[net][asio]") {
  Steps steps;
  df::Session session(steps.graph, {.ops = asio_ops});
  asio::io_context context;
  std::size_t winner = 9;
  const auto race = [&]() -> asio::awaitable<void> {
    using namespace asio::experimental::awaitable_operators;
    const auto result = co_await (session.run_async({{steps.x, 1.0f}}, steps.waits, asio::use_awaitable) ||
                                  session.run_async({{steps.x, 2.0f}}, steps.z, asio::use_awaitable));
    winner = result.index();
  };
  auto ended = asio::co_spawn(context, race, asio::use_future);
  context.run();
  ended.get();
  CHECK(winner == 1);
}

TEST_CASE("steps of many coroutines run side by side on a pool of threads", "[net][asio]") {
  Steps steps;
  df::Session session(steps.graph, {.ops = asio_ops, .num_threads = 2});
  asio::thread_pool pool(2);
  std::atomic<int> wrong = 0;
  std::vector<std::future<void>> ended;
  for (int k = 0; k < 8; ++k) {
    const auto body = [&, k]() -> asio::awaitable<void> {
      for (int i = 0; i < 50; ++i) {
        const auto at = static_cast<float>(100 * k + i);
        const auto value = co_await session.run_async({{steps.x, at}}, steps.z, asio::use_awaitable);
        wrong += value.scalar() != 2 * at + 1;
      }
    };
    ended.push_back(asio::co_spawn(pool, body, asio::use_future));
  }
  for (auto& end : ended) end.get();
  CHECK(wrong == 0);
}
#endif
