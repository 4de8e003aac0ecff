// Convolutions: ours against oneDNN's primitives called directly in the layout they like best, which leaves the
// reorders that a graph of NHWC tensors needs to us. usage: bench_kernels_conv2d [THREADS] [builtin|onednn|automatic]
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>

#include "array.hpp"
#include "interleaved.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(DFLOW_HAS_ONEDNN)
#include <dlfcn.h>
#include <dnnl.hpp>
#endif

namespace {

using namespace dflow;
using namespace dflow::cpu;

struct Layer {
  const char* name;
  std::int64_t batch, in, out, side, filter, stride, pad;
};

/// Long enough for a turn to begin with the caches full of the other side and yet to measure its own.
constexpr double turn_ms = 40;

constexpr Layer layers[] = {
    {"LeNet 5x5 1-32 28", 64, 1, 32, 28, 5, 1, 2}, {"LeNet 5x5 32-64 14", 64, 32, 64, 14, 5, 1, 2},
    {"3x3 16-16 32", 64, 16, 16, 32, 3, 1, 1},     {"3x3 32-32 16", 64, 32, 32, 16, 3, 1, 1},
    {"3x3 64-64 8", 64, 64, 64, 8, 3, 1, 1},       {"3x3s2 16-32 32", 64, 16, 32, 32, 3, 2, 1},
    {"1x1s2 16-32 32", 64, 16, 32, 32, 1, 2, 0},   {"3x3 64-64 56", 4, 64, 64, 56, 3, 1, 1},
    {"1x1 256-64 56", 4, 256, 64, 56, 1, 1, 0},    {"1x1 64-256 56", 4, 64, 256, 56, 1, 1, 0},
    {"3x3 256-256 14", 4, 256, 256, 14, 3, 1, 1},  {"7x7s2 3-64 224", 4, 3, 64, 224, 7, 2, 3},
};

bench::Array<float> numbers(std::int64_t n) {
  bench::Array<float> x(n);
  for (std::int64_t i = 0; i < n; ++i) x.data()[i] = static_cast<float>(i * 7919 % 13) * 0.01f;
  return x;
}

#if defined(DFLOW_HAS_ONEDNN)
/// The three primitives of a layer on memory in their own layouts.
class Peer {
 public:
  explicit Peer(const Layer& l) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    arrays_.reserve(9);
    using namespace dnnl;
    const std::int64_t side = (l.side + 2 * l.pad - l.filter) / l.stride + 1;
    const auto any = [](memory::dims d) { return memory::desc(d, memory::data_type::f32, memory::format_tag::any); };
    const memory::desc x = any({l.batch, l.in, l.side, l.side}), w = any({l.out, l.in, l.filter, l.filter}),
                       y = any({l.batch, l.out, side, side});
    const memory::dims strides{l.stride, l.stride}, pads{l.pad, l.pad};
    const convolution_forward::primitive_desc forward(
        {prop_kind::forward_training, algorithm::convolution_direct, x, w, y, strides, pads, pads}, engine_);
    const convolution_backward_data::primitive_desc input({algorithm::convolution_direct, x, w, y, strides, pads, pads},
                                                          engine_, forward);
    const convolution_backward_weights::primitive_desc filter(
        {algorithm::convolution_direct, x, w, y, strides, pads, pads}, engine_, forward);
    primitives_[0] = convolution_forward(forward);
    args_[0] = {{DNNL_ARG_SRC, make(forward.src_desc())},
                {DNNL_ARG_WEIGHTS, make(forward.weights_desc())},
                {DNNL_ARG_DST, make(forward.dst_desc())}};
    primitives_[1] = convolution_backward_data(input);
    args_[1] = {{DNNL_ARG_DIFF_DST, make(input.diff_dst_desc())},
                {DNNL_ARG_WEIGHTS, make(input.weights_desc())},
                {DNNL_ARG_DIFF_SRC, make(input.diff_src_desc())}};
    primitives_[2] = convolution_backward_weights(filter);
    args_[2] = {{DNNL_ARG_SRC, make(filter.src_desc())},
                {DNNL_ARG_DIFF_DST, make(filter.diff_dst_desc())},
                {DNNL_ARG_DIFF_WEIGHTS, make(filter.diff_weights_desc())}};
  }
  void run(int which) {
    primitives_[which].execute(stream_, args_[which]);
    stream_.wait();
  }

 private:
  dnnl::memory make(const dnnl::memory::desc& desc) {
    arrays_.push_back(numbers(static_cast<std::int64_t>(desc.get_size() / sizeof(float))));
    return dnnl::memory(desc, engine_, arrays_.back().data());
  }
  std::vector<bench::Array<float>> arrays_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitives_[3];
  std::unordered_map<int, dnnl::memory> args_[3];
};
#endif

void run(ThreadPool& pool, const Layer& l, const CpuOptions& options) {
  const Conv2dShape s{.batch = l.batch,
                      .in_rows = l.side,
                      .in_cols = l.side,
                      .in_channels = l.in,
                      .filter_rows = l.filter,
                      .filter_cols = l.filter,
                      .out_channels = l.out,
                      .stride_rows = l.stride,
                      .stride_cols = l.stride,
                      .pad_top = l.pad,
                      .pad_left = l.pad,
                      .pad_bottom = l.pad,
                      .pad_right = l.pad};
  auto x = numbers(s.batch * s.in_rows * s.in_cols * s.in_channels);
  auto w = numbers(s.filter_rows * s.filter_cols * s.in_channels * s.out_channels);
  auto y = numbers(s.batch * s.out_rows() * s.out_cols() * s.out_channels);
  const double flops =
      2.0 * static_cast<double>(y.size()) * static_cast<double>(s.filter_rows * s.filter_cols * s.in_channels);
  const auto clock = pool.num_threads() == 1 ? bench::Clock::thread : bench::Clock::wall;
  const auto row = [&](const char* what, int which, auto&& ours) {
#if defined(DFLOW_HAS_ONEDNN)
    Peer peer(l);
    const auto c = bench::compare(
        ours, [&] { peer.run(which); }, clock, 7, turn_ms);
    bench::print(
        std::string(l.name) + " " + what + " " + std::to_string(static_cast<int>(flops / c.ours_ns)) + " GFLOP/s",
        "onednn", c);
#else
    ours();
    std::printf("%s %s %.1f GFLOP/s\n", l.name, what, flops / bench::time_ns(ours, 3, clock));
    static_cast<void>(which);
#endif
  };
  row("forward", 0, [&] { conv2d(pool, s, x.data(), w.data(), y.data(), {}, options); });
  row("d input", 1, [&] { conv2d_backward_input(pool, s, w.data(), y.data(), x.data(), options); });
  row("d filter", 2, [&] { conv2d_backward_filter(pool, s, x.data(), y.data(), w.data(), options); });
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  KernelCache cache;
  CpuOptions options{.cache = &cache};
  if (argc > 2 && std::strcmp(argv[2], "builtin") == 0) options.backend = CpuBackend::builtin;
  if (argc > 2 && std::strcmp(argv[2], "onednn") == 0) options.backend = CpuBackend::onednn;
#if defined(DFLOW_HAS_ONEDNN)
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
#endif
  InlinePool serial;
  WorkStealingPool parallel(threads);
  ThreadPool& pool = threads == 1 ? static_cast<ThreadPool&>(serial) : parallel;
  for (const Layer& l : layers) run(pool, l, options);
}
