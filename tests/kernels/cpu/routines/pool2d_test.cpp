#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>

#include "checks.hpp"

#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

Pool2dShape pool_shape(std::int64_t batch, std::int64_t rows, std::int64_t cols, std::int64_t channels,
                       std::int64_t window_rows, std::int64_t window_cols, std::int64_t stride_rows,
                       std::int64_t stride_cols, std::int64_t top = 0, std::int64_t left = 0, std::int64_t bottom = 0,
                       std::int64_t right = 0) {
  return {.batch = batch,
          .in_rows = rows,
          .in_cols = cols,
          .channels = channels,
          .window_rows = window_rows,
          .window_cols = window_cols,
          .stride_rows = stride_rows,
          .stride_cols = stride_cols,
          .pad_top = top,
          .pad_left = left,
          .pad_bottom = bottom,
          .pad_right = right};
}

const std::vector<Pool2dShape>& pool2d_shapes() {
  static const std::vector<Pool2dShape> all = {
      pool_shape(2, 6, 6, 32, 2, 2, 2, 2),             // each pixel in one window
      pool_shape(1, 7, 9, 5, 3, 2, 2, 1, 1, 0, 1, 1),  // windows that overlap, with padding
      pool_shape(5, 5, 4, 1, 3, 3, 1, 1, 1, 1, 1, 1),
      pool_shape(1, 8, 8, 300, 3, 3, 2, 2),
      pool_shape(0, 4, 4, 3, 2, 2, 1, 1),              // nothing in the batch
      pool_shape(2, 2, 2, 3, 3, 3, 1, 1),              // no window fits
      pool_shape(2, 5, 5, 0, 2, 2, 1, 1),              // no channels
      pool_shape(1, 4, 4, 3, 1, 1, 3, 3),              // pixels between windows, rows and columns of them
      pool_shape(2, 6, 4, 3, 2, 2, 3, 2),              // rows of them
      pool_shape(2, 4, 6, 3, 2, 2, 2, 3),              // columns of them
      pool_shape(2, 5, 4, 3, 2, 2, 2, 2),              // a row behind the last window
      pool_shape(2, 4, 5, 3, 2, 2, 2, 2),              // a column behind it
      pool_shape(2, 4, 4, 3, 2, 2, 2, 2, 1, 0, 0, 0),  // the same, because padding has shifted the windows
      pool_shape(2, 4, 4, 3, 2, 2, 2, 2, 0, 1, 0, 0),
      pool_shape(2, 5, 4, 3, 3, 2, 2, 2, 0, 0, 2, 0),  // windows that overlap in rows alone
      pool_shape(2, 4, 5, 3, 2, 3, 2, 2, 0, 0, 0, 2),  // in columns alone
  };
  return all;
}

/// Calls f(output index, input index, number of taps) for each element of each window.
template <class F>
void each_tap(const Pool2dShape& s, F&& f) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t oy = 0; oy < s.out_rows(); ++oy)
      for (std::int64_t ox = 0; ox < s.out_cols(); ++ox)
        for (std::int64_t c = 0; c < s.channels; ++c) {
          const std::int64_t y0 = oy * s.stride_rows - s.pad_top, x0 = ox * s.stride_cols - s.pad_left;
          std::vector<std::size_t> taps;
          for (std::int64_t y = std::max<std::int64_t>(0, y0); y < std::min(s.in_rows, y0 + s.window_rows); ++y)
            for (std::int64_t x = std::max<std::int64_t>(0, x0); x < std::min(s.in_cols, x0 + s.window_cols); ++x)
              taps.push_back(static_cast<std::size_t>(((b * s.in_rows + y) * s.in_cols + x) * s.channels + c));
          const auto o = static_cast<std::size_t>(((b * s.out_rows() + oy) * s.out_cols() + ox) * s.channels + c);
          for (const std::size_t i : taps) f(o, i, taps.size());
        }
}

std::int64_t input_size(const Pool2dShape& s) { return s.batch * s.in_rows * s.in_cols * s.channels; }
std::int64_t output_size(const Pool2dShape& s) { return s.batch * s.out_rows() * s.out_cols() * s.channels; }

TEMPLATE_TEST_CASE("pooling and its gradients equal naive ones in double", "[routines][pool2d]", float, double, Half,
                   BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const Pool2dShape& s : pool2d_shapes()) {
      const auto x = random_values<TestType>(input_size(s), 1);
      const auto dy = random_values<TestType>(output_size(s), 2);
      std::vector<double> largest(dy.size(), -std::numeric_limits<double>::infinity()), mean(dy.size(), 0.0);
      std::vector<std::size_t> first(dy.size());
      std::vector<double> max_grad(x.size(), 0.0), mean_grad(x.size(), 0.0);
      each_tap(s, [&](std::size_t o, std::size_t i, std::size_t taps) {
        if (wide(x[i]) > largest[o]) largest[o] = wide(x[i]), first[o] = i;
        mean[o] += wide(x[i]) / static_cast<double>(taps);
        mean_grad[i] += wide(dy[o]) / static_cast<double>(taps);
      });
      for (std::size_t o = 0; o < dy.size(); ++o) max_grad[first[o]] += wide(dy[o]);
      std::vector<TestType> y(dy.size()), dx(x.size(), TestType(3));
      max_pool(threads, s, x.data(), y.data(), options);
      check_close(y, largest, 0, "maximum");
      avg_pool(threads, s, x.data(), y.data(), options);
      check_close(y, mean, 16, "average");
      max_pool_backward(threads, s, x.data(), dy.data(), dx.data(), options);
      check_close(dx, max_grad, 16, "gradient of the maximum");
      avg_pool_backward(threads, s, dy.data(), dx.data(), options);
      check_close(dx, mean_grad, 16, "gradient of the average");
    }
  }
}

TEMPLATE_TEST_CASE("integers have maxima, too", "[routines][pool2d]", std::int8_t, std::int16_t, std::int32_t,
                   std::int64_t, std::uint8_t, std::uint16_t) {
  InlinePool serial;
  for (CpuLevel level : levels_here()) {
    for (const Pool2dShape& s : pool2d_shapes()) {
      const auto x = random_values<TestType>(input_size(s), 3);
      std::vector<TestType> y(static_cast<std::size_t>(output_size(s)));
      std::vector<TestType> expected(y.size(), std::numeric_limits<TestType>::lowest());
      each_tap(s, [&](std::size_t o, std::size_t i, std::size_t) { expected[o] = std::max(expected[o], x[i]); });
      max_pool(serial, s, x.data(), y.data(), {.max_level = level});
      CHECK(y == expected);
    }
  }
}

TEST_CASE("the first of equal maxima gets the gradient, and a NaN is a maximum", "[routines][pool2d]") {
  InlinePool serial;
  const Pool2dShape s{.batch = 1, .in_rows = 2, .in_cols = 2, .channels = 9, .window_rows = 2, .window_cols = 2};
  std::vector<float> x(36, 1.0f), dy(9, 2.0f), dx(36), y(9);
  x[8 + 18] = std::nanf("");
  for (CpuLevel level : levels_here()) {
    max_pool(serial, s, x.data(), y.data(), {.max_level = level});
    CHECK(y[0] == 1.0f);
    CHECK(std::isnan(y[8]));
    max_pool_backward(serial, s, x.data(), dy.data(), dx.data(), {.max_level = level});
    CHECK(dx[0] == 2.0f);
    CHECK(dx[9] == 0.0f);
    CHECK(dx[8] == 0.0f);
    CHECK(dx[8 + 18] == 2.0f);
  }
}

TEMPLATE_TEST_CASE("the average of ones is one, whatever the window", "[routines][pool2d]", float, double) {
  InlinePool serial;
  for (std::int64_t size = 1; size <= 15; ++size) {
    const Pool2dShape shape{
        .batch = 1, .in_rows = size, .in_cols = 7, .channels = 37, .window_rows = size, .window_cols = 7};
    const std::vector<TestType> ones(static_cast<std::size_t>(size * 7 * 37), TestType(1));
    for (CpuLevel level : levels_here()) {
      std::vector<TestType> y(37);
      avg_pool(serial, shape, ones.data(), y.data(), {.max_level = level});
      for (const TestType mean : y) CHECK(mean == 1);
    }
  }
}

TEMPLATE_TEST_CASE("the gradient of an average is the quotient, whatever the window", "[routines][pool2d]", float,
                   double) {
  InlinePool serial;
  for (std::int64_t size = 1; size <= 15; ++size) {
    const Pool2dShape shape{.batch = 1,
                            .in_rows = size,
                            .in_cols = 14,
                            .channels = 37,
                            .window_rows = size,
                            .window_cols = 7,
                            .stride_rows = 1,
                            .stride_cols = 7};
    std::vector<TestType> dy(2 * 37);
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<TestType>(i);
    for (CpuLevel level : levels_here()) {
      std::vector<TestType> dx(static_cast<std::size_t>(size * 14 * 37), TestType(-1));
      avg_pool_backward(serial, shape, dy.data(), dx.data(), {.max_level = level});
      std::int64_t wrong = 0;
      for (std::size_t i = 0; i < dx.size(); ++i) {
        const TestType given = dy[i / 37 % 14 / 7 * 37 + i % 37];
        wrong += dx[i] != given / static_cast<TestType>(size * 7);
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace
}  // namespace dflow::cpu
