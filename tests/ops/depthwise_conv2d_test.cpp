#include <dflow/ops/nn/convolutions.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

df::Tensor<double> eighths_from(const df::Shape& shape, int phase) {
  df::Tensor<double> tensor(shape);
  int i = 5 * phase;
  for (double& value : tensor) value = ((i += 7) % 25 - 12) / 8.0;
  return tensor;
}

void depthwise_is_refused(auto&& build, const std::string& part) {
  const std::string error = error_of(build);
  INFO(error);
  CHECK(error.find("INVALID_ARGUMENT") != std::string::npos);
  CHECK(error.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a depthwise convolution has the shape that its channels and filters say") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 8, 9, 3});
  const auto filter = df::placeholder<float>(graph, {3, 1, 3, 2});
  CHECK(df::depthwise_conv2d(x, filter).shape() == df::PartialShape{df::dynamic, 6, 9, 6});
  CHECK(df::depthwise_conv2d(x, filter, {.strides = {1, 2, 3, 1}, .padding = df::Padding::same}).shape() ==
        df::PartialShape{df::dynamic, 4, 3, 6});
  const auto open = df::placeholder<float>(graph);
  CHECK(df::depthwise_conv2d(open, filter).shape() == df::PartialShape{df::dynamic, df::dynamic, df::dynamic, 6});
  CHECK(df::depthwise_conv2d(x, open).shape() == df::PartialShape{df::dynamic, df::dynamic, df::dynamic, df::dynamic});
  const auto pointwise = df::placeholder<float>(graph, {1, 1, 6, 5});
  CHECK(df::separable_conv2d(x, filter, pointwise).shape() == df::PartialShape{df::dynamic, 6, 9, 5});

  depthwise_is_refused([&] { df::depthwise_conv2d(x, df::placeholder<float>(graph, {3, 3, 2, 1})); }, "3 channels");
  depthwise_is_refused([&] { df::depthwise_conv2d(x, filter, {.strides = {1, -1, 1, 1}}); }, "positive");
  depthwise_is_refused([&] { df::depthwise_conv2d(x, filter, {.data_format = df::DataFormat::nchw}); }, "NCHW");
  depthwise_is_refused([&] { df::depthwise_conv2d(x, filter, {.dilations = {1, 4, 1, 1}}); }, "do not fit");
  depthwise_is_refused(
      [&] {
        df::separable_conv2d(x, filter, df::placeholder<float>(graph, {1, 1, 4, 5}));
      },
      "got shape [1,1,4,5]");
  constexpr std::int64_t many = std::int64_t{1} << 40;
  const auto wide = df::placeholder<float>(graph, {1, 1, 1, many}),
             wider = df::placeholder<float>(graph, {1, 1, df::dynamic, many});
  depthwise_is_refused([&] { df::depthwise_conv2d(wide, wider); }, "2^62 or more");
}

TEST_CASE("a separable convolution and its gradients are those of the convolution with the product of its filters") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {2, 5, 6, 3});
  const auto depthwise = df::placeholder<double>(graph, {2, 3, 3, 2}),
             pointwise = df::placeholder<double>(graph, {1, 1, 6, 4});
  const df::Conv2DAttrs attrs{.strides = {1, 2, 1, 1}, .padding = df::Padding::same};
  const auto y = df::separable_conv2d(x, depthwise, pointwise, attrs);
  const auto full = df::placeholder<double>(graph, {2, 3, 3, 4});
  const auto one = df::conv2d(x, full, attrs);
  const auto dx = df::gradients(df::reduce_sum(df::square(y)), x);
  const auto dx_one = df::gradients(df::reduce_sum(df::square(one)), x);
  const auto images = eighths_from({2, 5, 6, 3}, 1), by_channel = eighths_from({2, 3, 3, 2}, 2),
             by_pixel = eighths_from({1, 1, 6, 4}, 3);
  auto product = df::Tensor<double>::full({2, 3, 3, 4}, 0.0);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t q = 0; q < 3; ++q)
        for (std::int64_t r = 0; r < 2; ++r)
          for (std::int64_t k = 0; k < 4; ++k)
            product(i, j, q, k) += by_channel(i, j, q, r) * by_pixel(0, 0, 2 * q + r, k);
  df::Session session(graph);
  const auto [value, expected, slope, expected_slope] =
      session.run({{x, images}, {depthwise, by_channel}, {pointwise, by_pixel}, {full, product}}, y, one, dx, dx_one);
  REQUIRE(value.shape() == expected.shape());
  // Sums of multiples of 1/512: exact.
  CHECK(df::bitwise_equal(value, expected));
  CHECK(df::bitwise_equal(slope, expected_slope));
  const auto check = df::check_gradients(session, y, {{x, images}, {depthwise, by_channel}, {pointwise, by_pixel}});
  INFO(check.to_string());
  CHECK(check.is_ok());
}

TEST_CASE("a depthwise convolution of fed shapes that do not fit is refused when it runs") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph), filter = df::placeholder<float>(graph);
  const auto y = df::depthwise_conv2d(x, filter, {}, {.name = "blur"});
  const auto sizes = df::placeholder<std::int32_t>(graph, {4});
  const auto dx = df::Output<float>(df::build<df::DepthwiseConv2dNativeBackpropInput>({sizes, filter, x}).output(0));
  df::Session session(graph);
  const auto ones = [](const df::Shape& shape) { return df::Tensor<float>::full(shape, 1.0f); };
  depthwise_is_refused([&] { session.run({{x, ones({1, 4, 4, 3})}, {filter, ones({2, 2, 2, 1})}}, y); }, "blur");
  depthwise_is_refused([&] { session.run({{x, ones({1, 1, 4, 3})}, {filter, ones({2, 2, 3, 1})}}, y); }, "do not fit");
  constexpr auto huge = std::numeric_limits<std::int32_t>::max();
  for (const std::vector<std::int32_t>& hostile :
       {std::vector<std::int32_t>{1, huge, huge, 2}, {1, -5, 5, 2}, {huge, 5, 5, 2}, {1, 5, 5, 3}, {0, 5, 5, 2}}) {
    depthwise_is_refused(
        [&] {
          session.run(
              {{sizes, df::Tensor<std::int32_t>({4}, hostile)}, {filter, ones({2, 2, 2, 1})}, {x, ones({1, 4, 4, 2})}},
              dx);
        },
        "DepthwiseConv2dNativeBackpropInput");
  }
}

TEST_CASE("a convolution in groups equals one with zeros between the groups") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {2, 5, 4, 4}), grouped = df::placeholder<double>(graph, {3, 1, 2, 6});
  const auto whole = df::placeholder<double>(graph, {3, 1, 4, 6});
  const df::Conv2DAttrs attrs{.strides = {1, 1, 2, 1}, .padding = df::Padding::same};
  const auto y = df::conv2d(x, grouped, attrs), expected = df::conv2d(x, whole, attrs);
  const auto dx = df::gradients(df::reduce_sum(df::square(y)), x);
  const auto dx_expected = df::gradients(df::reduce_sum(df::square(expected)), x);
  const auto images = eighths_from({2, 5, 4, 4}, 1), filter = eighths_from({3, 1, 2, 6}, 2);
  auto wide = df::Tensor<double>::full({3, 1, 4, 6}, 0.0);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t q = 0; q < 2; ++q)
      for (std::int64_t k = 0; k < 6; ++k) wide(i, 0, k / 3 * 2 + q, k) = filter(i, 0, q, k);
  df::Session session(graph);
  const auto [value, right, slope, right_slope] =
      session.run({{x, images}, {grouped, filter}, {whole, wide}}, y, expected, dx, dx_expected);
  CHECK(df::bitwise_equal(value, right));
  CHECK(df::bitwise_equal(slope, right_slope));
  depthwise_is_refused([&] { df::conv2d(x, df::placeholder<double>(graph, {1, 1, 3, 6})); }, "the filter is for 3");
  depthwise_is_refused([&] { df::conv2d(x, df::placeholder<double>(graph, {1, 1, 2, 5})); }, "the 2 groups");
  depthwise_is_refused([&] { df::conv2d(x, df::placeholder<double>(graph, {1, 1, 0, 6})); }, "the filter is for 0");
}
