// Kernels that go through memory, in one thread: against memcpy of as many bytes, and elementary functions against
// Eigen's packet math with this program's flags. usage: bench_kernels_memory [THREADS]
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>
#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include "array.hpp"
#include "interleaved.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace dflow;
using namespace dflow::cpu;

bench::Clock clock_used = bench::Clock::thread;

bench::Array<float> numbers(std::int64_t n) {
  bench::Array<float> x(n);
  for (std::int64_t i = 0; i < n; ++i) x.data()[i] = static_cast<float>(i * 7919 % 1000) * 0.004f - 2.0f;
  return x;
}

/// A copy that moves as many bytes, half of them in and half out.
struct Copy {
  bench::Array<std::uint8_t> from, to;
  explicit Copy(std::int64_t moved_bytes) : from(moved_bytes / 2), to(moved_bytes / 2) {}
  void operator()() { std::memcpy(to.data(), from.data(), static_cast<std::size_t>(from.size())); }
};

template <class F>
void against_copy(const char* name, std::int64_t moved_floats, F&& ours) {
  Copy copy(moved_floats * 4);
  bench::print(name, "memcpy", bench::compare(ours, copy, clock_used));
}

void elementary(std::int64_t n) {
  const auto x = numbers(n);
  auto y = x;
  const Eigen::Map<const Eigen::ArrayXf> in(x.data(), n);
  Eigen::Map<Eigen::ArrayXf> out(y.data(), n);
  const auto row = [&](const char* name, auto&& ours, auto&& peer) {
    bench::print(std::string(name) + " " + std::to_string(n), "eigen", bench::compare(ours, peer, clock_used));
  };
  row(
      "exp", [&] { vexp(n, x.data(), y.data()); }, [&] { out = in.exp(); });
  row(
      "log", [&] { vlog(n, x.data(), y.data()); }, [&] { out = in.log(); });
  row(
      "tanh", [&] { vtanh(n, x.data(), y.data()); }, [&] { out = in.tanh(); });
  row(
      "sigmoid", [&] { vsigmoid(n, x.data(), y.data()); }, [&] { out = in.logistic(); });
  row(
      "sin", [&] { vsin(n, x.data(), y.data()); }, [&] { out = in.sin(); });
  bench::Array<double> dx(n), dy(n);
  std::copy_n(x.data(), n, dx.data());
  const Eigen::Map<const Eigen::ArrayXd> din(dx.data(), n);
  Eigen::Map<Eigen::ArrayXd> dout(dy.data(), n);
  row(
      "exp double", [&] { vexp(n, dx.data(), dy.data()); }, [&] { dout = din.exp(); });
  row(
      "tanh double", [&] { vtanh(n, dx.data(), dy.data()); }, [&] { dout = din.tanh(); });
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (threads > 1) clock_used = bench::Clock::wall;
  InlinePool serial;
  WorkStealingPool parallel(threads);
  ThreadPool& pool = threads == 1 ? static_cast<ThreadPool&>(serial) : parallel;
  KernelCache cache;
  const CpuOptions options{.cache = &cache};

  if (threads == 1) elementary(100'000);

  for (std::int64_t n : {std::int64_t{1'000'000}, std::int64_t{10'000'000}}) {
    auto x = numbers(n), y = x;
    const UpdateArguments descent{
        .dtype = DType::float32, .variables = {y.data()}, .gradient = x.data(), .factors = {1e-9}, .element_ns = 0.3};
    against_copy(("gradient descent " + std::to_string(n)).c_str(), 3 * n,
                 [&] { apply_update<dflow::detail::GradientDescentRule>(pool, n, descent, options); });
    auto m = x, v = x;
    const UpdateArguments adam{.dtype = DType::float32,
                               .variables = {y.data(), m.data(), v.data()},
                               .gradient = x.data(),
                               .factors = {0.5, 0.5, 1e-9, 0.9, 0.999, 1e-7}};
    against_copy(("Adam " + std::to_string(n)).c_str(), 7 * n,
                 [&] { apply_update<dflow::detail::AdamRule>(pool, n, adam, options); });
  }
  {
    const std::int64_t rows = 4096, cols = 1024;
    const auto x = numbers(rows * cols);
    std::vector<float> y(4096);
    std::vector<std::int64_t> at(4096);
    against_copy("row sums [4096,1024]", rows * cols, [&] {
      reduce_sum(pool, {rows, cols, 1}, x.data(), y.data(), options);
    });
    against_copy("column sums [4096,1024]", rows * cols, [&] {
      reduce_sum(pool, {1, rows, cols}, x.data(), y.data(), options);
    });
    against_copy("row maxima [4096,1024]", rows * cols, [&] {
      reduce_max(pool, {rows, cols, 1}, x.data(), y.data(), options);
    });
    against_copy("row argmax [4096,1024]", rows * cols, [&] {
      argmax(pool, {rows, cols, 1}, x.data(), at.data(), options);
    });
    against_copy("column argmax [4096,1024]", rows * cols, [&] {
      argmax(pool, {1, rows, cols}, x.data(), at.data(), options);
    });
    against_copy("sum of [131072,32] over rows", rows * cols, [&] {
      reduce_sum(pool, {1, 131072, 32}, x.data(), y.data(), options);
    });
    auto z = x;
    against_copy("bias add [4096,1024]", 2 * rows * cols,
                 [&] { bias_add(pool, rows, cols, x.data(), y.data(), z.data(), false, options); });
    against_copy("bias add [131072,32]", 2 * rows * cols,
                 [&] { bias_add(pool, 131072, 32, x.data(), y.data(), z.data(), false, options); });
    against_copy("transpose [4096,1024]", 2 * rows * cols, [&] {
      const std::int64_t dims[] = {rows, cols};
      const std::int32_t permutation[] = {1, 0};
      transpose(pool, 4, dims, permutation, x.data(), z.data(), options);
    });
    against_copy("NHWC to NCHW [32,56,41,56]", 2 * rows * cols, [&] {
      const std::int64_t dims[] = {32, 56, 41, 56};
      const std::int32_t permutation[] = {0, 3, 1, 2};
      transpose(pool, 4, dims, permutation, x.data(), z.data(), options);
    });
  }
  {
    const std::int64_t rows = 512, cols = 32000;
    const auto x = numbers(rows * cols);
    auto y = x;
    std::vector<float> loss(512);
    std::vector<std::int32_t> labels(512);
    for (std::int64_t i = 0; i < rows; ++i) labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * 31);
    against_copy("sparse cross entropy [512,32000]", 2 * rows * cols, [&] {
      if (sparse_softmax_cross_entropy(pool, rows, cols, x.data(), labels.data(), loss.data(), y.data(), options) >= 0)
        std::abort();
    });
    const auto dense = numbers(rows * cols);
    against_copy("dense cross entropy [512,32000]", 3 * rows * cols, [&] {
      softmax_cross_entropy(pool, rows, cols, x.data(), dense.data(), loss.data(), y.data(), options);
    });
    against_copy("softmax [512,32000]", 2 * rows * cols,
                 [&] { softmax(pool, rows, cols, x.data(), y.data(), options); });
    against_copy("softmax [128,10] (copy of 1e4)", 20'000,
                 [&] { softmax(pool, 128, 10, x.data(), y.data(), options); });
  }
  {
    const std::int64_t rows = 32 * 56 * 56, channels = 64;
    const auto x = numbers(rows * channels), dy = numbers(rows * channels);
    auto y = x;
    std::vector<float> scale(64, 1.0f), offset(64), mean(64), variance(64), d_scale(64), d_offset(64);
    against_copy("batch norm forward [32,56,56,64]", 3 * rows * channels, [&] {
      batch_norm_training(pool, rows, channels, x.data(), scale.data(), offset.data(), 1e-3f, y.data(), mean.data(),
                          variance.data(), options);
    });
    against_copy("batch norm backward [32,56,56,64]", 5 * rows * channels, [&] {
      batch_norm_training_backward(pool, rows, channels, x.data(), dy.data(), scale.data(), mean.data(),
                                   variance.data(), 1e-3f, y.data(), d_scale.data(), d_offset.data(), options);
    });
    const Pool2dShape s{.batch = 32,
                        .in_rows = 56,
                        .in_cols = 56,
                        .channels = 64,
                        .window_rows = 2,
                        .window_cols = 2,
                        .stride_rows = 2,
                        .stride_cols = 2};
    against_copy("max pool 2x2 [32,56,56,64]", rows * channels * 5 / 4,
                 [&] { max_pool(pool, s, x.data(), y.data(), options); });
    bench::Array<float> dx(x.size());
    against_copy("max pool 2x2 gradient", rows * channels * 9 / 4,
                 [&] { max_pool_backward(pool, s, x.data(), dy.data(), dx.data(), options); });
    Pool2dShape wide = s;
    wide.window_rows = wide.window_cols = 3;
    wide.pad_bottom = wide.pad_right = 1;
    against_copy("max pool 3x3 stride 2", rows * channels * 5 / 4,
                 [&] { max_pool(pool, wide, x.data(), y.data(), options); });
    against_copy("average pool 2x2", rows * channels * 5 / 4, [&] { avg_pool(pool, s, x.data(), y.data(), options); });
  }
  {
    const std::int64_t limit = 1'000'000, count = 4096;
    const auto table = numbers(limit * 64);
    bench::Array<float> rows(count * 64);
    auto to = table;
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < count; ++i) indices.push_back(i * 7919 * 131 % limit);
    against_copy("gather 4096 of 1e6 x 64", 2 * count * 64, [&] {
      if (gather_rows(pool, 1, limit, count, 256, table.data(), indices.data(), rows.data(), options) >= 0)
        std::abort();
    });
    against_copy("scatter add 4096 of 1e6 x 64", 3 * count * 64, [&] {
      if (scatter_rows(pool, ScatterOp::add, limit, count, std::int64_t{64}, indices.data(), rows.data(), to.data(),
                       options) >= 0)
        std::abort();
    });
    std::vector<std::int64_t> unique(indices.size());
    bench::Array<float> summed(rows.size());
    against_copy("sum of duplicate rows 4096 x 16", 2 * count * 16, [&] {
      if (sum_duplicate_rows(pool, count, std::int64_t{16}, indices.data(), rows.data(), unique.data(), summed.data(),
                             options) < 0)
        std::abort();
    });
  }
}
