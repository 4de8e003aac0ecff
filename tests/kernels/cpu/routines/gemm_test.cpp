#include <dflow/kernels/cpu/routines/math/gemm.hpp>

#include <dflow/kernels/cpu/routines/nn/bias.hpp>

#include "checks.hpp"

#include <array>

namespace dflow::cpu {
namespace {

using namespace test;

struct Product {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
};

/// The operands of a product, and the naive product, which all settings share.
template <class T>
struct Operands {
  explicit Operands(const Product& of) : s(of) {
    a = random_values<T>(s.m * s.k, 1);
    b = random_values<T>(s.k * s.n, 2);
    bias = random_values<T>(s.n, 3);
    before = random_values<T>(s.m * s.n, 4);
    products.resize(before.size());
    const std::int64_t step_a = s.transpose_a ? s.m : 1, step_b = s.transpose_b ? 1 : s.n;
    for (std::int64_t i = 0; i < s.m; ++i) {
      for (std::int64_t j = 0; j < s.n; ++j) {
        const std::int64_t left = s.transpose_a ? i : i * s.k, right = s.transpose_b ? j * s.k : j;
        wide_t<T> sum{};
        for (std::int64_t p = 0; p < s.k; ++p) sum += wide(a[left + p * step_a]) * wide(b[right + p * step_b]);
        products[static_cast<std::size_t>(i * s.n + j)] = sum;
      }
    }
  }

  std::vector<wide_t<T>> expected(const Epilogue<T>& epilogue) const {
    std::vector<wide_t<T>> out = products;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (epilogue.accumulate) out[i] += wide(before[i]);
      if constexpr (std::is_floating_point_v<T>) {
        if (epilogue.bias != nullptr) out[i] += wide(bias[i % static_cast<std::size_t>(s.n)]);
        if (epilogue.relu && out[i] < 0) out[i] = 0;
      }
    }
    return out;
  }

  Product s;
  std::vector<T> a, b, bias, before;
  std::vector<wide_t<T>> products;
};

template <class T>
void check_gemm(ThreadPool& pool, const Operands<T>& of, const CpuOptions& options, bool accumulate, bool bias,
                bool relu) {
  const Product& s = of.s;
  Epilogue<T> epilogue{accumulate};
  if constexpr (std::is_floating_point_v<T>) {
    if (bias) epilogue.bias = of.bias.data();
    epilogue.relu = relu;
  }
  std::vector<T> c = of.before;
  gemm(pool, s.transpose_a, s.transpose_b, s.m, s.n, s.k, of.a.data(), of.b.data(), c.data(), epilogue, options);
  check_close(c, of.expected(epilogue), 4.0 + 4.0 * static_cast<double>(s.k),
              name_of(options) + " m " + std::to_string(s.m) + " n " + std::to_string(s.n) + " k " +
                  std::to_string(s.k) + (s.transpose_a ? " TA" : "") + (s.transpose_b ? " TB" : "") +
                  (accumulate ? " accumulate" : "") + (bias ? " bias" : "") + (relu ? " relu" : ""));
}

constexpr std::array<std::array<std::int64_t, 3>, 22> sizes = {{
    {1, 1, 1},     {1, 7, 5},      {7, 1, 5},    {5, 7, 1},     {3, 5, 0},    {0, 5, 3},
    {5, 0, 3},     {16, 16, 16},   {6, 16, 8},   {13, 17, 19},  {1, 64, 33},  {1, 200, 70},
    {2, 131, 40},  {64, 1, 100},   {33, 10, 65}, {50, 48, 200}, {96, 80, 64}, {25, 33, 300},
    {150, 40, 10}, {31, 257, 129}, {200, 33, 5}, {12, 12, 520},
}};

/// The other builds check values and bounds. With ThreadSanitizer naive products take minutes, and transposing an
/// operand changes nothing between threads.
#if defined(__SANITIZE_THREAD__)
constexpr int transposes_apart = 3;
#else
constexpr int transposes_apart = 1;
#endif

/// Calls f(operands) for each size and transposition.
template <class T>
void for_all_sizes(auto&& f) {
  for (const auto& size : sizes) {
    for (int transposes = 0; transposes < 4; transposes += transposes_apart) {
      f(Operands<T>({(transposes & 1) != 0, (transposes & 2) != 0, size[0], size[1], size[2]}));
    }
  }
}

template <class T>
void check_both_epilogues(ThreadPool& pool, const Operands<T>& of, const CpuOptions& options) {
  check_gemm<T>(pool, of, options, false, false, false);
  check_gemm<T>(pool, of, options, true, true, true);
}

TEMPLATE_TEST_CASE("a product equals a naive one in double for every size, transposition and option",
                   "[routines][gemm]", float, double, Half, BFloat16, std::complex<float>, std::complex<double>) {
  KernelCache cache;
  InlinePool serial;
  WorkStealingPool threads(3);
  for_all_sizes<TestType>([&](const Operands<TestType>& of) {
    for (const CpuOptions& options : all_options(&cache)) {
      check_both_epilogues<TestType>(serial, of, options);
      check_both_epilogues<TestType>(threads, of, options);
    }
  });
}

TEMPLATE_TEST_CASE("a product with bias and relu has the bits of the product, the bias and relu one after the other",
                   "[routines][gemm]", float, double) {
  KernelCache cache;
  WorkStealingPool threads(3);
  const auto check = [&](const Operands<TestType>& of) {
    const Product& s = of.s;
    for (CpuOptions options : all_options(&cache)) {
      options.reproducible = true;
      const auto product = [&](const Epilogue<TestType>& epilogue) {
        std::vector<TestType> c(of.before.size());
        gemm(threads, s.transpose_a, s.transpose_b, s.m, s.n, s.k, of.a.data(), of.b.data(), c.data(), epilogue,
             options);
        return c;
      };
      std::vector<TestType> sum = product({});
      bias_add(threads, s.m, s.n, sum.data(), of.bias.data(), sum.data(), false, options);
      INFO(name_of(options) << " m " << s.m << " n " << s.n << " k " << s.k << (s.transpose_a ? " TA" : "")
                            << (s.transpose_b ? " TB" : ""));
      CHECK(same_bits(product({.bias = of.bias.data()}), sum));
      for (TestType& value : sum) value = value < 0 ? 0 : value;
      CHECK(same_bits(product({.bias = of.bias.data(), .relu = true}), sum));
    }
  };
  for_all_sizes<TestType>(check);
  for (const Product& s :
       {Product{false, false, 300, 270, 400}, Product{false, false, 128, 512, 784}, Product{false, true, 70, 1, 9000},
        Product{true, false, 31, 45, 20000}, Product{false, false, 1, 512, 784}}) {
    check(Operands<TestType>(s));
  }
}

TEMPLATE_TEST_CASE("integer products wrap", "[routines][gemm]", std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                   std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
  InlinePool serial;
  for_all_sizes<TestType>([&](const Operands<TestType>& of) {
    for (CpuLevel level : levels_here()) check_both_epilogues<TestType>(serial, of, {.max_level = level});
  });
}

TEST_CASE("an infinite part of a complex number meets the parts of the other alone", "[routines][gemm]") {
  InlinePool serial;
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::int64_t m : {1, 20}) {
    std::vector<std::complex<float>> a(static_cast<std::size_t>(m) * 2, {1, 2}), b(2 * 20, {3, 4}),
        c(static_cast<std::size_t>(m) * 20);
    b[0] = {inf, 0.5f};
    gemm(serial, false, false, m, 20, 2, a.data(), b.data(), c.data());
    CHECK(c[0] == std::complex<float>(inf, inf));
    CHECK(c[1] == std::complex<float>(-10, 20));
  }
}

TEMPLATE_TEST_CASE("large products are right on several threads", "[routines][gemm]", float, double) {
  KernelCache cache;
  WorkStealingPool threads(4);
  for (const Product& s : {Product{false, false, 300, 270, 400}, Product{true, false, 130, 530, 390},
                           Product{false, true, 515, 70, 800}, Product{true, true, 40, 700, 450}}) {
    const Operands<TestType> of(s);
    for (const CpuOptions& options : all_options(&cache)) {
      check_gemm<TestType>(threads, of, options, false, true, true);
      check_gemm<TestType>(threads, of, options, true, false, false);
    }
  }
}

TEMPLATE_TEST_CASE("the bits of a builtin product do not depend on the number of threads", "[routines][gemm]", float,
                   double, std::complex<float>) {
  for (const Product& s :
       {Product{false, false, 300, 270, 400}, Product{false, true, 1, 5000, 300}, Product{true, true, 129, 65, 900},
        Product{false, false, 3, 4000, 200}, Product{false, true, 100, 1000, 30}}) {
    const auto a = random_values<TestType>(s.m * s.k, 5);
    const auto b = random_values<TestType>(s.k * s.n, 6);
    std::vector<TestType> first;
    for (int count = 1; count <= 5; ++count) {
      WorkStealingPool threads(count);
      std::vector<TestType> c(static_cast<std::size_t>(s.m * s.n));
      gemm(threads, s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), b.data(), c.data(), {},
           {.backend = CpuBackend::builtin});
      if (count == 1) first = c;
      CHECK(same_bits(first, c));
    }
  }
}

TEST_CASE("a product with beta 0 does not read the result, and NaNs come through", "[routines][gemm]") {
  InlinePool serial;
  KernelCache cache;
  for (const CpuOptions& options : all_options(&cache)) {
    std::vector<float> a(64 * 64, 1.0f), b(64 * 64, 1.0f), c(64 * 64, std::nanf(""));
    a[5] = std::nanf("");
    gemm(serial, false, false, 64, 64, 64, a.data(), b.data(), c.data(), {}, options);
    CHECK(std::isnan(c[0]));
    CHECK(c[64] == 64.0f);
    CHECK(c[64 * 64 - 1] == 64.0f);
  }
}

TEMPLATE_TEST_CASE("a batch of products is each of its products, with shared operands where the stride is 0",
                   "[routines][gemm]", float, double, Half, std::int32_t, std::complex<float>) {
  KernelCache cache;
  WorkStealingPool threads(2);
  const std::int64_t m = 9, n = 11, k = 13;
  for (std::int64_t batch : {0, 1, 3, 40}) {
    for (bool shared : {false, true}) {
      const auto a = random_values<TestType>(batch * m * k, 7);
      const auto b = random_values<TestType>((shared ? 1 : batch) * n * k, 8);
      std::vector<TestType> together(static_cast<std::size_t>(batch * m * n)), alone(together);
      const BatchStrides strides{m * k, shared ? 0 : n * k, m * n};
      batched_gemm(threads, batch, strides, false, true, m, n, k, a.data(), b.data(), together.data(), {},
                   {.cache = &cache});
      for (std::int64_t i = 0; i < batch; ++i) {
        gemm(threads, false, true, m, n, k, a.data() + i * strides.a, b.data() + i * strides.b,
             alone.data() + i * strides.c);
      }
      CHECK(same_bits(together, alone));
    }
  }
  CHECK(cache.scratch_bytes() <= (std::size_t{256} << 20));
  cache.clear();
  CHECK(cache.scratch_bytes() == 0);
}

/// The largest relative error of c = a b for positive operands. All rows of op(a) are the same row, and all columns of
/// op(b) are the same column. T: float, std::complex<float>.
template <class T>
double error_of_long_product(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                             const CpuOptions& options) {
  std::mt19937 generator(11);
  std::uniform_real_distribution<float> range(0.0f, 1.0f);
  std::vector<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      c(static_cast<std::size_t>(m * n));
  double exact = 0;
  for (std::int64_t p = 0; p < k; ++p) {
    const float left = range(generator), right = range(generator);
    exact += static_cast<double>(left) * static_cast<double>(right);
    for (std::int64_t i = 0; i < m; ++i) a[static_cast<std::size_t>(transpose_a ? p * m + i : i * k + p)] = T(left);
    for (std::int64_t j = 0; j < n; ++j) b[static_cast<std::size_t>(transpose_b ? j * k + p : p * n + j)] = T(right);
  }
  WorkStealingPool pool(2);
  gemm(pool, transpose_a, transpose_b, m, n, k, a.data(), b.data(), c.data(), {}, options);
  double worst = 0;
  for (const T& sum : c) worst = std::max(worst, std::abs(static_cast<double>(std::real(sum)) / exact - 1));
  return worst;
}

TEST_CASE("long inner dimensions are summed without the errors of one accumulator", "[routines][gemm][long]") {
  KernelCache cache;
  for (const CpuOptions& options : all_options(&cache)) {
    for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 1, 1'000'000},
                                  {1, 40, 300'001},
                                  {2, 3, 300'001},
                                  {30, 20, 200'003},
                                  {90, 70, 40'001}}) {
      for (int transposes = 0; transposes < 4; ++transposes) {
        INFO(name_of(options) << " m " << m << " n " << n << " k " << k << " transposes " << transposes);
        CHECK(error_of_long_product<float>((transposes & 1) != 0, (transposes & 2) != 0, m, n, k, options) < 3e-6);
      }
    }
    for (const std::int64_t n : {1, 2, 40}) {
      CHECK(error_of_long_product<std::complex<float>>(false, false, 3, n, 300'001, options) < 3e-6);
    }
  }
}

TEST_CASE("the product of more ones than float counts is their number", "[routines][gemm][long]") {
  const std::int64_t k = (std::int64_t{1} << 24) + (std::int64_t{1} << 22) + 1024;
  const std::vector<float> ones(static_cast<std::size_t>(k), 1.0f);
  KernelCache cache;
  InlinePool serial;
  for (const CpuOptions& options : all_options(&cache)) {
    for (const bool transpose_b : {false, true}) {
      INFO(name_of(options) << (transpose_b ? " TB" : ""));
      float sum = 0;
      gemm(serial, false, transpose_b, 1, 1, k, ones.data(), ones.data(), &sum, {}, options);
      CHECK(sum == static_cast<float>(k));
    }
  }
}

TEST_CASE("the parts of a long product are added before its bias and what relu leaves", "[routines][gemm]") {
  InlinePool serial;
  KernelCache cache;
  const std::int64_t m = 14, n = 5, k = 40'000;
  const std::vector<double> a(static_cast<std::size_t>(m * k), 1.0), b(static_cast<std::size_t>(k * n), -0.5);
  const std::vector<double> bias{19'990, 20'000, 20'010, 0, 1e6};
  for (const CpuOptions& options : all_options(&cache)) {
    std::vector<double> c(static_cast<std::size_t>(m * n), 5.0);
    gemm(serial, false, false, m, n, k, a.data(), b.data(), c.data(), {true, bias.data(), true}, options);
    for (std::int64_t i = 0; i < m; ++i) {
      for (const auto& [j, value] : {std::pair{0, 0.0}, {1, 5.0}, {2, 15.0}, {3, 0.0}, {4, 980'005.0}}) {
        CHECK(c[static_cast<std::size_t>(i * n + j)] == value);
      }
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
