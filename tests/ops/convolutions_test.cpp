#include <dflow/ops/nn/convolutions.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// ((7 i + 5 phase) mod 25 - 12) / 8 for i = 1, 2, ...
df::Tensor<double> multiples_of_eighths(const df::Shape& shape, int phase) {
  df::Tensor<double> tensor(shape);
  int i = 5 * phase;
  for (double& value : tensor) value = ((i += 7) % 25 - 12) / 8.0;
  return tensor;
}

void convolution_gives(const df::Tensor<double>& got, const df::Shape& shape, const std::vector<double>& values) {
  CHECK(got.shape() == shape);
  CHECK(std::vector<double>(got.begin(), got.end()) == values);
}

void convolution_is_refused(auto&& build, const std::string& part) {
  const std::string error = error_of(build);
  INFO(error);
  CHECK(error.find("INVALID_ARGUMENT") != std::string::npos);
  CHECK(error.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("a transposed convolution has TensorFlow's values for a given and for its own shape") {
  const df::Conv2DAttrs same{.strides = {1, 2, 2, 1}, .padding = df::Padding::same}, valid{.strides = {1, 2, 2, 1}};
  const std::vector<double> lower{-1.09375,  0.4375, -0.75,     0.265625, -1.1875,  0.484375,
                                  -1.578125, 1.5,    -3.234375, -1.1875,  -0.59375, 1.59375,
                                  -0.84375,  0.3125, 2.625,     -1.03125, -0.9375,  0.359375};
  std::vector<double> upper{1.3125, 0.109375, -1.609375, 0.96875, 2.109375, -0.125};
  upper.insert(upper.end(), lower.begin(), lower.end());
  std::vector<double> whole = upper;
  for (const double value : {-1.265625, -0.109375, 2.34375, -1.3125, -1.078125, 0.21875}) whole.push_back(value);
  const auto image = multiples_of_eighths({1, 2, 3, 2}, 1), window = multiples_of_eighths({3, 2, 1, 2}, 2);
  for (const bool knows_shapes : {true, false}) {
    df::Graph graph;
    const auto x = knows_shapes ? df::placeholder<double>(graph, {1, 2, 3, 2}) : df::placeholder<double>(graph);
    const auto filter = knows_shapes ? df::placeholder<double>(graph, {3, 2, 1, 2}) : df::placeholder<double>(graph);
    const auto twice = df::conv2d_transpose(x, filter, {}, same, {.name = "twice"});
    const auto shorter = df::conv2d_transpose(x, filter, {1, 3, 6, 1}, same);
    const auto larger = df::conv2d_transpose(x, filter, {}, valid);
    if (knows_shapes) CHECK(larger.shape() == df::PartialShape{1, 5, 6, 1});
    CHECK(twice.name() == "twice");
    df::Session session(graph);
    const auto [a, b, c] = session.run({{x, image}, {filter, window}}, twice, shorter, larger);
    convolution_gives(a, {1, 4, 6, 1}, upper);
    convolution_gives(b, {1, 3, 6, 1}, lower);
    convolution_gives(c, {1, 5, 6, 1}, whole);
    const auto check = df::check_gradients(session, twice, {{x, image}, {filter, window}});
    INFO(check.to_string());
    CHECK(check.is_ok());
  }
}

TEST_CASE("the shape of a transposed convolution is known where the shapes of its inputs are") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 5, df::dynamic, 4});
  const auto filter = df::placeholder<float>(graph, {3, 2, 7, 4});
  CHECK(df::conv2d_transpose(x, filter).shape() == df::PartialShape{df::dynamic, 7, df::dynamic, 7});
  CHECK(df::conv2d_transpose(x, filter, {}, {.strides = {1, 3, 2, 1}, .padding = df::Padding::same}).shape() ==
        df::PartialShape{df::dynamic, 15, df::dynamic, 7});
  CHECK(df::conv2d_transpose(x, filter, {}, {.dilations = {1, 2, 1, 1}}).shape() ==
        df::PartialShape{df::dynamic, 9, df::dynamic, 7});
  const auto five = df::placeholder<float>(graph, {2, 5, 5, 4});
  CHECK(df::conv2d_transpose(five, filter, {2, 7, 6, 7}).shape() == df::PartialShape{2, 7, 6, 7});
  const auto dims = df::constant<std::int64_t>(graph, df::Tensor<std::int64_t>({4}, {2, 7, 6, 7}));
  CHECK(df::conv2d_transpose(five, filter, dims).shape().rank() == 4);

  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {2, 8, 6, 7}); }, "Conv2DBackpropInput");
  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {2, 7, 6, 9}); }, "[2,5,5,4]");
  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {2, -7, 6, 7}); }, "-7");
  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {2, 7, 6}); }, "4 elements");
  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {}, {.strides = {1, -1, 1, 1}}); }, "positive");
  convolution_is_refused([&] { df::conv2d_transpose(five, filter, {}, {.strides = {1, 1}}); }, "4 elements");
  const auto flat = df::placeholder<float>(graph, {2, 5, 4});
  convolution_is_refused([&] { df::conv2d_transpose(flat, filter); }, "[2,5,4]");
  const auto narrow = df::placeholder<float>(graph, {3, 2, 7, 3});
  convolution_is_refused([&] { df::conv2d_transpose(five, narrow); }, "[3,2,7,3]");
}

TEST_CASE("a convolution over one dimension has TensorFlow's values") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {2, 5, 2}), filter = df::placeholder<double>(graph, {2, 2, 3});
  const auto wide = df::conv1d(x, filter, {.stride = 2, .padding = df::Padding::same}, {.name = "wide"});
  const auto far = df::conv1d(x, filter, {.dilation = 3});
  CHECK(wide.name() == "wide");
  CHECK(df::conv1d(df::placeholder<double>(graph, {df::dynamic, df::dynamic, 2}), filter).shape() ==
        df::PartialShape{df::dynamic, df::dynamic, 3});
  const auto samples = multiples_of_eighths({2, 5, 2}, 1), window = multiples_of_eighths({2, 2, 3}, 2);
  df::Session session(graph);
  const auto [a, b] = session.run({{x, samples}, {filter, window}}, wide, far);
  convolution_gives(a, {2, 3, 3},
                    {1.0625, 0.1875, -3.421875, 0.875, 1.3125, -3.328125, 0.28125, -0.375, 1.3125, 0.203125, -0.125,
                     0.71875, 0.015625, 1, 0.8125, 0.203125, 1.1875, -1.34375});
  convolution_gives(
      b, {2, 2, 3},
      {0.59375, 0.375, -2.578125, 0.109375, -2.1875, 1.375, -0.265625, 0.0625, 1.5625, -0.359375, 0.625, 1.609375});
  const auto check = df::check_gradients(session, wide, {{x, samples}, {filter, window}});
  INFO(check.to_string());
  CHECK(check.is_ok());
  convolution_is_refused([&] { df::conv1d(x, df::placeholder<double>(graph, {1, 2, 2, 3})); }, "rank 3");
  convolution_is_refused([&] { df::conv1d(x, filter, {.stride = -1}); }, "strides must be positive");
  convolution_is_refused([&] { df::conv1d(x, filter, {.dilation = 5}); }, "do not fit");
}

TEST_CASE("a convolution of several nodes that is refused leaves no node behind") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {1, 4, 4, 2}), filter = df::placeholder<float>(graph, {2, 2, 2, 1});
  const auto pointwise = df::placeholder<float>(graph, {1, 1, 3, 5});
  const auto before = graph.num_nodes();
  convolution_is_refused([&] { df::separable_conv2d(x, filter, pointwise, {}, {.name = "both"}); },
                         "must be [1,1,2,?], got shape [1,1,3,5]");
  convolution_is_refused([&] { df::conv2d_transpose(x, filter, {1, 9, 9, 2}); }, "out_backprop");
  CHECK(graph.num_nodes() == before);
}
