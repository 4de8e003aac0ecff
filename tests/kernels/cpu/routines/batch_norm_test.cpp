#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>

#include "checks.hpp"

namespace dflow::cpu {
namespace {

using namespace test;

constexpr std::int64_t batch_norm_shapes[][2] = {{8, 3},     {100, 16}, {3000, 64}, {70, 700}, {5, 1},
                                                 {40000, 3}, {1, 4},    {0, 4},     {4, 0}};

template <class T>
void check_batch_norm(ThreadPool& pool, std::int64_t rows, std::int64_t channels, double center,
                      const CpuOptions& options) {
  using P = batch_norm_param_t<T>;
  const auto n = static_cast<std::size_t>(channels);
  auto x = random_values<T>(rows * channels, 1);
  for (T& v : x) v = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(wide(v) + center));
  const auto dy = random_values<T>(rows * channels, 2);
  const auto scale = random_values<P>(channels, 3), offset = random_values<P>(channels, 4);
  const P epsilon = static_cast<P>(1e-3);
  std::vector<double> mean(n, 0.0), variance(n, 0.0), y(x.size()), dx(x.size()), d_scale(n, 0.0), d_offset(n, 0.0);
  const auto count = static_cast<double>(rows);
  const auto each = [&](auto&& f) {
    for (std::size_t i = 0; i < x.size(); ++i) f(i, i % n);
  };
  each([&](std::size_t i, std::size_t c) { mean[c] += wide(x[i]) / count; });
  each([&](std::size_t i, std::size_t c) { variance[c] += (wide(x[i]) - mean[c]) * (wide(x[i]) - mean[c]) / count; });
  const auto inv_std = [&](std::size_t c) { return 1 / std::sqrt(variance[c] + static_cast<double>(epsilon)); };
  each([&](std::size_t i, std::size_t c) {
    const double normal = (wide(x[i]) - mean[c]) * inv_std(c);
    y[i] = normal * wide(scale[c]) + wide(offset[c]);
    d_scale[c] += wide(dy[i]) * normal;
    d_offset[c] += wide(dy[i]);
  });
  std::vector<double> frozen_dx(x.size());
  each([&](std::size_t i, std::size_t c) {
    const double normal = (wide(x[i]) - mean[c]) * inv_std(c);
    dx[i] = wide(scale[c]) * inv_std(c) * (wide(dy[i]) - d_offset[c] / count - normal * d_scale[c] / count);
    frozen_dx[i] = wide(scale[c]) * inv_std(c) * wide(dy[i]);
  });
  std::vector<T> got_y(x.size()), got_dx(x.size());
  std::vector<P> got_mean(n), got_variance(n), got_d_scale(n), got_d_offset(n);
  batch_norm_training(pool, rows, channels, x.data(), scale.data(), offset.data(), epsilon, got_y.data(),
                      got_mean.data(), got_variance.data(), options);
  // One row has no spread, so that the difference from the mean is all rounding, magnified by 1 / sqrt(epsilon).
  const double size = 64 * (1 + std::fabs(center)) * (rows == 1 ? 40 : 1);
  // The reference in double is no more exact than this.
  const double reference = unit_roundoff<T>() == 0x1p-53 ? count * (1 + std::fabs(center)) : 0;
  const std::string what = std::to_string(rows) + "x" + std::to_string(channels) + " around " + std::to_string(center);
  if (rows > 0) {
    check_close(got_mean, mean, 4 + reference, "mean " + what);
    check_close(got_variance, variance, 16 + reference, "variance " + what);
  }
  const auto spread = [&](std::size_t i) { return std::abs(wide(scale[i % n])) * inv_std(i % n); };
  check_terms(
      got_y, y, [&](std::size_t i) { return spread(i) + std::abs(wide(offset[i % n])); }, size + reference,
      "y " + what);
  batch_norm_training_backward(pool, rows, channels, x.data(), dy.data(), scale.data(), got_mean.data(),
                               got_variance.data(), epsilon, got_dx.data(), got_d_scale.data(), got_d_offset.data(),
                               options);
  check_terms(got_dx, dx, spread, size + reference, "gradient of x " + what);
  check_close(got_d_offset, d_offset, 4 * std::sqrt(count + 1) + reference, "gradient of the offset " + what);
  check_close(got_d_scale, d_scale, size * std::sqrt(count + 1) + reference, "gradient of the scale " + what);
  if (rows == 0) return;
  std::vector<T> again(x.size());
  batch_norm_inference(pool, rows, channels, x.data(), scale.data(), offset.data(), got_mean.data(),
                       got_variance.data(), epsilon, again.data(), options);
  CHECK(same_bits(again, got_y));
  batch_norm_inference_backward(pool, rows, channels, x.data(), dy.data(), scale.data(), got_mean.data(),
                                got_variance.data(), epsilon, got_dx.data(), got_d_scale.data(), got_d_offset.data(),
                                options);
  check_relative(got_dx, frozen_dx, 64 + reference, "gradient of x with given statistics " + what);
}

TEMPLATE_TEST_CASE("batch normalisation and its gradients equal naive ones in double", "[routines][batch_norm]", float,
                   double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    for (const auto& [rows, channels] : batch_norm_shapes)
      check_batch_norm<TestType>(threads, rows, channels, 0, {.max_level = level});
  }
}

TEMPLATE_TEST_CASE("batch normalisation is stable far from zero", "[routines][batch_norm]", float, double) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) check_batch_norm<TestType>(threads, 5000, 24, 300, {.max_level = level});
}

TEST_CASE("the bits of batch normalisation do not depend on the number of threads", "[routines][batch_norm]") {
  const std::int64_t rows = 20000, channels = 48;
  const auto x = random_values<float>(rows * channels, 5), dy = random_values<float>(rows * channels, 6);
  const auto scale = random_values<float>(channels, 7);
  std::vector<float> first_y, first_dx;
  for (int count = 1; count <= 4; ++count) {
    WorkStealingPool threads(count);
    std::vector<float> y(x.size()), dx(x.size()), mean(channels), variance(channels), d_scale(channels),
        d_offset(channels);
    batch_norm_training(threads, rows, channels, x.data(), scale.data(), scale.data(), 1e-3f, y.data(), mean.data(),
                        variance.data());
    batch_norm_training_backward(threads, rows, channels, x.data(), dy.data(), scale.data(), mean.data(),
                                 variance.data(), 1e-3f, dx.data(), d_scale.data(), d_offset.data());
    if (count == 1) first_y = y, first_dx = dx;
    CHECK(same_bits(y, first_y));
    CHECK(same_bits(dx, first_dx));
  }
}

}  // namespace
}  // namespace dflow::cpu
