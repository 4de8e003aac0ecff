#include <dflow/kernels/cpu/routines/nn/bias.hpp>

#include "checks.hpp"

namespace dflow::cpu {
namespace {

using namespace test;

constexpr std::int64_t bias_shapes[][2] = {{1, 1},    {3, 10}, {1000, 3}, {20, 512}, {4, 1300},
                                           {33, 257}, {0, 4},  {4, 0},    {5000, 32}};

TEMPLATE_TEST_CASE("a bias is added to each row or channel, and its gradient is the sum of the rows",
                   "[routines][bias]", float, double, Half, BFloat16, std::int8_t, std::int16_t, std::int32_t,
                   std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::complex<float>,
                   std::complex<double>) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const auto& [rows, channels] : bias_shapes) {
      const auto x = random_values<TestType>(rows * channels, 1), bias = random_values<TestType>(channels, 2);
      const auto row_bias = random_values<TestType>(rows, 3);
      std::vector<wide_t<TestType>> sum, positive, first, grad(bias.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        sum.push_back(wide(x[i]) + wide(bias[i % bias.size()]));
        first.push_back(wide(x[i]) + wide(row_bias[i / bias.size()]));
        grad[i % bias.size()] += wide(x[i]);
        if constexpr (std::is_integral_v<TestType>)
          positive.push_back(static_cast<TestType>(sum.back()) < TestType(0) ? 0 : sum.back());
        else if constexpr (!is_complex<TestType>)
          positive.push_back(std::max(0.0, sum.back()));
      }
      auto y = x;
      bias_add(threads, rows, channels, x.data(), bias.data(), y.data(), false, options);
      check_close(y, sum, 2, "bias");
      if constexpr (!is_complex<TestType>) {
        y = x;
        bias_add(threads, rows, channels, y.data(), bias.data(), y.data(), true, options);
        check_close(y, positive, 2, "bias and relu, in place");
      }
      bias_add_channels_first(threads, 1, rows, channels, x.data(), row_bias.data(), y.data(), options);
      check_close(y, first, 2, "bias of channels that come first");
      std::vector<TestType> dy(bias.size());
      bias_add_backward(threads, rows, channels, x.data(), dy.data(), options);
      check_close(dy, grad,
                  16 + 6 * std::sqrt(static_cast<double>(rows)) +
                      (unit_roundoff<TestType>() == unit_roundoff<double>() ? static_cast<double>(rows) : 0.0),
                  "gradient");
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
