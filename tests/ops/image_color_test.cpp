#include <dflow/ops/image/color.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

const df::Tensor<float>& colored() {
  static const df::Tensor<float> image(
      {2, 3, 3}, {0.1f, 0.5f, 0.3f, 0.9f, 0.2f, 0.2f, 0.25f, 0.25f, 0.75f, 0, 0, 0, 1, 1, 1, 0.6f, 0.4f, 0.5f});
  return image;
}
const df::Tensor<std::uint8_t>& colored_bytes() {
  static const df::Tensor<std::uint8_t> image({2, 2, 3}, {10, 200, 30, 255, 0, 90, 128, 128, 128, 7, 77, 177});
  return image;
}

/// The value of `build(edge)` for the image, as doubles.
template <class T, class F>
std::vector<double> changed(const df::Tensor<T>& image, bool is_known, F&& build) {
  df::Graph graph;
  const auto x = df::placeholder<T>(graph, is_known ? df::PartialShape(image.shape()) : df::PartialShape::unknown());
  const auto y = build(x);
  df::Session session(graph);
  const auto value = session.run({{x, image}}, y);
  std::vector<double> numbers;
  for (const auto number : value) numbers.push_back(static_cast<double>(number));
  return numbers;
}

void check_near(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    CHECK(got[i] == Catch::Approx(want[i]).margin(2e-6));
  }
}

using Bytes = std::vector<double>;

}  // namespace

// The expected values are TensorFlow 2.21's, of the functions of the same names.

TEST_CASE("colours of floats are adjusted as TensorFlow does") {
  for (const bool is_known : {true, false}) {
    const auto run = [&](auto&& build) { return changed(colored(), is_known, build); };
    const std::vector<double> hsv = run([](auto& x) { return df::rgb_to_hsv(x); });
    check_near(hsv, {0.4166666865, 0.8000000119, 0.5, 0, 0.777777791, 0.8999999762, 0.6666666865, 0.6666666865, 0.75, 0,
                     0, 0, 0, 0, 1, 0.9166666865, 0.3333333433, 0.6});
    check_near(run([](auto& x) { return df::hsv_to_rgb(df::rgb_to_hsv(x)); }),
               {0.1, 0.5, 0.3, 0.9, 0.2, 0.2, 0.25, 0.25, 0.75, 0, 0, 0, 1, 1, 1, 0.6, 0.4, 0.5});
    check_near(run([](auto& x) { return df::adjust_hue(x, 0.3f); }),
               {0.22, 0.1, 0.5, 0.33999985, 0.9, 0.2, 0.75, 0.25, 0.3499999, 0, 0, 0, 1, 1, 1, 0.53999996, 0.6, 0.4});
    check_near(run([](auto& x) { return df::adjust_saturation(x, 1.5f); }),
               {0, 0.5, 0.25, 0.9, 0, 0, 0, 0, 0.75, 0, 0, 0, 1, 1, 1, 0.6, 0.3, 0.45});
    check_near(run([](auto& x) { return df::adjust_contrast(x, 2.0f); }),
               {-0.275, 0.60833335, 0.14166668, 1.32499993, 0.00833336, -0.05833331, 0.02500001, 0.10833332, 1.04166663,
                -0.47499999, -0.39166665, -0.45833331, 1.52499998, 1.60833335, 1.54166663, 0.72500002, 0.40833336,
                0.54166669});
    check_near(
        run([](auto& x) { return df::adjust_gamma(x, 2.0f, 0.5f); }),
        {0.005, 0.125, 0.045, 0.405, 0.02, 0.02, 0.03125, 0.03125, 0.28125, 0, 0, 0, 0.5, 0.5, 0.5, 0.18, 0.08, 0.125});
    check_near(run([](auto& x) { return df::rgb_to_grayscale(x); }),
               {0.35759002, 0.40921, 0.30697501, 0, 0.99990004, 0.47114003});
    check_near(run([](auto& x) { return df::per_image_standardization(x); }),
               {-0.98036772, 0.16737977, -0.40649393, 1.31512713, -0.69343084, -0.69343084, -0.5499624, -0.5499624,
                0.88472193, -1.26730454, -1.26730454, -1.26730454, 1.60206401, 1.60206401, 1.60206401, 0.45431671,
                -0.11955708, 0.16737977});
  }
}

TEST_CASE("colours of bytes are adjusted as TensorFlow does, within their range") {
  for (const bool is_known : {true, false}) {
    const auto run = [&](auto&& build) { return changed(colored_bytes(), is_known, build); };
    CHECK(run([](auto& x) { return df::adjust_brightness(x, 0.1f); }) ==
          Bytes{35, 225, 55, 255, 25, 115, 153, 153, 153, 32, 102, 202});
    CHECK(run([](auto& x) { return df::adjust_contrast(x, 0.5f); }) ==
          Bytes{55, 150, 68, 177, 50, 98, 114, 114, 117, 53, 89, 141});
    CHECK(run([](auto& x) { return df::adjust_hue(x, -0.2f); }) ==
          Bytes{200, 182, 10, 114, 0, 255, 128, 128, 128, 7, 177, 73});
    CHECK(run([](auto& x) { return df::adjust_saturation(x, 0.5f); }) ==
          Bytes{105, 200, 115, 255, 127, 172, 128, 128, 128, 92, 127, 177});
    CHECK(run([](auto& x) { return df::rgb_to_grayscale(x); }) == Bytes{124, 86, 128, 67});
    CHECK(run([](auto& x) { return df::adjust_gamma(x, 1.5f); }) ==
          Bytes{1, 177, 10, 255, 0, 53, 90, 90, 90, 1, 42, 147});
    CHECK(run([](auto& x) { return df::grayscale_to_rgb(df::rgb_to_grayscale(x)); }) ==
          Bytes{124, 124, 124, 86, 86, 86, 128, 128, 128, 67, 67, 67});
    check_near(run([](auto& x) { return df::per_image_standardization(x); }),
               {-1.17389154, 1.23734522, -0.9200772, 1.9353348, -1.30079877, -0.15863399, 0.32361335, 0.32361335,
                0.32361335, -1.21196377, -0.32361335, 0.94545865});
    CHECK(run([](auto& x) { return df::convert_image_dtype<std::uint16_t>(x); }) ==
          Bytes{2560, 51200, 7680, 65280, 0, 23040, 32768, 32768, 32768, 1792, 19712, 45312});
    CHECK(run([](auto& x) { return df::convert_image_dtype<std::int8_t>(x); }) ==
          Bytes{5, 100, 15, 127, 0, 45, 64, 64, 64, 3, 38, 88});
    check_near(run([](auto& x) { return df::convert_image_dtype<double>(x); }),
               {10 / 255.0, 200 / 255.0, 30 / 255.0, 1, 0, 90 / 255.0, 128 / 255.0, 128 / 255.0, 128 / 255.0, 7 / 255.0,
                77 / 255.0, 177 / 255.0});
  }
  CHECK(changed(colored(), true, [](auto& x) { return df::convert_image_dtype<std::uint8_t>(x); }) ==
        Bytes{25, 127, 76, 229, 51, 51, 63, 63, 191, 0, 0, 0, 255, 255, 255, 153, 102, 127});
}

TEST_CASE("gradients of hues and of standardised images are exact, and finite where there is no hue") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {1, 2, 3});
  const auto y = df::adjust_saturation(df::adjust_hue(x, 0.21f), 0.7f);
  const auto z = df::per_image_standardization(x);
  const auto dy = df::gradients(df::reduce_sum(y * y), x);
  const auto slope = df::gradients(df::reduce_sum(df::rgb_to_hsv(x)), x);
  df::Session session(graph);
  const df::Tensor<double> at({1, 2, 3}, {0.2, 0.7, 0.35, 0.8, 0.3, 0.55});
  CHECK(df::check_gradients(session, y, {{x, at}}).is_ok());
  CHECK(df::check_gradients(session, dy, {{x, at}}).is_ok());
  CHECK(df::check_gradients(session, z, {{x, at}}).is_ok());
  const df::Tensor<double> gray({1, 2, 3}, {0, 0, 0, 0.5, 0.5, 0.5});
  const df::Tensor<double> slopes = session.run({{x, gray}}, slope);
  for (const double number : slopes) CHECK(std::isfinite(number));
}

TEST_CASE("random amounts lie in their range and are drawn anew in each step") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {1, 1, 3});
  const auto brighter = df::random_brightness(x, 0.25, 3);
  const auto colder = df::random_saturation(df::random_hue(df::random_contrast(x, 0.5, 1.5, 4), 0.1, 5), 0.5, 1.5, 6);
  df::Session session(graph);
  const df::Tensor<float> at({1, 1, 3}, {0.5f, 0.5f, 0.5f});
  bool differs = false;
  float before = 0;
  for (int step = 0; step < 20; ++step) {
    const df::Tensor<float> value = session.run({{x, at}}, brighter);
    CHECK(value.data()[0] >= 0.25f);
    CHECK(value.data()[0] <= 0.75f);
    CHECK(value.data()[0] == value.data()[2]);
    differs = differs || (step > 0 && value.data()[0] != before);
    before = value.data()[0];
  }
  CHECK(differs);
  const df::Tensor<float> still = session.run({{x, at}}, colder);
  for (const float number : still) CHECK(number == Catch::Approx(0.5f));
}

TEST_CASE("colours refuse images without three channels, and amounts that are none") {
  df::Graph graph;
  const auto flat = df::placeholder<float>(graph, {4, 4});
  const auto two = df::placeholder<float>(graph, {4, 4, 2});
  const auto image = df::placeholder<float>(graph, {4, 4, 3});
  const auto numbers = df::placeholder<float>(graph, {2});
  CHECK(contains(error_of([&] { df::rgb_to_hsv(two); }), "rgb_to_hsv"));
  CHECK(contains(error_of([&] { df::hsv_to_rgb(two); }), "[4,4,2]"));
  CHECK(contains(error_of([&] { df::rgb_to_grayscale(two); }), "must be 3"));
  CHECK(contains(error_of([&] { df::grayscale_to_rgb(two); }), "must be 1"));
  CHECK(contains(error_of([&] { df::adjust_hue(two, 0.1f); }), "adjust_hue"));
  CHECK(contains(error_of([&] { df::adjust_contrast(flat, 0.1f); }), "[4,4]"));
  CHECK(contains(error_of([&] { df::per_image_standardization(flat); }), "[4,4]"));
  CHECK(contains(error_of([&] { df::adjust_brightness(image, numbers); }), "scalar"));
  CHECK(contains(error_of([&] { df::random_contrast(image, 1.5, 0.5); }), "[1.5, 0.5)"));
  CHECK(contains(error_of([&] { df::random_brightness(image, -1); }), "drawn"));
  CHECK(contains(error_of([&] { df::adjust_gamma(image, -1.0f); }), "gamma is negative"));
}
