// Kernels that other libraries have too; a side of `benchmarks/contest.py kernels`. Both sides write into memory that
// they were given before, but in rows named "by a step", where each allocates its outputs as it always does.
// usage: bench_contest_kernels THREADS
#include <dflow/dflow.hpp>
#include <dflow/kernels/cpu/elementwise/library_code.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>

#include "contestant.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

namespace {

using namespace dflow;
using namespace dflow::cpu;

/// Memory as tensors have it, shared by the copies of a row's lambda.
template <class T>
struct Numbers {
  std::shared_ptr<Tensor<T>> tensor;
  explicit Numbers(std::int64_t n) : tensor(std::make_shared<Tensor<T>>(Tensor<T>::zeros({n}))) {}
  T* data() const { return tensor->data(); }
};

Numbers<float> zeros(std::int64_t n) { return Numbers<float>(n); }

Numbers<float> normals(std::int64_t n) {
  Numbers<float> x(n);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& value : x.tensor->span()) value = normal(random);
  return x;
}

Numbers<std::int64_t> integers(std::int64_t n, std::int64_t limit) {
  Numbers<std::int64_t> x(n);
  std::mt19937_64 random(1);
  for (auto& value : x.tensor->span()) value = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  return x;
}

struct Steps {
  Graph graph;
  std::unique_ptr<Session> session;
};

constexpr std::int64_t num_pixels = 32 * 56 * 56, channels = 64;
constexpr std::int64_t num_rows = 4096, num_columns = 1024;
constexpr std::int64_t num_labels = 32000, batch = 512;
constexpr std::int64_t table_rows = 250'000, width = 64, num_indices = 4096;

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  InlinePool serial;
  WorkStealingPool parallel(threads);
  ThreadPool& pool = threads == 1 ? static_cast<ThreadPool&>(serial) : parallel;
  KernelCache cache;
  const CpuOptions options{.cache = &cache};
  bench::Contestant rows;

  const auto elementary = [&](const char* name, auto f) {
    rows.row(name, [f] {
      auto x = normals(100'000), y = zeros(100'000);
      return [=] { f(100'000, x.data(), y.data()); };
    });
  };
  elementary("exp 100000", [](std::int64_t n, const float* x, float* y) { vexp(n, x, y); });
  elementary("tanh 100000", [](std::int64_t n, const float* x, float* y) { vtanh(n, x, y); });
  elementary("sigmoid 100000", [](std::int64_t n, const float* x, float* y) { vsigmoid(n, x, y); });

  const auto max_pool_row = [&] {
    auto x = normals(num_pixels * channels), y = zeros(num_pixels * channels / 4);
    const Pool2dShape shape{.batch = 32,
                            .in_rows = 56,
                            .in_cols = 56,
                            .channels = 64,
                            .window_rows = 2,
                            .window_cols = 2,
                            .stride_rows = 2,
                            .stride_cols = 2};
    return [=, &pool] { max_pool(pool, shape, x.data(), y.data(), options); };
  };
  const auto batch_norm_row = [&] {
    auto x = normals(num_pixels * channels), y = zeros(num_pixels * channels), scale = normals(channels),
         offset = normals(channels), mean = zeros(channels), variance = zeros(channels);
    return [=, &pool] {
      batch_norm_training(pool, num_pixels, channels, x.data(), scale.data(), offset.data(), 1e-3f, y.data(),
                          mean.data(), variance.data(), options);
    };
  };
  for (const char* layout : {"", ", peer channels first"}) {
    rows.row(std::string("max pool 2x2 [32,56,56,64]") + layout, max_pool_row);
    rows.row(std::string("batch norm [32,56,56,64]") + layout, batch_norm_row);
  }
  rows.row("softmax cross entropy, both ways [512,32000]", [&] {
    auto x = normals(batch * num_labels), gradient = zeros(batch * num_labels), loss = zeros(batch);
    auto labels = integers(batch, num_labels);
    return [=, &pool] {
      static_cast<void>(sparse_softmax_cross_entropy(pool, batch, num_labels, x.data(), labels.data(), loss.data(),
                                                     gradient.data(), options));
    };
  });
  rows.row("softmax cross entropy, both ways [512,32000], by a step", [threads] {
    auto side = std::make_shared<Steps>();
    const auto logits = placeholder<float>(side->graph, {batch, num_labels});
    const auto labels = placeholder<std::int64_t>(side->graph, {batch});
    // The op computes loss and gradient together.
    const auto done = group({sparse_softmax_cross_entropy(logits, labels).operation()});
    side->session = std::make_unique<Session>(side->graph, SessionOptions{.num_threads = threads});
    using Step = decltype(side->session->prepare(feeds(logits, labels), fetches(done)));
    auto prepared = std::make_shared<Step>(side->session->prepare(feeds(logits, labels), fetches(done)));
    const Tensor<float> x = normals(batch * num_labels).tensor->reshaped({batch, num_labels});
    const Tensor<std::int64_t> y = *integers(batch, num_labels).tensor;
    return [side, prepared, x, y] { (*prepared)(x, y); };
  });
  const auto reduction = [&](const char* name, auto f) {
    rows.row(name, [&pool, options, f] {
      auto x = normals(num_rows * num_columns), y = zeros(num_rows);
      auto at = integers(num_rows, 1);
      return [=, &pool] { f(pool, x.data(), y.data(), at.data(), options); };
    });
  };
  using Positions = std::int64_t*;
  reduction("row sums [4096,1024]", [](auto& p, const float* x, float* y, Positions, const auto& o) {
    reduce_sum(p, {num_rows, num_columns, 1}, x, y, o);
  });
  reduction("column sums [4096,1024]", [](auto& p, const float* x, float* y, Positions, const auto& o) {
    reduce_sum(p, {1, num_rows, num_columns}, x, y, o);
  });
  reduction("row argmax [4096,1024]", [](auto& p, const float* x, float*, Positions at, const auto& o) {
    argmax(p, {num_rows, num_columns, 1}, x, at, o);
  });
  reduction("column argmax [4096,1024]", [](auto& p, const float* x, float*, Positions at, const auto& o) {
    argmax(p, {1, num_rows, num_columns}, x, at, o);
  });
  rows.row("transpose [4096,4096]", [&] {
    auto x = normals(num_rows * num_rows), y = zeros(num_rows * num_rows);
    return [=, &pool] {
      const std::int64_t dims[] = {num_rows, num_rows};
      const std::int32_t permutation[] = {1, 0};
      transpose(pool, 4, dims, permutation, x.data(), y.data(), options);
    };
  });
  rows.row("NHWC to NCHW [32,56,56,64]", [&] {
    auto x = normals(num_pixels * channels), y = zeros(num_pixels * channels);
    return [=, &pool] {
      const std::int64_t dims[] = {32, 56, 56, 64};
      const std::int32_t permutation[] = {0, 3, 1, 2};
      transpose(pool, 4, dims, permutation, x.data(), y.data(), options);
    };
  });
  rows.row("gather 4096 of [250000,64]", [&] {
    auto table = normals(table_rows * width), y = zeros(num_indices * width);
    auto indices = integers(num_indices, table_rows);
    return [=, &pool] {
      static_cast<void>(
          gather_rows(pool, 1, table_rows, num_indices, width * 4, table.data(), indices.data(), y.data(), options));
    };
  });
  rows.row("scatter add 4096 to [250000,64]", [&] {
    auto table = normals(table_rows * width), x = normals(num_indices * width);
    auto indices = integers(num_indices, table_rows);
    return [=, &pool] {
      static_cast<void>(scatter_rows(pool, ScatterOp::add, table_rows, num_indices, width, indices.data(), x.data(),
                                     table.data(), options));
    };
  });
  for (const std::int64_t n : {1'000'000, 10'000'000}) {
    const auto elementwise = [&](const char* name, const ElementwiseCode code) {
      rows.row(name + (" " + std::to_string(n)), [=, &pool] {
        const auto x = normals(n), y = zeros(n);
        return [=, &pool] {
          const AnyTensor from = *x.tensor;
          AnyTensor to = *y.tensor;
          const AnyTensor* const inputs[] = {&from, &from};
          run_elementwise(pool, code, inputs, to);
        };
      });
    };
    elementwise("addition", ElementwiseCodeOf<Add, float>::get(options.max_level));
    elementwise("square of a difference", ElementwiseCodeOf<SquaredDifference, float>::get(options.max_level));
    const auto step = [&](const char* name, auto build) {
      rows.row(name + (" " + std::to_string(n)) + ", by a step", [=] {
        auto side = std::make_shared<Steps>();
        const auto a = placeholder<float>(side->graph, {n}), b = placeholder<float>(side->graph, {n});
        const auto y = build(a, b);
        side->session = std::make_unique<Session>(side->graph, SessionOptions{.num_threads = threads});
        using Step = decltype(side->session->prepare(feeds(a, b), fetches(y)));
        auto prepared = std::make_shared<Step>(side->session->prepare(feeds(a, b), fetches(y)));
        const Tensor<float> x = *normals(n).tensor;
        return [side, prepared, x] { (*prepared)(x, x); };
      });
    };
    step("addition", [](const auto& a, const auto& b) { return a + b; });
    step("square of a difference", [](const auto& a, const auto& b) { return squared_difference(a, b); });
  }
  return rows.serve();
}
