// Training steps and kernels on the first GPU; a side of `benchmarks/contest.py gpu`.
// usage: bench_contest_gpu THREADS [tf32]
// Exit status 2 where there is no GPU.
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/cuda/cuda_device.hpp>

#include "training_rows.hpp"

#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

namespace {

using namespace dflow;
using bench::Contestant;

/// Runs the operation that `build` makes of variables that lie on the GPU; the step ends when the GPU is done.
void kernel(Contestant& rows, const char* name, const SessionOptions& options,
            const std::function<Operation(Graph&)>& build) {
  rows.row(name, [=]() -> Contestant::Iteration {
    struct Run {
      Graph graph{{.seed = 1}};
      std::unique_ptr<Session> session;
    };
    auto run = std::make_shared<Run>();
    const auto on = run->graph.device("/gpu:0");
    const Operation what = build(run->graph);
    run->session = std::make_unique<Session>(run->graph, options);
    run->session->run(initialize_variables(run->graph));
    using Step = decltype(run->session->prepare(feeds(), fetches(what)));
    auto step = std::make_shared<Step>(run->session->prepare(feeds(), fetches(what)));
    return [run, step] { (*step)(); };
  });
}

Output<float> normal(Graph& graph, const Shape& shape) {
  return Variable<float>(graph, random_normal<float>(graph, shape));
}
Output<std::int32_t> numbers(Graph& graph, std::int64_t count, std::int32_t below) {
  return Variable<std::int32_t>(graph,
                                random_uniform_int<std::int32_t>(graph, {count}, {.minval = 0, .maxval = below}));
}

void add_kernels(Contestant& rows, const SessionOptions& options) {
  kernel(rows, "product [4096,4096]", options, [](Graph& g) {
    return matmul(normal(g, {4096, 4096}), normal(g, {4096, 4096})).operation();
  });
  kernel(rows, "convolution 3x3 [32,56,56,64] to 64", options, [](Graph& g) {
    return conv2d(normal(g, {32, 56, 56, 64}), normal(g, {3, 3, 64, 64}), {.padding = Padding::same}).operation();
  });
  kernel(rows, "max pool 2x2 [32,56,56,64]", options, [](Graph& g) {
    return max_pool(normal(g, {32, 56, 56, 64}), {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}}).operation();
  });
  kernel(rows, "batch norm [32,56,56,64]", options, [](Graph& g) {
    const auto x = normal(g, {32, 56, 56, 64});
    return fused_batch_norm(x, normal(g, {64}), normal(g, {64})).y.operation();
  });
  kernel(rows, "softmax [512,32000]", options, [](Graph& g) { return softmax(normal(g, {512, 32000})).operation(); });
  kernel(rows, "row sums [4096,1024]", options, [](Graph& g) {
    return reduce_sum(normal(g, {4096, 1024}), {1}).operation();
  });
  kernel(rows, "column sums [4096,1024]", options, [](Graph& g) {
    return reduce_sum(normal(g, {4096, 1024}), {0}).operation();
  });
  kernel(rows, "transpose [4096,4096]", options, [](Graph& g) {
    return transpose(normal(g, {4096, 4096}), {1, 0}).operation();
  });
  kernel(rows, "gather 4096 of [250000,64]", options, [](Graph& g) {
    return gather(normal(g, {250000, 64}), numbers(g, 4096, 250000)).operation();
  });
  kernel(rows, "scatter add 4096 to [250000,64]", options, [](Graph& g) {
    const Variable<float> table(g, random_normal<float>(g, {250000, 64}));
    return table.scatter_add(numbers(g, 4096, 250000), normal(g, {4096, 64}));
  });
  kernel(rows, "addition 10000000", options, [](Graph& g) {
    const auto x = normal(g, {10000000});
    return (x + x).operation();
  });
  kernel(rows, "tanh 10000000", options, [](Graph& g) { return tanh(normal(g, {10000000})).operation(); });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    auto devices = cuda_devices({.allows_tf32 = argc > 2 && std::string_view(argv[2]) == "tf32"});
    devices.push_back(std::make_shared<CpuDevice>(CpuDeviceOptions{}));
    const SessionOptions options{.devices = devices};
    Contestant rows;
    bench::add_trainings(rows, options, false, "/gpu:0");
    add_kernels(rows, options);
    return rows.serve();
  } catch (const Error& error) {
    std::fprintf(stderr, "bench_contest_gpu: %s\n", error.what());
    return 2;
  }
}
