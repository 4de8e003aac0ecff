#include <dflow/train/convolution_layers.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/layer_normalization.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// ((7 i + 5 phase) mod 25 - 12) / 8 for i = 1, 2, ...
df::Tensor<double> eighths_of_layer(const df::Shape& shape, int phase) {
  df::Tensor<double> tensor(shape);
  int i = 5 * phase;
  for (double& value : tensor) value = ((i += 7) % 25 - 12) / 8.0;
  return tensor;
}

/// The value of y for x of phase 1, with the variables of phases 2, 3, ...
df::Tensor<double> value_of_layer(df::Graph& graph, const df::Layer& layer, const df::Output<double>& x,
                                  const df::Output<double>& y) {
  df::Session session(graph);
  int phase = 2;
  for (const df::AnyVariable& variable : layer.variables()) {
    const auto typed = variable.as<double>();
    session.run(typed.assign(eighths_of_layer(typed.shape().to_shape(), phase++)));
  }
  return session.run({{x, eighths_of_layer(x.shape().to_shape(), 1)}}, y);
}

void layer_is_refused(auto&& build, const std::string& part) {
  const std::string error = error_of(build);
  INFO(error);
  CHECK(error.find("INVALID_ARGUMENT") != std::string::npos);
  CHECK(error.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("Layers of convolutions have the values of Keras's") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {1, 3, 4, 2});
  const df::DepthwiseConvolution2D depthwise({1, 3}, {.activation = df::Activation::relu, .multiplier = 2});
  const auto by_channel = value_of_layer(graph, depthwise, x, depthwise(x));
  CHECK(by_channel.shape() == df::Shape{1, 3, 4, 4});
  CHECK(std::vector<double>(by_channel.begin(), by_channel.begin() + 12) ==
        std::vector<double>{0, 0.203125, 0, 0.75, 0.390625, 0.390625, 0, 1.703125, 0, 0, 0, 1.203125});

  const df::SeparableConvolution2D separable(3, {2, 1}, {.padding = df::Padding::valid});
  const auto mixed = value_of_layer(graph, separable, x, separable(x));
  CHECK(mixed.shape() == df::Shape{1, 2, 4, 3});
  CHECK(std::vector<double>(mixed.begin(), mixed.begin() + 9) ==
        std::vector<double>{-1.109375, -1.5, -0.1328125, -2.27734375, 1.09375, 0.998046875, -0.7109375, -2.3671875,
                            -0.5078125});

  const df::TransposedConvolution2D transposed(2, {1, 3}, {.stride = 2});
  const auto large = value_of_layer(graph, transposed, x, transposed(x));
  CHECK(large.shape() == df::Shape{1, 6, 8, 2});
  CHECK(std::vector<double>(large.begin(), large.begin() + 8) ==
        std::vector<double>{2.5625, -0.890625, 0.15625, -0.5625, -1.125, 0.734375, 0.5, -0.734375});
  CHECK(large(0, 5, 7, 0) == 1.25);
  CHECK(large(0, 4, 7, 1) == -0.5);

  const df::Convolution2D grouped(2, {1, 3}, {.stride = {2, 1}, .groups = 2});
  const auto apart = value_of_layer(graph, grouped, x, grouped(x));
  CHECK(apart.shape() == df::Shape{1, 2, 4, 2});
  CHECK(std::vector<double>(apart.begin(), apart.end()) ==
        std::vector<double>{-0.125, -0.265625, 2.65625, -1.3125, -0.890625, -1.4375, 2.234375, 0.859375, 0.25, -2.34375,
                            0.84375, -1.53125, 2.765625, -1.265625, 0.09375, -1.390625});
}

TEST_CASE("Layers of convolutions share their variables, name them and take windows that are not square") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 8, 9, 4});
  const df::DepthwiseConvolution2D blur(3, {.use_bias = false, .multiplier = 2, .stride = {2, 3}});
  CHECK(blur(x).shape() == df::PartialShape{df::dynamic, 4, 3, 8});
  CHECK(blur(x).shape().rank() == 4);
  CHECK(blur.variables().size() == 1);
  CHECK(blur.kernel().name() == "depthwise_conv2d/kernel");
  CHECK(blur.kernel().shape() == df::PartialShape{3, 3, 4, 2});
  const df::SeparableConvolution2D separable(5, {1, 7}, {.multiplier = 2});
  CHECK(separable(x).shape() == df::PartialShape{df::dynamic, 8, 9, 5});
  CHECK(separable.depthwise_kernel().shape() == df::PartialShape{1, 7, 4, 2});
  CHECK(separable.pointwise_kernel().shape() == df::PartialShape{1, 1, 8, 5});
  CHECK(separable.bias().name() == "separable_conv2d/bias");
  const df::TransposedConvolution2D larger(3, {5, 4}, {.stride = {1, 2}, .padding = df::Padding::valid});
  CHECK(larger(x).shape() == df::PartialShape{df::dynamic, 12, 20, 3});
  CHECK(larger.kernel().shape() == df::PartialShape{5, 4, 3, 4});
  CHECK(df::conv2d(x, 6, {7, 1}, {.padding = df::Padding::valid}).shape() == df::PartialShape{df::dynamic, 2, 9, 6});
  CHECK(df::conv2d(x, 6, 3, {.dilation = {3, 4}, .padding = df::Padding::valid}).shape() ==
        df::PartialShape{df::dynamic, 2, 1, 6});

  const auto nodes = graph.num_nodes();
  layer_is_refused([&] { df::DepthwiseConvolution2D(0)(x); }, "the window must be positive");
  layer_is_refused([&] { df::DepthwiseConvolution2D(3, {.multiplier = 0})(x); }, "the multiplier must be positive");
  layer_is_refused([&] { df::DepthwiseConvolution2D(3, {.stride = -1})(x); }, "strides must be positive");
  layer_is_refused([&] { df::SeparableConvolution2D(0, 3)(x); }, "filters must be positive");
  layer_is_refused([&] { df::SeparableConvolution2D(2, {9, 1}, {.padding = df::Padding::valid})(x); }, "do not fit");
  layer_is_refused([&] { df::TransposedConvolution2D(2, {3, -1})(x); }, "the window must be positive");
  layer_is_refused([&] { df::TransposedConvolution2D(2, 3, {.stride = {1, 0}})(x); }, "strides must be positive");
  layer_is_refused([&] { df::conv2d(x, 6, {1, 0}); }, "the window must be positive");
  layer_is_refused([&] { df::conv2d(x, 6, 3, {.groups = 3}); }, "3 groups do not divide 4 channels");
  layer_is_refused([&] { df::conv2d(x, 6, 3, {.groups = 4}); }, "the 4 groups");
  layer_is_refused([&] { df::DepthwiseConvolution2D{3}(df::placeholder<float>(graph, {2, 8, 4})); }, "rank 4");
  CHECK(graph.num_nodes() == nodes + 1);
}

TEST_CASE("Layer normalisation has the values of Keras's, and its gradients are right") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {2, 2, 4});
  const df::LayerNormalization norm;
  const auto y = norm(x);
  const auto value = value_of_layer(graph, norm, x, y);
  const std::vector<double> expected{1.4415970401802838, 1.069248033947066,   0.909624016973533,   0.7116805919639433,
                                     1.4415970401802838, 1.069248033947066,   0.909624016973533,   0.7116805919639433,
                                     2.000112091239588,  -3.1275906587886495, 0.17504483649583513, 0.827284276067109,
                                     2.000112091239588,  -3.127590658788649,  0.17504483649583516, 0.8272842760671091};
  REQUIRE(value.shape() == df::Shape{2, 2, 4});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(value.begin()[i] == Catch::Approx(expected[i]).epsilon(1e-12));
  }
  df::Session session(graph);
  session.run(norm.gamma().as<double>().assign(eighths_of_layer({4}, 2)));
  session.run(norm.beta().as<double>().assign(eighths_of_layer({4}, 3)));
  const auto check = df::check_gradients(session, y, {{x, eighths_of_layer({2, 2, 4}, 3)}});
  INFO(check.to_string());
  CHECK(check.is_ok());
}

TEST_CASE("Layer normalisation of 16-bit floats has variables in float, and rows of open ranks their shape") {
  df::Graph graph;
  const auto x = df::placeholder<df::Half>(graph, {df::dynamic, df::dynamic, 3});
  const df::LayerNormalization norm({.epsilon = 0.0, .name = "norm"});
  const auto y = norm(x);
  CHECK(y.shape() == df::PartialShape{df::dynamic, df::dynamic, 3});
  CHECK(norm.gamma().dtype() == df::DType::float32);
  CHECK(norm.gamma().name() == "norm/gamma");
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<df::Half> rows({1, 1, 3}, {df::Half(1000.0f), df::Half(2000.0f), df::Half(3000.0f)});
  const auto value = session.run({{x, rows}}, y);
  CHECK(static_cast<float>(value(0, 0, 0)) == Catch::Approx(-1.2247).epsilon(1e-3));
  CHECK(static_cast<float>(value(0, 0, 1)) == 0.0f);
  layer_is_refused([&] { df::layer_normalization(df::placeholder<float>(graph, {3})); }, "rank 2");
  layer_is_refused(
      [&] {
        df::layer_normalization(df::placeholder<float>(graph, {3, df::dynamic}));
      },
      "layer_normalization");
}
