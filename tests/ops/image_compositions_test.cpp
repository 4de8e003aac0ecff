// Functions over windows that other ops express. Expected, unless a line says otherwise: TensorFlow 2.21.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

using ImageFunction = std::function<df::Output<double>(const df::Output<double>&)>;

/// ((5 i mod modulus) - modulus / 2) / 4 for the element i; no two elements that lie near are equal.
template <class T = double>
df::Tensor<T> scattered(const df::Shape& shape, std::int64_t modulus = 13) {
  df::Tensor<T> tensor(shape);
  std::int64_t i = 0;
  for (T& value : tensor) {
    const std::int64_t quarters = 5 * i++ % modulus - modulus / 2;
    value = T(static_cast<float>(quarters) / 4);
  }
  return tensor;
}

template <class T>
void check_near(const df::Tensor<T>& got, const df::Shape& shape, const std::vector<double>& expected, double error) {
  CHECK(got.shape() == shape);
  REQUIRE(got.num_elements() == static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = static_cast<double>(got.span()[i]);
    INFO(i << ": " << value << " for " << expected[i]);
    CHECK(std::abs(value - expected[i]) <= error * (1 + std::abs(expected[i])));
  }
}

struct ImageRow {
  df::Tensor<double> x;
  df::Shape shape;
  std::vector<double> expected;
  ImageFunction function;
};

/// Values, shape and gradients of first and second order, where the shape is known, partly known and unknown.
void check_image_row(const ImageRow& row) {
  std::vector<std::int64_t> open_batch(row.x.shape().begin(), row.x.shape().end());
  open_batch[0] = df::dynamic;
  for (const df::PartialShape& shape :
       {df::PartialShape(row.x.shape()), df::PartialShape(open_batch), df::PartialShape::unknown(row.x.rank())}) {
    INFO(row.x.shape().to_string() << " as " << shape.to_string());
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, shape);
    const auto y = row.function(x);
    if (shape.is_fully_defined()) CHECK(y.shape() == df::PartialShape(row.shape));
    const auto dx = df::gradients(df::reduce_sum(y * y * y), x);
    df::Session session(graph);
    check_near(session.run({{x, row.x}}, y), row.shape, row.expected, 1e-12);
    CHECK(df::check_gradients(session, y, {{x, row.x}}).is_ok());
    CHECK(df::check_gradients(session, dx, {{x, row.x}}).is_ok());
  }
}

std::string error_of_image(const df::PartialShape& shape, const ImageFunction& function, const df::Shape& fed) {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, shape);
  df::Session session(graph);
  return error_of([&] { session.run({{x, scattered(fed)}}, function(x)); });
}

template <class T>
void check_local_response(const std::vector<double>& expected, double error) {
  df::Graph graph;
  const auto x = df::constant(graph, scattered<T>({1, 2, 2, 6}));
  const auto y = df::local_response_normalization(x, {.depth_radius = 1, .bias = 0.5, .alpha = 0.25, .beta = 0.75});
  check_near(df::Session(graph).run(y), {1, 2, 2, 6}, expected, error);
}

/// Values, and gradients of first and second order, where all is known and where extents of the volume are not.
void check_convolved_volumes(const df::Shape& volume, const df::Shape& filter, const df::Conv3DAttrs& attrs,
                             const df::Shape& shape, const std::vector<double>& expected) {
  for (const df::PartialShape& known : {df::PartialShape(volume), df::PartialShape::unknown(5)}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, known), w = df::placeholder<double>(graph, filter);
    const auto y = df::conv3d(x, w, attrs);
    if (known.is_fully_defined()) CHECK(y.shape() == df::PartialShape(shape));
    const auto [dx, dw] = df::gradients(df::reduce_sum(y * y), x, w);
    const df::Tensor<double> at_x = scattered(volume, 37), at_w = scattered(filter, 11);
    df::Session session(graph);
    check_near(session.run({{x, at_x}, {w, at_w}}, y), shape, expected, 1e-13);
    CHECK(df::check_gradients(session, y, {{x, at_x}, {w, at_w}}).is_ok());
    CHECK(df::check_gradients(session, dx, {{x, at_x}, {w, at_w}}).is_ok());
    CHECK(df::check_gradients(session, dw, {{x, at_x}, {w, at_w}}).is_ok());
  }
}

/// Multiples of 1/16 that TensorFlow computes in each of these types without rounding.
template <class T>
void check_volumes_of() {
  df::Graph graph;
  const auto x = df::constant(graph, scattered<T>({1, 2, 2, 2, 1}, 37)),
             w = df::constant(graph, scattered<T>({3, 1, 1, 1, 1}, 11));
  check_near(df::Session(graph).run(df::conv3d(x, w, {.padding = df::Padding::same})), {1, 2, 2, 2, 1},
             {0.625, 2.1875, 3.75, 5.3125, 5.625, 4.0625, 2.5, 0.9375}, 0);
}

}  // namespace

TEST_CASE("elements are divided by the size of their neighbours among the channels") {
  const auto normalised = [](const df::LocalResponseAttrs& attrs) {
    return [attrs](const df::Output<double>& x) { return df::local_response_normalization(x, attrs); };
  };
  const df::Tensor<double> x = scattered({1, 2, 2, 6});
  // NumPy in double, by the formula; TensorFlow has float, and differs by at most 2e-7.
  check_image_row({x,
                   {1, 2, 2, 6},
                   {-0.7223151185146152,
                    -0.10846522890932808,
                    0.43133109281375365,
                    -0.43133109281375365,
                    0.10846522890932808,
                    0.7223151185146152,
                    -0.2721655269759087,
                    0.408248290463863,
                    -0.562543950463012,
                    0.0,
                    0.5773502691896257,
                    -0.4242640687119285,
                    0.26490647141300877,
                    -0.7022468831767834,
                    -0.105999788000636,
                    0.43133109281375365,
                    -0.565685424949238,
                    0.14285714285714285,
                    0.7442084075352507,
                    -0.21081851067789195,
                    0.31622776601683794,
                    -0.562543950463012,
                    0.0,
                    0.6154574548966636},
                   normalised({.depth_radius = 2})});
  check_image_row({x,
                   {1, 2, 2, 6},
                   {-0.4752475247524752,
                    -0.06837606837606838,
                    0.32989690721649484,
                    -0.32989690721649484,
                    0.06837606837606838,
                    0.4752475247524752,
                    -0.2077922077922078,
                    0.23529411764705882,
                    -0.40816326530612246,
                    0.0,
                    0.40816326530612246,
                    -0.24489795918367346,
                    0.15384615384615385,
                    -0.45714285714285713,
                    -0.06837606837606838,
                    0.32989690721649484,
                    -0.32989690721649484,
                    0.09876543209876543,
                    0.46153846153846156,
                    -0.1415929203539823,
                    0.23529411764705882,
                    -0.40816326530612246,
                    0.0,
                    0.449438202247191},
                   normalised({.depth_radius = 1, .bias = 2, .alpha = 0.5, .beta = 1})});
  const std::vector<double> three_quarters{-1.4177165900770856,
                                           -0.20207416591581065,
                                           0.9884392056296457,
                                           -0.9884392056296457,
                                           0.20207416591581065,
                                           1.4177165900770856,
                                           -0.65117182248617,
                                           0.7012497410117223,
                                           -1.2214819165574087,
                                           0.0,
                                           1.2214819165574087,
                                           -0.7328891499344452,
                                           0.4577260319793595,
                                           -1.3590458053200838,
                                           -0.20207416591581065,
                                           0.9884392056296457,
                                           -0.9884392056296457,
                                           0.305441419328485,
                                           1.3731780959380786,
                                           -0.41902624070313926,
                                           0.7012497410117223,
                                           -1.2214819165574087,
                                           0.0,
                                           1.3634488556032};
  check_image_row(
      {x, {1, 2, 2, 6}, three_quarters, normalised({.depth_radius = 1, .bias = 0.5, .alpha = 0.25, .beta = 0.75})});
  check_local_response<df::Half>(three_quarters, 0.0005);
  check_local_response<df::BFloat16>(three_quarters, 0.004);
  check_local_response<float>(three_quarters, 3e-7);
  // A window of all channels, as wide as one can be, in a vector: x / sqrt(1 + x.x).
  const df::Tensor<double> vector({3}, {1.0, 2.0, 3.0});
  const double size = std::sqrt(15.0);
  check_image_row(
      {vector, {3}, {1 / size, 2 / size, 3 / size}, normalised({.depth_radius = (std::int64_t{1} << 30) - 1})});
  // The squares of half precision need float.
  df::Graph graph;
  const auto large = df::constant(graph, df::Tensor<df::Half>({1}, {df::Half(1024.0f)}));
  CHECK(df::Session(graph).run(df::local_response_normalization(large)).span()[0] == df::Half(1.0f));
  for (const df::Shape& empty : {df::Shape{0, 3}, df::Shape{3, 0}}) {
    const auto open = df::placeholder<double>(graph, df::PartialShape::unknown(2));
    CHECK(df::Session(graph).run({{open, df::Tensor<double>(empty)}}, df::local_response_normalization(open)).shape() ==
          empty);
  }
  CHECK(contains(error_of_image({}, normalised({}), {}), "LRN"));
  CHECK(
      contains(error_of_image({2, 3}, normalised({.depth_radius = -1}), {2, 3}), "depth_radius must be in [0, 2^30)"));
  CHECK(contains(error_of_image({2, 3}, normalised({.depth_radius = std::int64_t{1} << 40}), {2, 3}), "[2,3]"));
}

TEST_CASE("windows of volumes and sequences have means and largest elements") {
  const df::Tensor<double> video = scattered({2, 3, 3, 4, 1}, 37), series = scattered({1, 7, 2});
  check_image_row(
      {video,
       {2, 3, 2, 4, 1},
       {2.5,  3.75, 4.25, 4.25, 3.25,  4.5,  4.5,  4.5,  4,    4,   4,    3.75, 3.25, 4.5,   4.5, 4.5,
        4,    4,    4,    1.5,  -0.25, 1,    2.25, 2.25, 3.5,  3.5, 3.75, 3.75, 4.25, 4.25,  4.5, 4.5,
        2.75, 4,    4,    4,    2,     3.25, 4.5,  4.5,  2.75, 4,   4,    4,    -1.5, -0.25, 1,   1},
       [](const auto& x) {
         return df::max_pool3d(x, {.ksize = {1, 2, 2, 3, 1}, .strides = {1, 1, 2, 1, 1}, .padding = df::Padding::same});
       }});
  check_image_row({video,
                   {2, 2, 2, 2, 1},
                   {2.5, 4.25, 3.25, 4.5, 4, 3.75, 4, 4.5, 3.5, 3.75, 4.25, 4.5, 2.75, 4, 2.75, 4.5},
                   [](const auto& x) {
                     return df::max_pool3d(
                         x, {.ksize = {1, 2, 2, 2, 1}, .strides = {1, 1, 1, 2, 1}, .padding = df::Padding::valid});
                   }});
  check_image_row(
      {video,
       {2, 2, 3, 4, 1},
       {1.25, 2.5, 3.75, -0.75, 0.5, 1.75, 3,   4.25, 2,   3.25, 4.5, 0,    1.25,  2.5, 3.75, 1.5,
        2.75, 4,   -0.5, 0.75,  2,   3.25, 4.5, 2.25, 3.5, 1.25, 2.5, 3.75, -0.75, 0.5, 1.75, 3,
        4.25, 2,   3.25, 4.5,   0,   1.25, 2.5, 3.75, 1.5, 2.75, 4,   -0.5, 0.75,  2,   3.25, 4.5},
       [](const auto& x) {
         return df::max_pool3d(x, {.ksize = {1, 3, 1, 1, 1}, .strides = {1, 2, 1, 1, 1}, .padding = df::Padding::same});
       }});
  check_image_row(
      {video,
       {2, 3, 2, 4, 1},
       {-0.8125,
        -0.1875,
        0.2916666666666667,
        0.53125,
        -0.25,
        0.375,
        0.08333333333333333,
        -0.0625,
        0.3125,
        0.16666666666666666,
        -0.125,
        -0.65625,
        0.875,
        1.5,
        1.2083333333333333,
        1.0625,
        0.875,
        -0.041666666666666664,
        -0.3333333333333333,
        -1.25,
        -0.875,
        -0.25,
        1,
        1.625,
        -0.90625,
        -0.6666666666666666,
        -0.1875,
        0.4375,
        0.8125,
        0.6666666666666666,
        0.375,
        1,
        -0.9375,
        -0.3125,
        0.16666666666666666,
        0.40625,
        -0.375,
        0.25,
        1.5,
        2.125,
        -0.375,
        0.25,
        -0.041666666666666664,
        -0.1875,
        -2.125,
        -1.5,
        -0.25,
        0.375},
       [](const auto& x) {
         return df::avg_pool3d(x, {.ksize = {1, 2, 2, 3, 1}, .strides = {1, 1, 2, 1, 1}, .padding = df::Padding::same});
       }});
  check_image_row({video,
                   {2, 2, 2, 2, 1},
                   {-0.8125, 0.53125, -0.4375, 0.90625, 0.3125, -0.65625, 0.6875, -0.28125, -0.90625, 0.4375, -0.53125,
                    0.8125, -0.9375, 0.40625, -0.5625, 0.78125},
                   [](const auto& x) {
                     return df::avg_pool3d(
                         x, {.ksize = {1, 2, 2, 2, 1}, .strides = {1, 1, 1, 2, 1}, .padding = df::Padding::valid});
                   }});
  check_image_row(
      {video,
       {2, 2, 3, 4, 1},
       {-1.625, -0.375, 0.875,  -2.5,   -1.25,  0,      1.25,  2.5,   -0.875, 0.375,  1.625, -1.75,
        -0.5,   0.75,   2,      -1.375, -0.125, 1.125,  -2.25, -1,    0.25,   1.5,    2.75,  -0.625,
        1.75,   -1.625, -0.375, 0.875,  -2.5,   -1.25,  0,     1.25,  2.5,    -0.875, 0.375, 1.625,
        -1.75,  -0.5,   0.75,   2,      -1.375, -0.125, 1.125, -2.25, -1,     0.25,   1.5,   2.75},
       [](const auto& x) {
         return df::avg_pool3d(x, {.ksize = {1, 3, 1, 1, 1}, .strides = {1, 2, 1, 1, 1}, .padding = df::Padding::same});
       }});
  check_image_row({series, {1, 4, 2}, {1, -0.25, 1, 1.5, 1.25, 0.75, 1.25, -0.75}, [](const auto& x) {
                     return df::max_pool1d(x, {.ksize = 3, .strides = 2, .padding = df::Padding::same});
                   }});
  check_image_row({series, {1, 2, 2}, {1, -0.25, -0.5, 0.75}, [](const auto& x) {
                     return df::max_pool1d(x, {.ksize = 2, .strides = 3, .padding = df::Padding::valid});
                   }});
  check_image_row(
      {series,
       {1, 4, 2},
       {-0.25, -0.625, 0.25, 0.4166666666666667, -0.16666666666666666, 0, 0.875, -1.125},
       [](const auto& x) { return df::avg_pool1d(x, {.ksize = 3, .strides = 2, .padding = df::Padding::same}); }});
  check_image_row({series, {1, 2, 2}, {-0.25, -0.625, -0.875, 0.375}, [](const auto& x) {
                     return df::avg_pool1d(x, {.ksize = 2, .strides = 3, .padding = df::Padding::valid});
                   }});
  df::Graph graph;
  const auto whole = df::constant(graph, df::Tensor<std::int32_t>({1, 2, 1, 2, 1}, {7, -3, 2, 9}));
  CHECK(df::Session(graph).run(df::max_pool3d(whole, {.ksize = {1, 2, 1, 1, 1}})).to_string() ==
        "int32[1,1,1,2,1] [[[[[7], [9]]]]]");
  // bfloat16 has no number between 256 and 258: (256 + 258) / 2 would become 256 on the way.
  const auto coarse =
      df::constant(graph, df::Tensor<df::BFloat16>({1, 2, 1, 2, 1}, {df::BFloat16(256.0f), df::BFloat16(258.0f),
                                                                     df::BFloat16(256.0f), df::BFloat16(262.0f)}));
  CHECK(df::Session(graph).run(df::avg_pool3d(coarse, {.ksize = {1, 2, 1, 2, 1}})).span()[0] == df::BFloat16(258.0f));
  const auto pool = [](const df::Pool3DAttrs& attrs) {
    return [attrs](const df::Output<double>& x) { return df::max_pool3d(x, attrs); };
  };
  const df::PartialShape open = df::PartialShape::unknown(5);
  CHECK(contains(error_of_image({2, 2}, pool({}), {2, 2}), "MaxPool3D"));
  CHECK(contains(error_of_image(open, pool({.ksize = {1, 1, 1, 1}}), {1, 1, 1, 1, 1}), "5 elements"));
  CHECK(contains(error_of_image(open, pool({.ksize = {2, 1, 1, 1, 1}}), {1, 1, 1, 1, 1}), "batch and channels"));
  CHECK(
      contains(error_of_image(open, pool({.strides = {1, 0, 1, 1, 1}}), {1, 1, 1, 1, 1}), "strides must be positive"));
  CHECK(contains(error_of_image({1, 2, 2, 2, 1}, pool({.ksize = {1, 3, 1, 1, 1}}), {1, 2, 2, 2, 1}),
                 "the window's 3 planes do not fit into the input's 2"));
  CHECK(contains(error_of_image(open, pool({.ksize = {1, 3, 1, 1, 1}}), {1, 2, 2, 2, 1}), "do not fit"));
  const auto sequence = [](const df::Output<double>& x) { return df::avg_pool1d(x, {.ksize = 3}); };
  CHECK(contains(error_of_image({1, 2, 1}, sequence, {1, 2, 1}), "the window's 3 elements do not fit"));
  const auto empty = df::placeholder<double>(graph, open);
  CHECK(df::Session(graph)
            .run({{empty, df::Tensor<double>({0, 2, 2, 2, 3})}}, df::avg_pool3d(empty, {.ksize = {1, 2, 2, 1, 1}}))
            .shape() == df::Shape{0, 1, 1, 2, 3});
}

TEST_CASE("volumes are convolved with filters of several planes") {
  check_convolved_volumes({2, 3, 3, 4, 2}, {2, 2, 3, 2, 2}, {.strides = {1, 1, 1, 2, 1}, .padding = df::Padding::valid},
                          {2, 2, 2, 1, 2},
                          {-18.125, -6.6875, -18.125, -18.4375, 2.6875, -7.25, 9.625, 1.8125, 2.6875, 7.8125, -6.5625,
                           0.6875, -18.125, -8.9375, -18.125, -6.8125});
  check_convolved_volumes(
      {1, 4, 3, 3, 1}, {3, 2, 2, 1, 2}, {.strides = {1, 2, 1, 2, 1}, .padding = df::Padding::same}, {1, 2, 3, 2, 2},
      {-10.1875, 9.75,    6.75, 4.4375, 8.25,   -13.375, -2.5625, -6.625, 0.5625, 4.75,  3.6875, 1.9375,
       10.3125,  -17.875, -4,   -4.125, -4.375, 8.875,   3.875,   4.1875, 1.6875, -0.75, 0.8125, -2.25});
  check_convolved_volumes({1, 2, 2, 2, 1}, {3, 1, 1, 1, 1}, {.strides = {1, 1, 1, 1, 1}, .padding = df::Padding::same},
                          {1, 2, 2, 2, 1}, {0.625, 2.1875, 3.75, 5.3125, 5.625, 4.0625, 2.5, 0.9375});
  check_convolved_volumes({1, 3, 2, 2, 1}, {1, 1, 1, 1, 2}, {.strides = {1, 2, 1, 1, 1}, .padding = df::Padding::valid},
                          {1, 2, 2, 2, 2},
                          {5.625, 0, 4.0625, 0, 2.5, 0, 0.9375, 0, 4.6875, 0, 3.125, 0, 1.5625, 0, 0, 0});
  check_volumes_of<df::Half>();
  check_volumes_of<df::BFloat16>();
  check_volumes_of<float>();
  const auto convolve = [](const df::PartialShape& volume, const df::PartialShape& filter, const df::Conv3DAttrs& attrs,
                           const df::Shape& fed_volume, const df::Shape& fed_filter) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, volume), w = df::placeholder<double>(graph, filter);
    df::Session session(graph);
    return error_of([&] {
      session.run({{x, scattered(fed_volume)}, {w, scattered(fed_filter)}}, df::conv3d(x, w, attrs));
    });
  };
  const df::PartialShape open = df::PartialShape::unknown(5);
  const df::PartialShape three{3, df::dynamic, df::dynamic, df::dynamic, df::dynamic};
  CHECK(contains(convolve({2, 2}, open, {}, {2, 2}, {1, 1, 1, 1, 1}), "Conv3D"));
  CHECK(contains(convolve(open, open, {}, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}), "known number of planes"));
  CHECK(contains(convolve({1, 2, 2, 2, 3}, {1, 1, 1, 2, 4}, {}, {1, 2, 2, 2, 3}, {1, 1, 1, 2, 4}),
                 "3 channels, the filter is for 2"));
  CHECK(contains(convolve({1, 2, 2, 2, 1}, {3, 1, 1, 1, 1}, {}, {1, 2, 2, 2, 1}, {3, 1, 1, 1, 1}),
                 "the window's 3 planes do not fit into the input's 2"));
  CHECK(contains(convolve(open, three, {}, {1, 2, 2, 2, 1}, {3, 1, 1, 1, 1}), "the filter's 3 planes do not fit"));
  CHECK(contains(convolve(open, three, {}, {1, 1, 2, 2, 1}, {3, 1, 1, 1, 1}), "the filter's 3 planes do not fit"));
  CHECK(contains(convolve(open, three, {}, {1, 3, 2, 2, 2}, {3, 1, 1, 1, 1}), "INVALID_ARGUMENT"));
  CHECK(contains(convolve(open, three, {.strides = {1, 1, 1, 1}}, {1, 3, 1, 1, 1}, {3, 1, 1, 1, 1}), "5 elements"));
}

TEST_CASE("max pooling names the places of its maxima, and sends gradients there") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, df::PartialShape::unknown(4));
  const df::MaxPoolArgmaxAttrs windows{.ksize = {1, 2, 2, 1}, .strides = {1, 1, 2, 1}, .padding = df::Padding::same};
  const auto [y, places] = df::max_pool_with_argmax<std::int32_t>(x, windows);
  df::MaxPoolArgmaxAttrs of_all = windows;
  of_all.include_batch_in_index = true;
  const auto [z, far_places] = df::max_pool_with_argmax(x, of_all);
  const auto dy = df::placeholder<double>(graph, df::PartialShape::unknown(4));
  const auto dx = df::max_pool_grad_with_argmax(x, dy, places),
             far_dx = df::max_pool_grad_with_argmax(x, dy, far_places, true);
  const auto expected = df::gradients(df::reduce_sum(y * dy), x);
  const auto grown = df::gradients(df::reduce_sum(dx * dx * x), dy);
  const df::Tensor<double> at_x = scattered({2, 3, 4, 1}, 37), at_dy = scattered({2, 3, 2, 1}, 11);
  df::Session session(graph);
  const df::Tensor<double> wanted = session.run({{x, at_x}, {dy, at_dy}}, expected);
  const std::vector<double> numbers(wanted.begin(), wanted.end());
  check_near(session.run({{x, at_x}, {dy, at_dy}}, dx), {2, 3, 4, 1}, numbers, 0);
  check_near(session.run({{x, at_x}, {dy, at_dy}}, far_dx), {2, 3, 4, 1}, numbers, 0);
  CHECK(df::check_gradients(session, dx, {{dy, at_dy}}, {.feeds = {{x, at_x}}}).is_ok());
  CHECK(df::check_gradients(session, grown, {{dy, at_dy}}, {.feeds = {{x, at_x}}}).is_ok());
  // An index outside of its image is refused, though another image has its place.
  const auto image = df::placeholder<double>(graph, {2, 1, 2, 1});
  const auto given = df::placeholder<std::int64_t>(graph, {2, 1, 1, 1});
  const auto sums = df::max_pool_grad_with_argmax(image, df::constant(graph, scattered({2, 1, 1, 1})), given);
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{1} << 62}) {
    CHECK(contains(error_of([&] {
                     session.run(
                         {{image, scattered({2, 1, 2, 1})}, {given, df::Tensor<std::int64_t>({2, 1, 1, 1}, {0, bad})}},
                         sums);
                   }),
                   "MaxPoolGradWithArgmax: an index is outside of x"));
  }
  CHECK(contains(error_of([&] { df::max_pool_grad_with_argmax(image, image, given); }), "grad has shape [2,1,2,1]"));
}
