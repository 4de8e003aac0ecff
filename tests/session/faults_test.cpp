#include <dflow/session/session.hpp>

#include <dflow/core/memory/pool_allocator.hpp>
#include <dflow/dflow.hpp>
#include <dflow/op/import.hpp>
#include <dflow/ops/send_recv/send_recv.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// A kernel that does one thing wrong.
enum class Wrong : std::int64_t {
  nothing,
  leaves_unset,
  sets_type,
  sets_shape,
  reads_as_double,
  allocates_double,
  forwards_as_double,
  throws,
  throws_other,
};
struct Faulty : Op<"Faulty", TypeList<float>> {
  struct Attrs {
    std::int64_t wrong = 0;
  };
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
enum class WrongLater : std::int64_t {
  nothing,
  leaves_unset,
  sets_type,
  drops,
  drops_elsewhere,
  ends_twice,
  throws_before,
  throws_after_end,
  throws_after_storing,
  fails,
};
struct FaultyLater : Op<"FaultyLater", TypeList<float>> {
  struct Attrs {
    std::int64_t wrong = 0;
  };
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
/// Made with an exception.
struct Unmakeable : Op<"Unmakeable", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
/// Its first run ends, waits for its second one to begin, and throws.
struct EndsThenThrows : Op<"EndsThenThrows", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto faults_ops = standard_ops + ops<Faulty, FaultyLater, Unmakeable, EndsThenThrows>;
std::atomic<int> runs_of_ends_then_throws{0};

/// Ops of a user with names of the library's ops.
struct OtherRelu : Op<"Relu", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
struct OtherConst : Op<"Const", TypeList<float>> {
  struct Attrs {
    std::int64_t n = 7;
  };
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};

std::mutex stored_mutex;
std::vector<AsyncKernel::Done> stored;
std::vector<CancellationToken> stored_steps;  ///< cancelled when the exception is known

}  // namespace

template <>
struct dflow::Kernel<Faulty, Cpu, float> {
  Faulty::Attrs attrs;
  void operator()(KernelContext& context) const {
    switch (static_cast<Wrong>(attrs.wrong)) {
      case Wrong::nothing:
        return context.set_output(0, context.input(0));
      case Wrong::leaves_unset:
        return;
      case Wrong::sets_type:
        return context.set_output(0, Tensor<double>(1.0));
      case Wrong::sets_shape:
        return context.set_output(0, Tensor<float>({5}, {1, 2, 3, 4, 5}));
      case Wrong::reads_as_double:
        return context.set_output(0, context.input<double>(0));
      case Wrong::allocates_double:
        context.allocate_output<double>(0, {}) = Tensor<double>(1.0);
        return;
      case Wrong::forwards_as_double:
        context.forward_or_allocate<double>(0, 0, {}) = Tensor<double>(1.0);
        return;
      case Wrong::throws:
        throw Error(Status::data_loss("mine"));
      case Wrong::throws_other:
        throw std::runtime_error("of another kind");
    }
  }
};

template <>
struct dflow::Kernel<FaultyLater, Cpu, float> {
  FaultyLater::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    const auto wrong = static_cast<WrongLater>(attrs.wrong);
    if (wrong == WrongLater::sets_type) context.set_output(0, Tensor<double>(1.0));
    if (wrong != WrongLater::sets_type && wrong != WrongLater::leaves_unset) context.set_output(0, context.input(0));
    switch (wrong) {
      case WrongLater::nothing:
      case WrongLater::leaves_unset:
      case WrongLater::sets_type:
        return done(Status());
      case WrongLater::drops:
        return;
      case WrongLater::drops_elsewhere:
        return context.pool().schedule([lost = std::move(done)]() mutable { lost = nullptr; });
      case WrongLater::ends_twice:
        done(Status());
        return done(Status::data_loss("too late"));
      case WrongLater::throws_before:
        throw Error(Status::data_loss("mine"));
      case WrongLater::throws_after_end:
        done(Status());
        throw Error(Status::data_loss("mine"));
      case WrongLater::throws_after_storing: {
        const std::lock_guard lock(stored_mutex);
        stored.push_back(std::move(done));
        stored_steps.push_back(context.step().cancellation);
        throw Error(Status::data_loss("mine"));
      }
      case WrongLater::fails:
        return done(Status::data_loss("mine"));
    }
  }
};

template <>
struct dflow::Kernel<EndsThenThrows, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    done(Status());
    if (++runs_of_ends_then_throws == 1) throw Error(Status::data_loss("after its end"));
  }
};

template <>
struct dflow::Kernel<Unmakeable, Cpu, float> {
  explicit Kernel(const KernelInit&) { throw std::runtime_error("cannot be made"); }
  void operator()(KernelContext&) const {}
};
template <>
struct dflow::Kernel<OtherRelu, Cpu, float> {
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};
template <>
struct dflow::Kernel<OtherConst, Cpu, float> {
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

TEST_CASE("a kernel that leaves an output unset or of another type is Internal, and named", "[session][faults]") {
  for (const int threads : {1, 2}) {
    for (const InterOp inter_op : {InterOp::sequential, InterOp::parallel}) {
      Graph graph;
      const auto x = placeholder<float>(graph, {});
      Session session(graph, {.ops = faults_ops, .num_threads = threads, .inter_op = inter_op});
      const auto status_with = [&](Wrong wrong) {
        const auto y = apply<Faulty>(x, {.wrong = static_cast<std::int64_t>(wrong)});
        return status_of([&] { session.run({{x, 1.0f}}, y * 2.0f); });
      };
      CHECK(status_with(Wrong::nothing).ok());
      for (const Wrong wrong : {Wrong::leaves_unset, Wrong::sets_type}) {
        const Status status = status_with(wrong);
        CHECK(status.code() == Code::internal);
        CHECK(status.op() == "Faulty");
        CHECK(std::string(status.where().file_name()).find("faults_test") != std::string::npos);
      }
      for (const Wrong wrong : {Wrong::reads_as_double, Wrong::allocates_double, Wrong::forwards_as_double}) {
        const Status status = status_with(wrong);
        CHECK(status.code() == Code::invalid_argument);
        CHECK(status.op() == "Faulty");
        CHECK(status.message().find("float, double was asked for") != std::string::npos);
      }
      CHECK(status_with(Wrong::throws).code() == Code::data_loss);
      CHECK(status_with(Wrong::sets_shape).to_string().find("[5]") != std::string::npos);
      CHECK(status_with(Wrong::throws_other).to_string().find("of another kind") != std::string::npos);
      CHECK(status_with(Wrong::nothing).ok());
    }
  }
}

TEST_CASE("an asynchronous kernel ends its step once, whatever it does with its completion", "[session][faults]") {
  for (const int threads : {1, 2}) {
    for (const int devices : {1, 2}) {
      Graph graph;
      const auto x = placeholder<float>(graph, {});
      Session session(graph, {.ops = faults_ops, .num_threads = threads, .num_cpu_devices = devices});
      const auto status_with = [&](WrongLater wrong) {
        Output<float> y;
        {
          const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
          y = apply<FaultyLater>(x, {.wrong = static_cast<std::int64_t>(wrong)});
        }
        const auto on = graph.device("/cpu:0");
        const Output<float> z = y * 2.0f;
        return status_of([&] { session.run({{x, 1.0f}}, z); });
      };
      CHECK(status_with(WrongLater::nothing).ok());
      CHECK(status_with(WrongLater::leaves_unset).code() == Code::internal);
      CHECK(status_with(WrongLater::sets_type).code() == Code::internal);
      CHECK(status_with(WrongLater::drops).code() == Code::internal);
      CHECK(status_with(WrongLater::drops_elsewhere).code() == Code::internal);
      CHECK(status_with(WrongLater::ends_twice).ok());
      CHECK(status_with(WrongLater::throws_before).code() == Code::data_loss);
      CHECK(status_with(WrongLater::throws_before).op() == "FaultyLater");
      CHECK(status_with(WrongLater::fails).code() == Code::data_loss);
      CHECK(status_with(WrongLater::nothing).ok());
    }
  }
}

TEST_CASE("a kernel that throws after it ended leaves its step one end", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto wrong = static_cast<std::int64_t>(WrongLater::throws_after_end);
  const auto y = apply<FaultyLater>(x, {.wrong = wrong}) * 2.0f;
  Session session(graph, {.ops = faults_ops, .num_threads = 2});
  for (int i = 0; i < 100; ++i) {
    const Code code = code_of([&] { session.run({{x, 1.0f}}, y); });
    if (code != Code::ok && code != Code::data_loss) FAIL("ended with " << code_name(code));
  }
  CHECK(session.run({{x, 1.0f}}, x * 2.0f).scalar() == 2);
}

TEST_CASE("a kernel that throws after its end does not fail the next step", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<EndsThenThrows>(x);
  Session session(graph, {.ops = faults_ops, .num_threads = 1});
  runs_of_ends_then_throws = 0;
  CHECK(code_of([&] { session.run({{x, 1.0f}}, y); }) == Code::data_loss);
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 1);
}

TEST_CASE("a kernel that throws after it has put its completion aside ends when that is called", "[session][faults]") {
  for (const bool drops : {false, true}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    const auto wrong = static_cast<std::int64_t>(WrongLater::throws_after_storing);
    const auto y = apply<FaultyLater>(x, {.wrong = wrong}) * 2.0f;
    Session session(graph, {.ops = faults_ops, .num_threads = 2});
    std::atomic<bool> has_ended{false};
    std::atomic<bool> ended_early{false};
    std::thread helper([&] {
      while (true) {
        std::this_thread::yield();
        const std::lock_guard lock(stored_mutex);
        if (stored.empty() || !stored_steps[0].is_cancelled()) continue;
        ended_early = has_ended.load();
        if (!drops) stored[0](Status());
        stored.clear();
        stored_steps.clear();
        return;
      }
    });
    const Status status = status_of([&] { session.run({{x, 1.0f}}, y); });
    has_ended = true;
    helper.join();
    CHECK(!ended_early);
    // Dropping it in another thread is an error too, and may come first.
    CHECK((status.code() == Code::data_loss || (drops && status.code() == Code::internal)));
  }
}

TEST_CASE("a kernel that cannot be made is an error of its node and spoils no other step", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<Unmakeable>(x, {}, {.name = "never"});
  Session session(graph, {.ops = faults_ops});
  for (int i = 0; i < 2; ++i) {
    const Status status = status_of([&] { session.run({{x, 1.0f}}, y); });
    CHECK(status.to_string().find("cannot be made") != std::string::npos);
    CHECK(status.node() == "never");
  }
  CHECK(session.run({{x, 1.0f}}, x * 2.0f).scalar() == 2);
}

TEST_CASE("deadlines: none in practice, passed, and passed long ago", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  Session session(graph);
  const auto step = session.prepare(feeds(x), fetches(y));
  CHECK(session.run({.deadline = Duration::max()}, {{x, 1.0f}}, y).scalar() == 2);
  CHECK(step.run({.deadline = Duration::max()}, nullptr, 1.0f).scalar() == 2);
  for (const Duration passed : {Duration::zero(), Duration(-1), Duration::min()}) {
    CHECK(code_of([&] { session.run({.deadline = passed}, {{x, 1.0f}}, y); }) == Code::deadline_exceeded);
    CHECK(code_of([&] { step.run({.deadline = passed}, nullptr, 1.0f); }) == Code::deadline_exceeded);
  }
}

TEST_CASE("compiling counts towards the deadline", "[session][faults]") {
  class TickingClock final : public Clock {
   public:
    time_point now() const override { return clock_.now() + std::chrono::seconds(ticks_++); }
    wall_time_point wall_now() const override { return clock_.wall_now(); }
    TimerId schedule_at(time_point time, UniqueFunction<void()> callback) override {
      return clock_.schedule_at(time, std::move(callback));
    }
    bool cancel(TimerId id) override { return clock_.cancel(id); }

   private:
    VirtualClock clock_;
    mutable std::atomic<int> ticks_{0};  // each look takes a second
  };
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Output<float> y = x;
  for (int i = 0; i < 5000; ++i) y = y * 2.0f;
  Session session(graph, {.clock = std::make_shared<TickingClock>()});
  CHECK(code_of([&] {
          session.run({.deadline = std::chrono::seconds(2)}, {{x, 1.0f}}, y);
        }) == Code::deadline_exceeded);
  CHECK(code_of([&] { session.run({{x, 1.0f}}, y); }) == Code::ok);
}

TEST_CASE("a fed placeholder may be a target, alone and in a group", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto all = group({x.operation()});
  Session session(graph);
  CHECK(code_of([&] { session.run({{x, 1.0f}}, x.operation()); }) == Code::ok);
  CHECK(code_of([&] { session.run({{x, 1.0f}}, all); }) == Code::ok);
  CHECK(code_of([&] { session.run(x.operation()); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run(all); }) == Code::invalid_argument);
}

TEST_CASE("handles can neither be fetched nor fed", "[session][faults]") {
  Graph graph;
  const Variable<float> v(graph, Tensor<float>::zeros({2}), {.name = "v"});
  Session session(graph);
  session.run(initialize_variables(graph));
  const Status fetched = status_of([&] { session.run(v.handle()); });
  CHECK(fetched.code() == Code::invalid_argument);
  CHECK(fetched.node() == "v");
  const Feed feed(v.handle(), AnyTensor(Tensor<float>(1.0f)));
  CHECK(code_of([&] { session.run({feed}, v); }) == Code::invalid_argument);
  CHECK(session.run(v)(0) == 0);
}

TEST_CASE("a Recv that nothing sends to is refused, not waited for", "[session][faults]") {
  const std::string here = "/job:localhost/replica:0/task:0/device:CPU:0";
  GraphDef def;
  NodeDef& node = def.nodes.emplace_back();
  node.name = "r";
  node.op = "_Recv";
  node.types = {{"tensor_type", DType::float32}};
  node.attrs = {{"tensor_name", std::string("a")}, {"send_device", here}, {"recv_device", here}};
  const Graph graph = import_graph(def, standard_op_table());
  Session session(graph);
  const Status status = status_of([&] { session.run(graph.output("r")); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.node() == "r");
}

TEST_CASE("a Send and a Recv of one step meet", "[session][faults]") {
  const std::string here = "/job:localhost/replica:0/task:0/device:CPU:0";
  Graph graph;
  const Send::Attrs send{.tensor_name = "a", .send_device = here, .recv_device = here};
  Recv::Attrs recv;
  recv.tensor_name = "a";
  recv.send_device = recv.recv_device = here;
  const Operation sent = build<Send>({constant(graph, 3.0f)}, send);
  const AnyOutput received = build<Recv>(*graph.store(), {}, recv, {}, type_args<float>());
  for (const int threads : {1, 2}) {
    Session session(graph, {.num_threads = threads});
    std::vector<AnyTensor> results(1);
    for (int i = 0; i < 3; ++i) {
      session.run_erased({}, nullptr, {}, {&received, 1}, {&sent, 1}, results);
      CHECK(results[0].span<float>()[0] == 3);
    }
    CHECK(code_of([&] { session.run_erased({}, nullptr, {}, {&received, 1}, {}, results); }) == Code::invalid_argument);
  }
}

TEST_CASE("an op of one's own with the name of one of the library's is refused", "[session][faults]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  CHECK(code_of([&] { Session(graph, {.ops = standard_ops + ops<OtherRelu>}); }) == Code::invalid_argument);
  CHECK(code_of([&] { Session(graph, {.ops = standard_ops + ops<OtherConst>}); }) == Code::invalid_argument);
  // A table without the library's op allows it, but a graph of the library's ops does not mean this op.
  Session session(graph, {.ops = ops<OtherRelu>});
  CHECK(code_of([&] { session.run({{x, -1.0f}}, relu(x)); }) == Code::invalid_argument);
  CHECK(session.run({{x, -1.0f}}, apply<OtherRelu>(x)).scalar() == -1);
}

TEST_CASE("options that make no session are InvalidArgument", "[session][faults]") {
  Graph graph;
  const auto code_with = [&](SessionOptions options) {
    return code_of([&] { const Session session(graph, std::move(options)); });
  };
  const auto device = [](std::string name) {
    return std::make_shared<CpuDevice>(CpuDeviceOptions{.name = std::move(name)});
  };
  const std::string first = "/job:localhost/replica:0/task:0/device:CPU:0",
                    second = "/job:localhost/replica:0/task:0/device:CPU:1";
  CHECK(code_with({.num_threads = -1}) == Code::invalid_argument);
  CHECK(code_with({.num_cpu_devices = 0}) == Code::invalid_argument);
  CHECK(code_with({.devices = {nullptr}}) == Code::invalid_argument);
  CHECK(code_with({.devices = {device(first), nullptr}}) == Code::invalid_argument);
  CHECK(code_with({.devices = {device(first), device(first)}}) == Code::invalid_argument);
  CHECK(code_with({.devices = {device("/cpu:0")}}) == Code::invalid_argument);
  CHECK(code_with({.devices = {device(first), device(second)}}) == Code::ok);
  const auto with_devices = [&](SessionOptions options) {
    options.devices = {device(first)};
    return code_with(std::move(options));
  };
  CHECK(with_devices({.allocator = std::make_shared<PoolAllocator>(default_cpu_allocator())}) ==
        Code::invalid_argument);
  CHECK(with_devices({.memory_limit_bytes = 1 << 20}) == Code::invalid_argument);
  CHECK(with_devices({.reproducible = true}) == Code::invalid_argument);
  CHECK(with_devices({.num_cpu_devices = 3}) == Code::invalid_argument);
  CHECK(with_devices({.draw_seed = [] { return std::uint64_t{1}; }}) == Code::invalid_argument);
  CHECK(with_devices({.num_threads = 2}) == Code::ok);
}

TEST_CASE("a device of one's own without a pool is refused, a CpuDevice has one", "[session][faults]") {
  class Bare final : public Device {
   public:
    Bare() {
      context_.name = "/job:localhost/replica:0/task:0/device:CPU:0";
      context_.type = "CPU";
    }
  };
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = x * 2.0f;
  CHECK(code_of([&] { Session(graph, {.devices = {std::make_shared<Bare>()}}); }) == Code::invalid_argument);
  Session session(graph, {.devices = {std::make_shared<CpuDevice>(CpuDeviceOptions{})}});
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 2);
}

TEST_CASE("a prepared step that has outlived its session and graph still says what is wrong with a feed",
          "[session][faults]") {
  auto graph = std::make_unique<Graph>();
  const auto x = placeholder<float>(*graph, {dynamic, 2}, {.name = "a_name_too_long_for_a_small_string"});
  const auto y = reduce_sum(x * x);
  auto session = std::make_unique<Session>(*graph);
  const auto step = session->prepare(feeds(x), fetches(y));
  session.reset();
  graph.reset();
  CHECK(step(Tensor<float>({1, 2}, {1, 2})).scalar() == 5.0f);
  const std::string text = error_of([&] { step(Tensor<float>({3}, {1, 2, 3})); });
  CHECK(contains(text, "'a_name_too_long_for_a_small_string' carries float [?,2], but is fed float [3]"));
}

TEST_CASE("a prepared step outlives a move of its session and the session", "[session][faults]") {
  for (const int devices : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Output<float> y;
    {
      const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
      y = x * 2.0f;
    }
    auto first = std::make_unique<Session>(graph, SessionOptions{.num_threads = 2, .num_cpu_devices = devices});
    const auto step = first->prepare(feeds(x), fetches(y));
    Session second = std::move(*first);
    CHECK(step(2.0f).scalar() == 4);
    CHECK(code_of([&] { first->run({{x, 1.0f}}, y); }) == Code::failed_precondition);
    CHECK(code_of([&] { first->placement_log(); }) == Code::failed_precondition);
    first = nullptr;
    CHECK(step(3.0f).scalar() == 6);
    CHECK(second.run({{x, 1.0f}}, y).scalar() == 2);
    second = Session(graph);
    CHECK(step(4.0f).scalar() == 8);
  }
}

TEST_CASE("a session of a graph that was moved from is refused", "[session][faults]") {
  Graph graph;
  const Graph moved = std::move(graph);
  CHECK(code_of([&] { Session session(graph); }) == Code::failed_precondition);
}

TEST_CASE("a constant that is fed, and waited for, is read as it is fed", "[session][faults]") {
  Graph graph;
  const auto c = constant(graph, 1.0f);
  const auto y = c * 2.0f;
  Operation after;
  {
    const auto scope = graph.control_dependencies({c.operation()});
    after = no_op(graph);
  }
  Session plain(graph, {.passes = PassOptions::none()}), session(graph);
  CHECK(plain.run({{c, 5.0f}}, y, after).scalar() == 10);
  CHECK(session.run({{c, 5.0f}}, y).scalar() == 10);
  CHECK(session.run({{c, 5.0f}}, y, after).scalar() == 10);
  CHECK(session.run({{c, 5.0f}}, y, c.operation()).scalar() == 10);
}
