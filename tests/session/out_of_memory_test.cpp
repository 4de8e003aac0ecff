// Every allocation of a step fails in turn, in the thread that runs it: it ends with ResourceExhausted, and the session
// goes on.
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

namespace df = dflow;

namespace {

/// Calls `step` with its n-th allocation failing, for every n, and `check` after each; returns how many there are.
template <class Step, class Check>
int fail_each_of_step(const Step& step, const Check& check) {
  for (int n = 1;; ++n) {
    INFO("allocation " << n << " fails");
    std::optional<df::Code> code;
    failing_new::fails_in = n;
    try {
      step();
    } catch (const df::Error& error) {
      code = error.code();
    } catch (const std::bad_alloc&) {
      code = df::Code::resource_exhausted;
    }
    const bool has_failed = std::exchange(failing_new::fails_in, 0) == 0;
    CHECK(code.value_or(df::Code::resource_exhausted) == df::Code::resource_exhausted);
    check();
    if (!has_failed) return n - 1;
  }
}

}  // namespace

TEST_CASE("a loop of frames that waits for a queue ends, whichever of its allocations fails") {
  df::Graph graph;
  const df::FifoQueue<float> queue(graph, {.capacity = 3, .shapes = {df::PartialShape{}}});
  const auto put = queue.enqueue(df::constant(graph, 1.0f));
  const auto take = queue.dequeue();
  const auto size = queue.size();
  const auto last = std::get<1>(df::while_loop([](auto i, auto) { return i < 4; },
                                               [&](auto i, auto v) {
                                                 const auto after = graph.control_dependencies({queue.enqueue(v)});
                                                 return std::tuple{i + 1, queue.dequeue() + 1.0f};
                                               },
                                               std::tuple{df::constant(graph, 0), df::constant(graph, 0.5f)}));
  df::SessionOptions options{.num_threads = 1};
  options.passes.lower_control_flow = true;
  df::Session session(graph, options);
  const auto run = [&] { return session.run(last).scalar(); };
  const auto is_empty = [&] {
    while (session.run(size).scalar() > 0) session.run(take);
    return run() == 4.5f;
  };
  session.run(put);
  REQUIRE(is_empty());
  CHECK(fail_each_of_step(run, [&] { REQUIRE(is_empty()); }) > 50);
}

TEST_CASE("a partial run ends, also that of which somebody lets go, whichever of its allocations fails") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {}), b = df::placeholder<float>(graph, {});
  const auto sum = a * 2.0f + 1.0f, product = sum * b;
  df::Session session(graph, {.num_threads = 1});
  const auto run = [&](bool to_its_end) {
    df::PartialRun of = session.partial_run(df::feeds(a, b), df::fetches(sum, product));
    const float first = of.feed(a, df::Tensor<float>(3.0f)).fetch(sum).scalar();
    return to_its_end ? first + of.feed(b, df::Tensor<float>(4.0f)).fetch(product).scalar() : first;
  };
  for (const bool to_its_end : {true, false}) {
    run(to_its_end);
    CHECK(fail_each_of_step([&] { run(to_its_end); }, [&] { REQUIRE(run(true) == 35); }) > 10);
  }
}
