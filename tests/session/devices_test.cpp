#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<CpuDevice> cpu_device(int number, std::string task = "/job:localhost/replica:0/task:0") {
  return std::make_shared<CpuDevice>(CpuDeviceOptions{.name = str_cat(task, "/device:CPU:", number)});
}

/// Counts up at each run, per node and session.
struct Count : Op<"Count", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};

/// Ends in a task of the pool.
struct Later : Op<"Later", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
  static constexpr bool is_stateful = true;
};
constexpr auto devices_ops = standard_ops + ops<Count, Later>;

}  // namespace

template <>
struct dflow::Kernel<Later, Cpu, float> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.pool().schedule([&context, done = std::move(done)]() mutable {
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      context.set_output(0, context.input(0));
      done(Status());
    });
  }
};

template <>
struct dflow::Kernel<Count, Cpu, float> {
  static constexpr bool keeps_state = true;
  mutable std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);
  void operator()(KernelContext& context) const { context.set_output(0, Tensor<float>(static_cast<float>(++*count))); }
};

TEST_CASE("a tensor goes to several devices in one step and in later ones", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic}, {.name = "x"});
  std::array<Output<float>, 4> y;
  for (int d = 0; d < 4; ++d) {
    const auto on = graph.device(str_cat("/cpu:", d));
    y[static_cast<std::size_t>(d)] = d == 0 ? x * 2.0f : y[0] + static_cast<float>(d);
  }
  const Tensor<float> in({2}, {1, 2});
  for (const int threads : {1, 4}) {
    for (const bool together_first : {true, false}) {
      Session session(graph, {.num_threads = threads, .num_cpu_devices = 4});
      const auto together = [&] {
        const auto [a, b, c] = session.run({{x, in}}, y[1], y[2], y[3]);
        CHECK(a(1) == 5);
        CHECK(b(1) == 6);
        CHECK(c(1) == 7);
      };
      if (together_first) together();
      for (int round = 0; round < 2; ++round) {
        for (std::size_t d = 1; d < 4; ++d) CHECK(session.run({{x, in}}, y[d])(1) == 4 + static_cast<float>(d));
      }
      together();
    }
  }
}

TEST_CASE("control edges between devices are kept", "[session][devices]") {
  for (const int devices : {1, 3}) {
    Graph graph;
    const Variable<float> v(graph, constant(graph, 0.0f), {.name = "v"});
    const auto on_device = [&](int d) { return graph.device(str_cat("/cpu:", d % devices)); };
    const auto source = random_uniform<float>(graph, {});
    Operation last = v.assign(constant(graph, 1.0f));
    for (int i = 0; i < 12; ++i) {
      Output<float> elsewhere;
      {
        const auto on = on_device(i);
        const auto after = graph.control_dependencies({last});
        elsewhere = identity(source);
      }
      const auto after = graph.control_dependencies({elsewhere.operation()});
      last = v.assign(v.read() * 2.0f);
    }
    Output<float> read;
    {
      const auto after = graph.control_dependencies({last});
      read = v.read();
    }
    for (const int threads : {1, 3}) {
      Session session(graph, {.num_threads = threads, .num_cpu_devices = devices, .inter_op = InterOp::parallel});
      for (int i = 0; i < 20; ++i) CHECK(session.run(read).scalar() == 4096);
    }
  }
}

TEST_CASE("a chain goes to and fro between two devices, however long it is", "[session][devices]") {
  for (const int length : {10, 600, 3000}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {});
    Output<float> y = x;
    for (int i = 0; i < length; ++i) {
      const auto on = graph.device(i % 2 == 0 ? "/cpu:0" : "/cpu:1");
      y = y + 1.0f;
    }
    Session session(graph, {.num_threads = 2, .num_cpu_devices = 2});
    CHECK(session.run(RunOptions{.deadline = std::chrono::seconds(60)}, {{x, 1.0f}}, y).scalar() ==
          static_cast<float>(length + 1));
  }
}

// Constants run no kernel, and a node that waits for a constant waits for nothing.
TEST_CASE("who waits for a constant waits for what the constant was built after", "[session][devices]") {
  for (const int devices : {1, 2}) {
    Graph graph;
    const Variable<float> v(graph, constant(graph, 0.0f), {.name = "v"});
    const Operation assign = v.assign(apply<Later>(constant(graph, 1.0f)));
    Output<float> token, read;
    {
      const auto after = graph.control_dependencies({assign});
      token = constant(graph, 3.0f);
    }
    {
      const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
      const auto after = graph.control_dependencies({token.operation()});
      read = v.read();
    }
    Session session(graph, {.ops = devices_ops, .num_threads = 2, .num_cpu_devices = devices});
    session.run(v.initializer());
    CHECK(session.run(read).scalar() == 1);
  }
}

TEST_CASE("where a variable is does not depend on the step", "[session][devices]") {
  Graph graph;
  const Variable<float> v(graph, constant(graph, 1.0f), {.name = "v"});  // on no device by name
  Operation bump;
  {
    const auto on = graph.device("/cpu:1");
    bump = v.assign_add(constant(graph, 1.0f));
  }
  Session first(graph, {.num_threads = 1, .num_cpu_devices = 2});
  first.run(initialize_variables(graph));
  first.run(bump);
  Session second(graph, {.devices = first.devices()});
  second.run(bump);
  CHECK(second.run(v).scalar() == 3);
  CHECK(first.run(v).scalar() == 3);
  // Nodes that are added later change nothing of it either.
  {
    const auto on = graph.device("/cpu:1");
    static_cast<void>(v.read());
  }
  Session third(graph, {.devices = first.devices()});
  CHECK(third.run(v).scalar() == 3);
}

TEST_CASE("colocation wins over the device scope around it", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {}, {.name = "x"});
  Output<float> a, b;
  {
    const auto on = graph.device("/cpu:1");
    a = x * 2.0f;
  }
  {
    const auto on = graph.device("/cpu:0");
    const auto beside = graph.colocate_with(a);
    b = a + 1.0f;
  }
  Session session(graph, {.num_threads = 1, .num_cpu_devices = 2});
  CHECK(session.run({{x, 1.0f}}, b).scalar() == 3);
  const std::string log = session.placement_log();
  CHECK(log.find(b.node().name + ": Add -> /job:localhost/replica:0/task:0/device:CPU:1") != std::string::npos);
}

TEST_CASE("soft placement keeps job and task, and asks for another type and number", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Output<float> gpu, far;
  {
    const auto on = graph.device("/job:worker/task:1/device:GPU:3");
    gpu = x * 2.0f;
  }
  {
    const auto on = graph.device("/job:ps/task:0/device:CPU:0");
    far = x * 3.0f;
  }
  const std::vector<std::shared_ptr<Device>> devices = {cpu_device(0, "/job:worker/replica:0/task:0"),
                                                        cpu_device(0, "/job:worker/replica:0/task:1")};
  Session soft(graph, {.devices = devices, .soft_placement = true});
  CHECK(soft.run({{x, 1.0f}}, gpu).scalar() == 2);
  CHECK(soft.placement_log().find("Mul -> /job:worker/replica:0/task:1/device:CPU:0") != std::string::npos);
  CHECK(code_of([&] { soft.run({{x, 1.0f}}, far); }) == Code::invalid_argument);
  Session strict(graph, {.devices = devices});
  CHECK(code_of([&] { strict.run({{x, 1.0f}}, gpu); }) == Code::invalid_argument);
  CHECK(strict.run({{x, 1.0f}}, x * 4.0f).scalar() == 4);  // nodes that a step does not need do it no harm
}

TEST_CASE("what was fetched outlives all devices that it came by", "[session][devices]") {
  Tensor<float> made_there, passed_on;
  {
    Graph graph;
    const auto x = placeholder<float>(graph, {dynamic});
    Output<float> made, passed;
    {
      const auto on = graph.device("/cpu:0");
      made = x * 2.0f;
    }
    {
      const auto on = graph.device("/cpu:1");
      passed = identity(made);
    }
    Session session(graph, {.devices = {cpu_device(0), cpu_device(1)}});
    passed_on = session.run({{x, Tensor<float>::full({1000}, 1.0f)}}, passed);
    std::tie(made_there, passed_on) = session.run({{x, Tensor<float>::full({1000}, 1.0f)}}, made, passed);
  }
  CHECK(made_there(999) == 2);
  CHECK(passed_on(999) == 2);
  passed_on(0) = 5;
  CHECK(made_there(0) == 2);
}

TEST_CASE("results share memory with nothing else", "[session][devices]") {
  for (const int devices : {1, 2}) {
    Graph graph;
    const auto x = placeholder<float>(graph, {2}, {.name = "x"});
    const auto plain = constant(graph, Tensor<float>({2}, {5, 6}));
    const auto doubled = plain * 2.0f;
    const Variable<float> w(graph, Tensor<float>({2}, {1, 2}), {.name = "w"});
    Output<float> passed, constant_passed, variable_passed;
    {
      const auto on = graph.device(devices == 2 ? "/cpu:1" : "/cpu:0");
      passed = reshape(identity(x), {2});
      constant_passed = identity(plain);
      variable_passed = identity(w);
    }
    for (const PassOptions passes : {PassOptions(), PassOptions::none()}) {
      Session session(graph, {.num_threads = 1, .num_cpu_devices = devices, .passes = passes});
      session.run(initialize_variables(graph));
      const Tensor<float> in({2}, {1, 2});
      for (int round = 0; round < 3; ++round) {
        auto [a, b, c, d, e, f, g, h, i] =
            session.run({{x, in}}, plain, doubled, w, passed, x, constant_passed, variable_passed, passed, plain);
        float wanted[9][2] = {{5, 6}, {10, 12}, {1, 2}, {1, 2}, {1, 2}, {5, 6}, {1, 2}, {1, 2}, {5, 6}};
        Tensor<float>* const all[] = {&a, &b, &c, &d, &e, &f, &g, &h, &i};
        for (std::size_t t = 0; t < 9; ++t) {
          CHECK((*all[t])(0) == wanted[t][0]);
          (*all[t])(0) = 100 + static_cast<float>(t);
        }
        for (std::size_t t = 0; t < 9; ++t) CHECK((*all[t])(0) == 100 + static_cast<float>(t));
        CHECK(in(0) == 1);
      }
      Session other(graph);
      CHECK(other.run(plain)(0) == 5);
      const auto step = session.prepare(feeds(x), fetches(plain, w, passed));
      std::get<0>(step(in))(0) = 9;
      std::get<1>(step(in))(0) = 9;
      std::get<2>(step(in))(0) = 9;
      CHECK(std::get<0>(step(in))(0) == 5);
      CHECK(std::get<1>(step(in))(0) == 1);
      CHECK(in(0) == 1);
    }
  }
}

TEST_CASE("a kernel's own state is kept across steps, per node and device", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<Count>(x), z = apply<Count>(x);
  Session session(graph, {.ops = devices_ops, .num_cpu_devices = 2});
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 1);
  CHECK(session.run({{x, 1.0f}}, y * 1.0f).scalar() == 2);
  CHECK(std::get<0>(session.run({{x, 1.0f}}, z, y)).scalar() == 1);
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 4);
}

TEST_CASE("an edge that is fed goes to every device that reads it", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Output<float> made, far, near;
  {
    const auto on = graph.device("/cpu:0");
    made = x * 2.0f;
    near = made + 1.0f;
  }
  {
    const auto on = graph.device("/cpu:1");
    far = made + 2.0f;
  }
  Session session(graph, {.num_threads = 2, .num_cpu_devices = 2});
  const auto [a, b, c] = session.run({{made, 10.0f}}, near, far, made);
  CHECK(a.scalar() == 11);
  CHECK(b.scalar() == 12);
  CHECK(c.scalar() == 10);
  CHECK(session.run({{x, 1.0f}}, far).scalar() == 4);
  // The fed edge's node still runs if an operation is asked to wait for it, and then needs its own inputs.
  CHECK(code_of([&] { session.run({{made, 10.0f}}, far, made.operation()); }) == Code::invalid_argument);
  const auto [d] = std::tuple(session.run({{made, 10.0f}, {x, 1.0f}}, far, made.operation()));
  CHECK(d.scalar() == 12);
}

TEST_CASE("tables that cannot send say what to add to them", "[session][devices]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  Output<float> y;
  {
    const auto on = graph.device("/cpu:0");
    y = relu(x);
  }
  {
    const auto on = graph.device("/cpu:1");
    y = relu(y);
  }
  constexpr auto few = ops<Placeholder, Const, Relu>;
  Session session(graph, {.ops = few, .num_cpu_devices = 2});
  std::string message;
  try {
    session.run({{x, 1.0f}}, y);
  } catch (const Error& error) {
    CHECK(error.code() == Code::not_found);
    message = error.what();
  }
  CHECK(message.find("df::Send and df::Recv") != std::string::npos);
  Session enough(graph, {.ops = few + ops<Send, Recv>, .num_cpu_devices = 2});
  CHECK(enough.run({{x, 1.0f}}, y).scalar() == 1);
}
