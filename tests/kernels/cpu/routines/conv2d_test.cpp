#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>

#include "checks.hpp"

namespace dflow::cpu {
namespace {

using namespace test;

Conv2dShape make_shape(std::int64_t batch, std::int64_t rows, std::int64_t cols, std::int64_t in,
                       std::int64_t filter_rows, std::int64_t filter_cols, std::int64_t out, std::int64_t stride,
                       std::int64_t dilation, std::int64_t top, std::int64_t left, std::int64_t bottom,
                       std::int64_t right) {
  return {.batch = batch,
          .in_rows = rows,
          .in_cols = cols,
          .in_channels = in,
          .filter_rows = filter_rows,
          .filter_cols = filter_cols,
          .out_channels = out,
          .stride_rows = stride,
          .stride_cols = stride,
          .dilation_rows = dilation,
          .dilation_cols = dilation,
          .pad_top = top,
          .pad_left = left,
          .pad_bottom = bottom,
          .pad_right = right};
}

Conv2dShape in_groups(Conv2dShape s, std::int64_t groups) {
  s.groups = groups;
  return s;
}

const std::vector<Conv2dShape>& conv2d_shapes() {
  static const std::vector<Conv2dShape> all = {
      make_shape(2, 5, 6, 3, 3, 3, 4, 1, 1, 1, 1, 1, 1),      // SAME
      make_shape(3, 8, 8, 16, 3, 3, 16, 1, 1, 1, 1, 1, 1),    // channels oneDNN blocks by
      make_shape(2, 9, 7, 5, 3, 2, 7, 2, 1, 1, 0, 1, 1),      // stride 2, odd sizes, uneven padding
      make_shape(1, 12, 12, 1, 5, 5, 8, 1, 1, 2, 2, 2, 2),    // a first layer
      make_shape(2, 7, 7, 8, 1, 1, 19, 1, 1, 0, 0, 0, 0),     // pointwise
      make_shape(70, 1, 1, 30, 1, 1, 9, 1, 1, 0, 0, 0, 0),    // pointwise, an image a pixel
      make_shape(9, 2, 3, 6, 2, 2, 5, 1, 1, 0, 0, 1, 0),      // two windows a row
      make_shape(5, 7, 7, 8, 1, 1, 16, 2, 1, 0, 0, 0, 0),     // pointwise with stride
      make_shape(2, 11, 10, 4, 3, 3, 5, 1, 2, 2, 2, 2, 2),    // dilation
      make_shape(2, 11, 10, 4, 2, 3, 5, 2, 3, 0, 1, 2, 0),    // dilation and stride
      make_shape(2, 4, 4, 3, 4, 4, 6, 1, 1, 0, 0, 0, 0),      // VALID, one window
      make_shape(1, 3, 3, 2, 2, 2, 3, 1, 1, 3, 3, 3, 3),      // more padding than filter
      make_shape(2, 1, 2, 3, 3, 3, 4, 4, 1, 5, 5, 0, 0),      // windows in the padding alone
      make_shape(1, 30, 30, 24, 3, 3, 40, 1, 1, 1, 1, 1, 1),  // several blocks
      make_shape(2, 10, 9, 16, 3, 3, 32, 2, 1, 1, 1, 1, 1),   // a block of channels with stride 2
      make_shape(3, 9, 8, 32, 3, 5, 16, 1, 1, 1, 2, 0, 2),    // uneven filter and padding
      make_shape(1, 9, 9, 16, 3, 3, 48, 1, 2, 2, 2, 2, 2),    // blocks of channels with dilation
      make_shape(1, 6, 40, 2, 3, 3, 33, 1, 1, 1, 1, 1, 1),    // rows of several register tiles
      make_shape(3, 7, 7, 32, 5, 5, 64, 1, 1, 2, 2, 2, 2),    // shards whose filters oneDNN lays out differently
      make_shape(1, 9, 9, 160, 3, 3, 24, 1, 1, 1, 1, 1, 1),   // large patches
      make_shape(2, 6, 6, 3, 3, 3, 4, 3, 1, 0, 0, 0, 0),      // stride that leaves pixels out
      make_shape(0, 5, 5, 3, 3, 3, 4, 1, 1, 1, 1, 1, 1),      // nothing in the batch
      make_shape(2, 2, 2, 3, 3, 3, 4, 1, 1, 0, 0, 0, 0),      // no window fits
      make_shape(2, 2, 2, 3, 6, 6, 4, 9, 1, 1, 1, 1, 1),      // no window fits, with padding and a long stride
      make_shape(2, 4, 4, 0, 3, 3, 4, 1, 1, 1, 1, 1, 1),      // no channels
      make_shape(2, 8, 8, 4, 2, 2, 5, 1, 6, 3, 3, 3, 3),      // dilation as large as half the image
      make_shape(2, 5, 6, 3, 3, 3, 4, 1, 7, 7, 7, 7, 7),      // dilation beyond the image, one tap on it
      make_shape(2, 8, 9, 4, 3, 3, 5, 8, 10, 6, 10, 7, 10),   // one tap on it, behind the image's first row
      make_shape(3, 9, 20, 2, 4, 4, 3, 1, 5, 7, 7, 8, 8),     // two taps of four on the image
      make_shape(2, 1, 1, 2, 2, 2, 3, 1, 10, 5, 5, 5, 5),     // no tap on it
      make_shape(1, 4, 5, 3, 3, 3, 4, 1, (std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) - 1,
                 (std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) - 1),
      in_groups(make_shape(2, 5, 6, 4, 3, 3, 6, 1, 1, 1, 1, 1, 1), 2),
      in_groups(make_shape(2, 7, 6, 6, 1, 1, 9, 1, 1, 0, 0, 0, 0), 3),       // pointwise in groups
      in_groups(make_shape(2, 9, 8, 32, 3, 3, 32, 2, 1, 1, 1, 1, 1), 4),     // groups that oneDNN blocks by
      in_groups(make_shape(2, 11, 10, 12, 2, 3, 8, 1, 3, 0, 1, 2, 0), 4),    // groups with dilation
      in_groups(make_shape(2, 7, 9, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1), 3),       // depthwise
      in_groups(make_shape(2, 9, 24, 77, 3, 5, 77, 1, 1, 1, 2, 1, 2), 77),   // with whole registers and parts
      in_groups(make_shape(2, 9, 24, 21, 3, 2, 42, 2, 1, 1, 0, 1, 1), 21),   // two filters a channel, stride 2
      in_groups(make_shape(3, 8, 11, 5, 3, 3, 15, 1, 2, 2, 2, 2, 2), 5),     // three, dilation
      in_groups(make_shape(2, 11, 13, 40, 3, 3, 40, 3, 2, 1, 0, 1, 0), 40),  // stride and dilation
      in_groups(make_shape(2, 6, 6, 4, 1, 1, 4, 1, 1, 0, 0, 0, 0), 4),       // a factor for each channel
      in_groups(make_shape(2, 6, 6, 4, 1, 1, 8, 4, 1, 0, 0, 0, 0), 4),       // a stride beyond the filter
      in_groups(make_shape(1, 3, 3, 2, 2, 2, 4, 1, 1, 3, 3, 3, 3), 2),       // more padding than filter
      in_groups(make_shape(2, 1, 2, 3, 3, 3, 3, 4, 1, 5, 5, 0, 0), 3),       // windows in the padding alone
      in_groups(make_shape(2, 8, 9, 4, 3, 3, 4, 8, 10, 6, 10, 7, 10), 4),    // one tap on the image
      in_groups(make_shape(2, 1, 1, 2, 2, 2, 4, 1, 10, 5, 5, 5, 5), 2),      // no tap on it
      in_groups(make_shape(0, 5, 5, 4, 3, 3, 4, 1, 1, 1, 1, 1, 1), 4),       // nothing in the batch
      in_groups(make_shape(2, 2, 2, 4, 3, 3, 4, 1, 1, 0, 0, 0, 0), 4),       // no window fits
      in_groups(make_shape(2, 2, 2, 4, 6, 6, 4, 9, 1, 1, 1, 1, 1), 2),
  };
  return all;
}

struct Sizes {
  std::int64_t input, filter, output;
};
Sizes sizes_of(const Conv2dShape& s) {
  return {s.batch * s.in_rows * s.in_cols * s.in_channels,
          s.filter_rows * s.filter_cols * s.filter_channels() * s.out_channels,
          s.batch * s.out_rows() * s.out_cols() * s.out_channels};
}

std::string conv2d_name(const Conv2dShape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.in_rows) + "x" + std::to_string(s.in_cols) + "x" +
         std::to_string(s.in_channels) + " by " + std::to_string(s.filter_rows) + "x" + std::to_string(s.filter_cols) +
         "x" + std::to_string(s.out_channels) + " stride " + std::to_string(s.stride_rows) + " dilation " +
         std::to_string(s.dilation_rows) + " groups " + std::to_string(s.groups);
}

/// Calls f(input index, filter index, output index) for each product of the convolution.
template <class F>
void each_product(const Conv2dShape& s, F&& f) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t oy = 0; oy < s.out_rows(); ++oy)
      for (std::int64_t ox = 0; ox < s.out_cols(); ++ox)
        for (std::int64_t fy = 0; fy < s.filter_rows; ++fy)
          for (std::int64_t fx = 0; fx < s.filter_cols; ++fx) {
            const std::int64_t y = oy * s.stride_rows - s.pad_top + fy * s.dilation_rows;
            const std::int64_t x = ox * s.stride_cols - s.pad_left + fx * s.dilation_cols;
            if (y < 0 || y >= s.in_rows || x < 0 || x >= s.in_cols) continue;
            for (std::int64_t i = 0; i < s.filter_channels(); ++i)
              for (std::int64_t o = 0; o < s.out_channels; ++o)
                f(static_cast<std::size_t>(((b * s.in_rows + y) * s.in_cols + x) * s.in_channels +
                                           o / (s.out_channels / s.groups) * s.filter_channels() + i),
                  static_cast<std::size_t>(((fy * s.filter_cols + fx) * s.filter_channels() + i) * s.out_channels + o),
                  static_cast<std::size_t>(((b * s.out_rows() + oy) * s.out_cols() + ox) * s.out_channels + o));
          }
}

double scale(std::int64_t products) { return 8.0 + 4.0 * static_cast<double>(products); }

/// The operands of a shape, and its products summed up in double, which all settings share.
template <class T>
struct Reference {
  explicit Reference(const Conv2dShape& shape) : s(shape) {
    const Sizes n = sizes_of(s);
    x = random_values<T>(n.input, 1), w = random_values<T>(n.filter, 2), bias = random_values<T>(s.out_channels, 3);
    before = random_values<T>(n.output, 4), dy = random_values<T>(n.output, 7);
    const std::vector<double> wide_x = wide_of(x), wide_w = wide_of(w), wide_dy = wide_of(dy);
    y.resize(before.size()), dx.resize(x.size()), dw.resize(w.size());
    each_product(s, [&](std::size_t i, std::size_t f, std::size_t o) {
      y[o] += wide_x[i] * wide_w[f];
      dx[i] += wide_dy[o] * wide_w[f];
      dw[f] += wide_dy[o] * wide_x[i];
    });
  }

  Conv2dShape s;
  std::vector<T> x, w, bias, before, dy;
  std::vector<double> y, dx, dw;
};

template <class T>
void check_forward(ThreadPool& pool, const Reference<T>& of, const CpuOptions& options, bool accumulate, bool with_bias,
                   bool relu) {
  const Conv2dShape& s = of.s;
  std::vector<T> y = of.before;
  std::vector<double> expected = of.y;
  Epilogue<T> epilogue{accumulate};
  for (std::size_t i = 0; i < expected.size() && accumulate; ++i) expected[i] += wide(y[i]);
  if constexpr (std::is_floating_point_v<T>) {
    if (with_bias) epilogue.bias = of.bias.data();
    epilogue.relu = relu;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (with_bias) expected[i] += wide(of.bias[i % static_cast<std::size_t>(s.out_channels)]);
      if (relu && expected[i] < 0) expected[i] = 0;
    }
  }
  conv2d(pool, s, of.x.data(), of.w.data(), y.data(), epilogue, options);
  check_close(y, expected, scale(s.filter_rows * s.filter_cols * s.in_channels),
              test::name_of(options) + " forward " + conv2d_name(s));
}

template <class T>
void check_backward(ThreadPool& pool, const Reference<T>& of, const CpuOptions& options) {
  const Conv2dShape& s = of.s;
  std::vector<T> dx(of.x.size(), T(7)), dw(of.w.size(), T(7));
  conv2d_backward_input(pool, s, of.w.data(), of.dy.data(), dx.data(), options);
  conv2d_backward_filter(pool, s, of.x.data(), of.dy.data(), dw.data(), options);
  check_close(dx, of.dx, scale(s.filter_rows * s.filter_cols * s.out_channels),
              test::name_of(options) + " backward input " + conv2d_name(s));
  check_close(dw, of.dw, scale(s.batch * s.out_rows() * s.out_cols()),
              test::name_of(options) + " backward filter " + conv2d_name(s));
}

TEMPLATE_TEST_CASE("a convolution and its gradients equal naive ones in double", "[routines][conv2d]", float, double,
                   Half, BFloat16) {
  KernelCache cache;
  WorkStealingPool threads(2);
  for (const Conv2dShape& s : conv2d_shapes()) {
    const Reference<TestType> reference(s);
    for (const CpuOptions& options : all_options(&cache)) {
      check_forward<TestType>(threads, reference, options, false, false, false);
      check_forward<TestType>(threads, reference, options, false, true, true);
      check_forward<TestType>(threads, reference, options, true, true, false);
      check_backward<TestType>(threads, reference, options);
    }
  }
}

TEMPLATE_TEST_CASE("a convolution with bias and relu has the bits of the three one after the other",
                   "[routines][conv2d]", float, double) {
  KernelCache cache;
  WorkStealingPool threads(2);
  std::vector<Conv2dShape> shapes = conv2d_shapes();
  // More channels than oneDNN sums at once, and a filter of one output.
  shapes.push_back(make_shape(1, 6, 6, 700, 3, 3, 40, 1, 1, 1, 1, 1, 1));
  shapes.push_back(make_shape(2, 5, 4, 30, 1, 1, 1, 1, 1, 0, 0, 0, 0));
  for (const Conv2dShape& s : shapes) {
    const Sizes n = sizes_of(s);
    const auto x = random_values<TestType>(n.input, 1), w = random_values<TestType>(n.filter, 2),
               bias = random_values<TestType>(s.out_channels, 3);
    for (CpuOptions options : all_options(&cache)) {
      options.reproducible = true;
      const auto convolution = [&](const Epilogue<TestType>& epilogue) {
        std::vector<TestType> y(static_cast<std::size_t>(n.output));
        conv2d(threads, s, x.data(), w.data(), y.data(), epilogue, options);
        return y;
      };
      INFO(test::name_of(options) << " " << conv2d_name(s));
      std::vector<TestType> sum = convolution({});
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += bias[i % bias.size()];
      CHECK(same_bits(convolution({.bias = bias.data()}), sum));
      for (TestType& value : sum) value = value < 0 ? 0 : value;
      CHECK(same_bits(convolution({.bias = bias.data(), .relu = true}), sum));
    }
  }
}

TEST_CASE("the bits of a convolution do not depend on the number of threads where that was asked for",
          "[routines][conv2d]") {
  const Conv2dShape s = make_shape(10, 12, 12, 16, 3, 3, 24, 1, 1, 1, 1, 1, 1);
  const Sizes n = sizes_of(s);
  const auto x = random_values<float>(n.input, 1), w = random_values<float>(n.filter, 2),
             dy = random_values<float>(n.output, 3);
  KernelCache cache;
  for (CpuBackend backend : {CpuBackend::builtin, CpuBackend::onednn}) {
    const CpuOptions options{.backend = backend, .reproducible = true, .cache = &cache};
    std::vector<float> first[3];
    for (int count = 1; count <= 4; ++count) {
      WorkStealingPool threads(count);
      std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
      conv2d(threads, s, x.data(), w.data(), y.data(), {}, options);
      conv2d_backward_input(threads, s, w.data(), dy.data(), dx.data(), options);
      conv2d_backward_filter(threads, s, x.data(), dy.data(), dw.data(), options);
      if (count == 1) first[0] = y, first[1] = dx, first[2] = dw;
      CHECK(same_bits(first[0], y));
      CHECK(same_bits(first[1], dx));
      CHECK(same_bits(first[2], dw));
    }
  }
}

TEST_CASE("oneDNN's primitives are kept per shape and released with the cache", "[routines][conv2d]") {
  if (!has_onednn()) return;
  KernelCache cache;
  InlinePool serial;
  const Conv2dShape s = make_shape(2, 8, 8, 16, 3, 3, 16, 1, 1, 1, 1, 1, 1);
  const Sizes n = sizes_of(s);
  const auto x = random_values<float>(n.input, 1), w = random_values<float>(n.filter, 2);
  std::vector<float> y(static_cast<std::size_t>(n.output));
  const CpuOptions options{.backend = CpuBackend::onednn, .cache = &cache};
  for (int i = 0; i < 3; ++i) conv2d(serial, s, x.data(), w.data(), y.data(), {}, options);
  CHECK(cache.primitives() == 1);
  cache.clear();
  CHECK(cache.primitives() == 0);
}

TEST_CASE("a filter's gradient over many windows keeps its digits", "[routines][conv2d]") {
  KernelCache cache;
  WorkStealingPool threads(2);
  // Without padding all windows see the same: elements that repeat along the batch and the image.
  for (const Conv2dShape& s :
       {make_shape(40, 80, 80, 2, 3, 3, 5, 1, 1, 0, 0, 0, 0), make_shape(12, 100, 100, 16, 3, 3, 16, 1, 1, 0, 0, 0, 0),
        make_shape(60, 70, 70, 3, 1, 1, 4, 1, 1, 0, 0, 0, 0)}) {
    const Sizes n = sizes_of(s);
    const std::vector<float> x(static_cast<std::size_t>(n.input), 0.7f), dy(static_cast<std::size_t>(n.output), 0.3f);
    const double exact = static_cast<double>(0.7f) * static_cast<double>(0.3f) *
                         static_cast<double>(s.batch * s.out_rows() * s.out_cols());
    for (const CpuOptions& options : all_options(&cache)) {
      INFO(test::name_of(options) << " " << conv2d_name(s));
      std::vector<float> dw(static_cast<std::size_t>(n.filter));
      conv2d_backward_filter(threads, s, x.data(), dy.data(), dw.data(), options);
      double worst = 0;
      for (const float value : dw) worst = std::max(worst, std::abs(static_cast<double>(value) / exact - 1));
      CHECK(worst < 1e-4);
    }
  }
}

TEST_CASE("a filter's gradient of a batch that is summed in parts of different sizes equals a naive one",
          "[routines][conv2d]") {
  KernelCache cache;
  WorkStealingPool threads(2);
  // oneDNN sums 16384 windows in one call at most.
  for (const Conv2dShape& s :
       {make_shape(3, 96, 96, 2, 3, 3, 3, 1, 1, 1, 1, 1, 1), make_shape(5, 60, 70, 3, 2, 3, 2, 1, 1, 0, 1, 1, 1),
        make_shape(7, 130, 128, 1, 3, 2, 2, 1, 1, 1, 0, 1, 1)}) {
    const Reference<float> reference(s);
    for (const CpuOptions& options : all_options(&cache)) check_backward<float>(threads, reference, options);
  }
}

}  // namespace
}  // namespace dflow::cpu
