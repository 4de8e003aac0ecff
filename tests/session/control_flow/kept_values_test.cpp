// The gradient of a loop keeps values in no more memory than the loop allows.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/files/scratch_file.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/proof_device.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

constexpr std::int64_t kept_rows = 24;  // 24 x 24 floats: 2304 bytes

df::Tensor<float> kept_input(float scale) {
  df::Tensor<float> x({kept_rows, kept_rows});
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    x.data()[i] = scale * static_cast<float>((i * 37) % 101 - 50) / 101.0f;
  }
  return x;
}

/// h = tanh(h w + 0.1 h). Each iteration keeps its state, its tangent and the values made from both.
df::Output<float> tanh_loop(df::Graph& graph, const df::Output<std::int32_t>& n, const df::Output<float>& w,
                            const df::Output<float>& h, std::int64_t max_kept_bytes) {
  const auto [i, last] = df::while_loop([&](auto i, auto) { return i < n; },
                                        [&](auto i, auto h) {
                                          return std::tuple{i + 1, df::tanh(df::matmul(h, w) + h * 0.1f)};
                                        },
                                        std::tuple{df::constant(graph, 0), h}, {.max_kept_bytes = max_kept_bytes});
  return df::reduce_sum(last * last);
}

/// A loop in a loop. The inner loop has no bound of its own.
df::Output<float> nested_loop(df::Graph& graph, const df::Output<std::int32_t>& n, const df::Output<float>& w,
                              const df::Output<float>& h, std::int64_t max_kept_bytes) {
  const auto inner = [&](const df::Output<float>& from) {
    return std::get<1>(df::while_loop([&](auto i, auto) { return i < 3; },
                                      [&](auto i, auto h) {
                                        return std::tuple{i + 1, df::sin(df::matmul(h, w))};
                                      },
                                      std::tuple{df::constant(graph, 0), from}));
  };
  const auto [i, last] = df::while_loop(
      [&](auto i, auto) { return i < n; },
      [&](auto i, auto h) {
        return std::tuple{i + 1, df::cond(
                                     df::equal(i % 2, 0), [&] { return inner(h); }, [&] { return df::tanh(h); })};
      },
      std::tuple{df::constant(graph, 0), h}, {.max_kept_bytes = max_kept_bytes});
  return df::reduce_sum(last * last);
}

using BuildKept = df::Output<float> (*)(df::Graph&, const df::Output<std::int32_t>&, const df::Output<float>&,
                                        const df::Output<float>&, std::int64_t);

struct KeptProgram {
  explicit KeptProgram(BuildKept build, std::int64_t max_kept_bytes) {
    n = df::placeholder<std::int32_t>(graph, {});
    w = df::placeholder<float>(graph, {kept_rows, kept_rows});
    h = df::placeholder<float>(graph, {kept_rows, kept_rows});
    y = build(graph, n, w, h, max_kept_bytes);
    dw = df::gradients(y, w);
    ddh = df::gradients(df::reduce_sum(dw * dw), h);
  }

  std::vector<df::AnyTensor> run(df::Session& session, std::int32_t iterations) const {
    const auto [of_y, of_dw, of_ddh] =
        session.run({{n, df::Tensor<std::int32_t>(iterations)}, {w, kept_input(0.2f)}, {h, kept_input(1)}}, y, dw, ddh);
    return {of_y, of_dw, of_ddh};
  }

  df::Graph graph;
  df::Output<std::int32_t> n;
  df::Output<float> w, h, y, dw, ddh;
};

df::SessionOptions with_kept_files(const std::shared_ptr<df::FileSystem>& files, df::PassOptions passes = {}) {
  auto device = std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{});
  set_device_files(device->context(), files);
  return {.devices = {device}, .passes = passes};
}

}  // namespace

TEST_CASE("what a loop keeps beyond its bound comes back bit by bit, in both derivatives and every form") {
  const BuildKept build = GENERATE(tanh_loop, nested_loop);
  const df::PassOptions passes = df::testing::each_form();
  const int num_threads = GENERATE(1, 3);
  const KeptProgram unbounded(build, -1);
  df::Session all_in_memory(unbounded.graph, {.num_threads = num_threads, .passes = passes});
  for (const std::int64_t max_kept_bytes : {std::int64_t{0}, std::int64_t{10'000}, std::int64_t{1} << 40}) {
    const KeptProgram bounded(build, max_kept_bytes);
    df::Session session(bounded.graph, {.num_threads = num_threads, .passes = passes});
    for (const std::int32_t iterations : {0, 1, 2, 13}) {
      INFO("bound " << max_kept_bytes << ", iterations " << iterations);
      const auto wanted = unbounded.run(all_in_memory, iterations);
      for (int run = 0; run < 2; ++run) {
        const auto got = bounded.run(session, iterations);
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(df::bitwise_equal(got[i], wanted[i]));
      }
    }
  }
}

TEST_CASE("what loops over rows and recurrent networks keep has a bound too") {
  const auto run = [](std::int64_t max_kept_bytes) {
    df::Graph graph;
    const auto x = df::placeholder<float>(graph, {20, 4, 64});
    const auto zero = df::zeros<float>(graph, {4, 64});
    const auto step = [](auto state, auto row) { return df::tanh(state + row); };
    const auto ys = {
        df::reduce_sum(df::map([](auto row) { return df::sin(row * row); }, x, {.max_kept_bytes = max_kept_bytes})),
        df::reduce_sum(df::foldl(step, x, zero, {.max_kept_bytes = max_kept_bytes})),
        df::reduce_sum(df::foldr(step, x, zero, {.max_kept_bytes = max_kept_bytes})),
        df::reduce_sum(df::scan(step, x, zero, {.max_kept_bytes = max_kept_bytes})),
        df::reduce_sum(std::get<0>(df::dynamic_rnn(df::LstmCell(64, {.kernel_initializer = df::init::constant(0.01)}),
                                                   x, {.time_major = true, .max_kept_bytes = max_kept_bytes})))};
    df::Output<float> sum = df::zeros<float>(graph, {});
    for (const auto& y : ys) sum = sum + y;
    const auto dx = df::gradients(sum, x);
    const auto files = std::make_shared<df::MemoryFileSystem>();
    df::Session session(graph, with_kept_files(files));
    session.run(df::initialize_variables(graph));
    df::Tensor<float> at({20, 4, 64});
    for (std::int64_t i = 0; i < at.num_elements(); ++i) at.data()[i] = static_cast<float>(i % 17 - 8) / 9.0f;
    const df::AnyTensor result = session.run({{x, at}}, dx);
    CHECK(files->is_directory(df::scratch_directory()) == (max_kept_bytes >= 0));
    return result;
  };
  CHECK(df::bitwise_equal(run(2048), run(-1)));
}

TEST_CASE("steps of one session that run at the same time keep their values apart") {
  const KeptProgram program(tanh_loop, 5'000);
  df::Session session(program.graph, {.num_threads = 2});
  const auto wanted = program.run(session, 20);
  std::vector<std::thread> threads;
  std::vector<int> num_equal(3);
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int run = 0; run < 5; ++run) {
        const auto got = program.run(session, 20);
        num_equal[t] += df::bitwise_equal(got[1], wanted[1]) && df::bitwise_equal(got[2], wanted[2]) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_equal == std::vector<int>{5, 5, 5});
}

TEST_CASE("a disk that is full ends the step at the loop, and later steps go on") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const KeptProgram program(tanh_loop, 5'000);
  df::Session session(program.graph, with_kept_files(files));
  const auto wanted = program.run(session, 9);
  CHECK(files->list_directory(df::scratch_directory()).empty());
  for (const std::uint64_t failing : {1, 4, 9}) {
    files->fail_change(failing, df::Status::resource_exhausted("the disk is full"));
    try {
      static_cast<void>(program.run(session, 9));
      FAIL("ran");
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::resource_exhausted);
      CHECK(std::string(error.what()).find("while") != std::string::npos);
      CHECK(std::string(error.what()).find("kept_values_test.cpp") != std::string::npos);
    }
    files->fail_change(0, {});
    CHECK(df::bitwise_equal(program.run(session, 9)[1], wanted[1]));
  }
  CHECK(files->list_directory(df::scratch_directory()).empty());
}

TEST_CASE("a loop without a gradient in the step keeps nothing, whatever its bound") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const KeptProgram program(tanh_loop, 0);
  df::Session session(program.graph, with_kept_files(files));
  static_cast<void>(session.run(
      {{program.n, df::Tensor<std::int32_t>(9)}, {program.w, kept_input(1)}, {program.h, kept_input(1)}}, program.y));
  CHECK_FALSE(files->exists(df::scratch_directory()));
}

TEST_CASE("a bound below nothing is refused where the loop is built") {
  df::Graph graph;
  try {
    static_cast<void>(df::while_loop([](auto i) { return i < 3; }, [](auto i) { return i + 1; }, df::constant(graph, 0),
                                     {.max_kept_bytes = -2}));
    FAIL("built");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::invalid_argument);
    CHECK(std::string(error.what()).find("max_kept_bytes is -2") != std::string::npos);
  }
}

TEST_CASE("a graph that was written and read has the bounds of its loops, and those of their gradients") {
  const KeptProgram program(tanh_loop, 4321);
  const auto count = [](const df::GraphDef& def) {
    std::pair<int, int> loops_and_bounds;
    for (const df::NodeDef& node : def.nodes) {
      if (node.op != "While") continue;
      ++loops_and_bounds.first;
      for (const auto& [name, value] : node.attrs) {
        if (name == "max_kept_bytes" && std::get<std::int64_t>(value) == 4321) ++loops_and_bounds.second;
      }
    }
    return loops_and_bounds;
  };
  const df::GraphDef def = df::to_graph_def(program.graph);
  const auto [num_loops, num_bounded] = count(def);
  CHECK(num_loops >= 3);
  CHECK(num_bounded == num_loops);
  CHECK(count(df::to_graph_def(df::import_graph(def, df::standard_op_table()))) == std::pair(num_loops, num_loops));
}

TEST_CASE("a device with a memory of its own says that it cannot bound what a loop keeps") {
  const auto device = std::make_shared<df::testing::ProofDevice>();
  df::Graph graph;
  df::Output<float> y, dx;
  const auto x = df::placeholder<float>(graph, {64, 64});
  {
    const auto on = graph.device("/device:PROOF:0");
    const auto [i, last] = df::while_loop([&](auto i, auto) { return i < 3; },
                                          [&](auto i, auto h) {
                                            return std::tuple{i + 1, df::tanh(h)};
                                          },
                                          std::tuple{df::constant(graph, 0), x}, {.max_kept_bytes = 0});
    y = last;
    dx = df::gradients(df::reduce_sum(last), x);
  }
  df::Session session(graph, {.devices = {device, std::make_shared<df::CpuDevice>(df::CpuDeviceOptions{})}});
  try {
    static_cast<void>(session.run({{x, df::Tensor<float>::full({64, 64}, 1.0f)}}, dx));
    FAIL("ran");
  } catch (const df::Error& error) {
    INFO(error.what());
    CHECK(error.code() == df::Code::unimplemented);
    CHECK(std::string(error.what()).find("max_kept_bytes") != std::string::npos);
  }
}
