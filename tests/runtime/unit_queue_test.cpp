#include <dflow/runtime/unit_queue.hpp>

#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/dflow.hpp>
#include <dflow/runtime/step.hpp>
#include <dflow/state/variable_state.hpp>

#include "catch.hpp"
#include "planned.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

/// A number of threads meet here. A thread that has waited too long for the others goes on.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  /// False if not all have come.
  bool arrive() {
    std::unique_lock lock(mutex_);
    if (--missing_ == 0) changed_.notify_all();
    has_failed_ |= !changed_.wait_for(lock, std::chrono::seconds(5), [this] { return missing_ <= 0 || has_failed_; });
    changed_.notify_all();
    return !has_failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  bool has_failed_ = false;
};

/// Gives 1 if enough kernels of this op run beside it to fill the places of the meeting, else 0.
struct Together : Op<"Together", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
Meeting* meeting = nullptr;

/// Notes its number when it begins, and is done at once.
struct Begins : Op<"Begins", TypeList<float>> {
  struct Attrs {
    std::int32_t number = 0;
  };
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
std::vector<std::int32_t>* begun = nullptr;

}  // namespace

template <>
struct dflow::Kernel<Together, Cpu, float> {
  double cost_ns(const KernelInit&) const { return 1e6; }
  void operator()(KernelContext& context) const {
    context.set_output(0, Tensor<float>(meeting->arrive() ? 1.0f : 0.0f));
  }
};

template <>
struct dflow::Kernel<Begins, Cpu, float> {
  Begins::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    begun->push_back(attrs.number);
    context.set_output(0, context.input(0));
    done({});
  }
};

TEST_CASE("asynchronous units begin in the order in which they became ready", "[runtime][unit_queue]") {
  const testing::Planned planned(standard_ops + ops<Begins>, std::make_shared<InlinePool>());
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  constexpr int count = 40;
  std::vector<Output<float>> firsts, seconds;
  for (int i = 0; i < count; ++i) firsts.push_back(apply<Begins>(x, {.number = i}));
  for (int i = 0; i < count; ++i) seconds.push_back(apply<Begins>(firsts[i] + x, {.number = count + i}));
  const auto plan = planned.plan(graph, {x}, {add_n(seconds)}, false, InterOp::automatic);
  const auto step = std::make_shared<Step>(plan);
  const auto queue = std::make_shared<UnitQueue>(*planned.pool, plan->units().size());
  std::vector<std::int32_t> expected(2 * count);
  std::iota(expected.begin(), expected.end(), 0);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int32_t> order;
    begun = &order;
    step->feed(0, Tensor<float>(1.0f));
    Status ended = Status::internal("it has not ended");
    step->start(round == 1 ? planned.queue : queue, [&](const Status& status) { ended = status; });
    CHECK(ended.ok());
    CHECK(std::vector(order.begin(), order.begin() + count) == std::vector(expected.begin(), expected.begin() + count));
    std::sort(order.begin(), order.end());
    CHECK(order == expected);
  }
}

TEST_CASE("expensive units that are ready run at once, as many as the pool has threads", "[runtime][unit_queue]") {
  for (const int width : {2, 4}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    std::vector<Output<float>> parts;
    for (int i = 0; i < width; ++i) parts.push_back(apply<Together>(x));
    const auto y = add_n(parts);
    Session session(graph, {.ops = standard_ops + ops<Together>, .num_threads = width, .inter_op = InterOp::parallel});
    const auto step = session.prepare(feeds(x), fetches(y));
    for (int round = 0; round < 200; ++round) {
      Meeting here(width);
      meeting = &here;
      const float met = step(1.0f).scalar();
      if (met != static_cast<float>(width)) FAIL("round " << round << ": " << met << " of " << width << " met");
    }
  }
}

// A worker that looks for work when several tasks come is relied on; it wakes one other, and that one nobody.
TEST_CASE("a burst of tasks wakes as many workers, also while one is awake", "[runtime][unit_queue]") {
  WorkStealingPool pool(4, {.spin = std::chrono::milliseconds(1)});
  for (int round = 0; round < 500; ++round) {
    std::promise<void> one_awake;
    pool.schedule([&] { one_awake.set_value(); });
    one_awake.get_future().wait();
    Meeting here(4);
    std::atomic<int> met{0};
    std::vector<std::promise<void>> left(4);
    for (std::promise<void>& gone : left) {
      pool.schedule([&] {
        met += here.arrive() ? 1 : 0;
        gone.set_value();
      });
    }
    for (std::promise<void>& gone : left) gone.get_future().wait();
    if (met != 4) FAIL("round " << round << ": " << met << " of 4 tasks ran side by side");
  }
}

TEST_CASE("a wake-up counts before, while and after a thread waits", "[runtime][unit_queue]") {
  WorkStealingPool pool(2);
  const auto queue = std::make_shared<UnitQueue>(pool);
  queue->push({});
  queue->wake();
  queue->run_until_woken();
  for (int i = 0; i < 1000; ++i) {
    std::thread waker([&] { queue->wake(); });
    queue->run_until_woken();
    waker.join();
  }
}

namespace {

/// Runs a plan that is fed a number, from this thread. Whether it ended in this thread.
bool ends_here(const Plan& plan, const std::shared_ptr<Step>& step, const std::shared_ptr<UnitQueue>& queue) {
  std::promise<std::thread::id> ended;
  for (std::size_t i = 0; i < plan.feed_slots().size(); ++i) step->feed(i, Tensor<float>(1.0f));
  step->start(queue, [&](const Status&) { ended.set_value(std::this_thread::get_id()); });
  return ended.get_future().get() == std::this_thread::get_id();
}

}  // namespace

TEST_CASE("brief units run in the thread that brings them, where the queue is told so", "[runtime][unit_queue]") {
  const testing::Planned planned(standard_ops + ops<Together>, std::make_shared<WorkStealingPool>(2));
  Meeting alone(1);
  meeting = &alone;
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto many = placeholder<float>(graph, {100'000});
  const auto any = placeholder<float>(graph, {dynamic});
  const auto plan_of = [&](const AnyOutput& fed, const AnyOutput& fetched) {
    return planned.plan(graph, {fed}, {fetched}, false, InterOp::automatic);
  };
  const auto brief = plan_of(x, identity(x + x));
  const auto in_place = std::make_shared<UnitQueue>(*planned.pool, 8, true);
  CHECK(ends_here(*brief, std::make_shared<Step>(brief), in_place));
  CHECK_FALSE(ends_here(*brief, std::make_shared<Step>(brief), planned.queue));

  // The cost is unknown: a user's kernel may do anything, a large tensor may take long, an unknown shape may be large.
  for (const auto& [fed, fetched] :
       {std::pair<AnyOutput, AnyOutput>(x, apply<Together>(x)), std::pair<AnyOutput, AnyOutput>(many, many + many),
        std::pair<AnyOutput, AnyOutput>(any, any + any)}) {
    const auto plan = plan_of(fed, fetched);
    for (const UnitId unit : plan->units().indices()) CHECK_FALSE(plan->units()[unit].is_brief);
    if (fed == x) CHECK_FALSE(ends_here(*plan, std::make_shared<Step>(plan), in_place));
  }
}

TEST_CASE("a brief unit that would wait for an update of its variable goes on in the pool", "[runtime][unit_queue]") {
  const testing::Planned planned(standard_ops, std::make_shared<WorkStealingPool>(2));
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const Variable<float> w(graph, Tensor<float>(1.0f), VariableOptions{.name = "w"});
  const Operation add = w.assign_add(x);
  const auto scope = graph.control_dependencies({add});
  const auto plan = planned.plan(graph, {x}, {identity(x + x)}, false, InterOp::automatic);
  const auto in_place = std::make_shared<UnitQueue>(*planned.pool, 8, true);
  const auto state = planned.device->context().resources->container("")->lookup<VariableState>("w");
  state->assign(Tensor<float>(1.0f));
  CHECK(ends_here(*plan, std::make_shared<Step>(plan), in_place));
  CHECK(state->read().span<float>()[0] == 2);
  // This very thread holds the update: a wait for it here would never end.
  std::optional<VariableUpdate> held;
  held.emplace(std::initializer_list<VariableState*>{state.get()});
  const auto step = std::make_shared<Step>(plan);
  std::promise<Status> ended;
  for (std::size_t i = 0; i < plan->feed_slots().size(); ++i) step->feed(i, Tensor<float>(1.0f));
  step->start(in_place, [&](const Status& status) { ended.set_value(status); });
  std::future<Status> end = ended.get_future();
  CHECK(end.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  held.reset();
  CHECK(end.get().ok());
  CHECK(state->read().span<float>()[0] == 3);
}

TEST_CASE("a thread that must not be kept is kept by no variable", "[runtime][unit_queue]") {
  VariableState small("small", DType::float32, Shape{2}), other("other", DType::float32, Shape{2});
  VariableState large("large", DType::float32, PartialShape{dynamic});
  for (VariableState* const state : {&small, &other}) state->assign(Tensor<float>({2}, {1, 2}));
  large.assign(Tensor<float>::full({1'000'000}, 1.0f));
  {
    const detail::NoWaiting no_waiting;
    CHECK(small.read().span<float>()[1] == 2);
    CHECK_THROWS_AS(large.read(), detail::WouldWait);
    CHECK_THROWS_AS(VariableUpdate({&small, &large}), detail::WouldWait);
    VariableUpdate({&small, &other});  // the lock that was taken first is released again
    std::optional<VariableUpdate> held;
    held.emplace(std::initializer_list<VariableState*>{&other});
    CHECK_THROWS_AS(VariableUpdate({&small, &other}), detail::WouldWait);
    CHECK_THROWS_AS(other.assign(Tensor<float>({2}, {3, 4})), detail::WouldWait);
    held->writable(0, default_cpu_allocator());
    CHECK_THROWS_AS(other.read(), detail::WouldWait);
    held.reset();
    small.assign(Tensor<float>({2}, {5, 6}));
  }
  CHECK(small.read().span<float>()[1] == 6);
  CHECK(other.read().span<float>()[1] == 2);
  CHECK(large.read().span<float>()[1] == 1);
}
