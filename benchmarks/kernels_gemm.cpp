// Matrix products: ours against dnnl_sgemm called directly, and against Eigen with this program's flags.
// usage: bench_kernels_gemm [THREADS] [builtin|onednn|automatic]   with more threads than one also ours in one thread
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>

#include "array.hpp"
#include "interleaved.hpp"

#include <Eigen/Core>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if defined(DFLOW_HAS_ONEDNN)
#include <dlfcn.h>
#include <dnnl.h>
#endif

namespace {

struct Size {
  const char* name;
  bool transpose_a, transpose_b;
  long m, n, k;
};

constexpr Size sizes[] = {
    {"16", false, false, 16, 16, 16},
    {"32", false, false, 32, 32, 32},
    {"64", false, false, 64, 64, 64},
    {"128", false, false, 128, 128, 128},
    {"256", false, false, 256, 256, 256},
    {"512", false, false, 512, 512, 512},
    {"512 TN", true, false, 512, 512, 512},
    {"512 NT", false, true, 512, 512, 512},
    {"1024", false, false, 1024, 1024, 1024},
    {"2048", false, false, 2048, 2048, 2048},
    {"MLP 128x784x512", false, false, 128, 512, 784},
    {"MLP 128x512x512", false, false, 128, 512, 512},
    {"MLP 128x512x512 NT", false, true, 128, 512, 512},
    {"MLP 784x128x512 TN", true, false, 784, 512, 128},
    {"MLP 512x128x512 TN", true, false, 512, 512, 128},
    {"MLP 128x512x10", false, false, 128, 10, 512},
    {"MLP 128x10x512 NT", false, true, 128, 512, 10},
    {"MLP 512x128x10 TN", true, false, 512, 10, 128},
    {"row 1x512x512", false, false, 1, 512, 512},
    {"row 1x512x512 NT", false, true, 1, 512, 512},
    {"column 512x512x1", false, false, 512, 1, 512},
    {"tiny 8x16x16", false, false, 8, 16, 16},
    {"tiny 8x16x10", false, false, 8, 10, 16},
    {"LSTM 32x512x1024", false, false, 32, 1024, 512},
};

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void run(dflow::ThreadPool& pool, const Size& s, const dflow::cpu::CpuOptions& options) {
  dflow::bench::Array<float> a(s.m * s.k), b(s.k * s.n), c(s.m * s.n);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i % 13) * 0.01f;
  for (std::int64_t i = 0; i < b.size(); ++i) b.data()[i] = static_cast<float>(i % 17) * 0.01f;
  const auto ours = [&] {
    dflow::cpu::gemm(pool, s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), b.data(), c.data(), {}, options);
  };
  const auto clock = pool.num_threads() == 1 ? dflow::bench::Clock::thread : dflow::bench::Clock::wall;
  const double flops = 2.0 * static_cast<double>(s.m * s.n) * static_cast<double>(s.k);
#if defined(DFLOW_HAS_ONEDNN)
  const auto onednn = [&] {
    dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a.data(),
               s.transpose_a ? s.m : s.k, b.data(), s.transpose_b ? s.k : s.n, 0.0f, c.data(), s.n);
  };
  const auto against = dflow::bench::compare(ours, onednn, clock);
  dflow::bench::print(
      std::string(s.name) + "  " + std::to_string(static_cast<int>(flops / against.ours_ns)) + " GFLOP/s", "onednn",
      against);
#endif
  const auto eigen = [&] {
    Eigen::Map<Matrix> left(a.data(), s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k);
    Eigen::Map<Matrix> right(b.data(), s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n);
    Eigen::Map<Matrix> out(c.data(), s.m, s.n);
    if (s.transpose_a) {
      out.noalias() = left.transpose() * right;
    } else if (s.transpose_b) {
      out.noalias() = left * right.transpose();
    } else {
      out.noalias() = left * right;
    }
  };
  if (pool.num_threads() == 1) {
    dflow::bench::print(s.name, "eigen", dflow::bench::compare(ours, eigen, clock, 7, 5));
  } else {
    dflow::InlinePool serial;
    const auto alone = [&] {
      dflow::cpu::gemm(serial, s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), b.data(), c.data(), {}, options);
    };
    dflow::bench::print(s.name, "one thread", dflow::bench::compare(ours, alone, clock, 9, 20));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  dflow::cpu::KernelCache cache;
  dflow::cpu::CpuOptions options{.cache = &cache};
  if (argc > 2 && std::strcmp(argv[2], "builtin") == 0) options.backend = dflow::cpu::CpuBackend::builtin;
  if (argc > 2 && std::strcmp(argv[2], "onednn") == 0) options.backend = dflow::cpu::CpuBackend::onednn;
#if defined(DFLOW_HAS_ONEDNN)
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
#endif
  dflow::InlinePool serial;
  dflow::WorkStealingPool parallel(threads);
  dflow::ThreadPool& pool = threads == 1 ? static_cast<dflow::ThreadPool&>(serial) : parallel;
  for (const Size& s : sizes) run(pool, s, options);
}
