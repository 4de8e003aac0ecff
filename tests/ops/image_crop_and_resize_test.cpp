#include <dflow/ops/image/crop_and_resize.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
df::Tensor<T> cropped_images() {
  df::Tensor<T> images({2, 4, 5, 2});
  int i = 0;
  for (T& pixel : images) pixel = static_cast<T>(i++ * 37 % 97);
  return images;
}

/// Boxes inside, upside down, and outside of their images.
const df::Tensor<float>& corners_of_crops() {
  static const df::Tensor<float> boxes(
      {4, 4}, {0, 0, 1, 1, 0.2f, 0.1f, 0.7f, 0.9f, 0.8f, 0.6f, 0.3f, 0.1f, -0.2f, 0.5f, 0.5f, 1.3f});
  return boxes;
}
const df::Tensor<std::int32_t>& owners_of_crops() {
  static const df::Tensor<std::int32_t> owners({4}, {0, 1, 1, 0});
  return owners;
}

template <class T>
std::vector<float> crops_of(bool is_known, std::array<std::int64_t, 2> size, const df::CropAndResizeOptions& options) {
  df::Graph graph;
  const auto shape = [&](const df::Shape& known) {
    return is_known ? df::PartialShape(known) : df::PartialShape::unknown();
  };
  const auto x = df::placeholder<T>(graph, shape({2, 4, 5, 2}));
  const auto boxes = df::placeholder<float>(graph, shape({4, 4}));
  const auto owners = df::placeholder<std::int32_t>(graph, shape({4}));
  const auto y = df::crop_and_resize(x, boxes, owners, size, options);
  df::Session session(graph);
  const df::Tensor<float> value =
      session.run({{x, cropped_images<T>()}, {boxes, corners_of_crops()}, {owners, owners_of_crops()}}, y);
  CHECK(value.shape() == df::Shape{4, size[0], size[1], 2});
  return {value.begin(), value.end()};
}

void check_crops(const std::vector<float>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(static_cast<double>(got[i]) == Catch::Approx(want[i]).margin(1e-4));
}

}  // namespace

// The expected values are TensorFlow 2.21's, of CropAndResize.

TEST_CASE("boxes are cut out of images and resized as TensorFlow does") {
  for (const bool is_known : {true, false}) {
    const df::CropAndResizeOptions lines{.extrapolation_value = -5};
    const df::CropAndResizeOptions nearest{.method = df::CropMethod::nearest, .extrapolation_value = -5};
    const std::vector<double> wide{
        0.0,   37.0,     51.0,     88.0,     5.0,      42.0,  43.0,     80.0,  94.0,  34.0,     48.0,     85.0,
        28.28, 42.0,     65.2,     63.4,     28.4,     65.4,  75.00001, 18.88, 38.2,  75.2,     63.47999, 38.40001,
        39.12, 60.59999, 46.59999, 48.68001, 69.59999, 25.12, 50.59999, 81.78, 67.78, 48.52001, 34.52001, 36.59999,
        -5.0,  -5.0,     -5.0,     -5.0,     -5.0,     -5.0,  24.0,     61.0,  64.8,  24.2,     -5.0,     -5.0};
    const std::vector<double> flat{70.0,     10.0,     75.0,  15.0,     50.67, 28.5, 35.27, 51.90001,
                                   37.09999, 74.09999, 62.73, 23.09999, 42.9,  79.9, -5.0,  -5.0};
    check_crops(crops_of<float>(is_known, {2, 3}, lines), wide);
    check_crops(crops_of<std::uint8_t>(is_known, {2, 3}, lines), wide);
    check_crops(crops_of<double>(is_known, {1, 2}, lines), flat);
    check_crops(crops_of<float>(is_known, {2, 3}, nearest),
                {0.0,  37.0, 51.0, 88.0, 5.0,  42.0, 43.0, 80.0, 94.0, 34.0, 48.0, 85.0, 7.0,  44.0, 58.0, 95.0,
                 12.0, 49.0, 86.0, 26.0, 40.0, 77.0, 91.0, 31.0, 40.0, 77.0, 63.0, 3.0,  86.0, 26.0, 58.0, 95.0,
                 81.0, 21.0, 7.0,  44.0, -5.0, -5.0, -5.0, -5.0, -5.0, -5.0, 33.0, 70.0, 84.0, 24.0, -5.0, -5.0});
    check_crops(crops_of<std::int64_t>(is_known, {1, 2}, nearest),
                {61.0, 1.0, 66.0, 6.0, 7.0, 44.0, 12.0, 49.0, 40.0, 77.0, 86.0, 26.0, 51.0, 88.0, -5.0, -5.0});
  }
}

TEST_CASE("crops have gradients by images and by boxes") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 4, 5, 2});
  const auto boxes = df::placeholder<float>(graph, {4, 4});
  const auto owners = df::constant(graph, owners_of_crops());
  const auto y = df::crop_and_resize(x, boxes, owners, {3, 2});
  const auto loss = df::reduce_sum(y * y);
  const auto [dx, dboxes] = df::gradients(loss, x, boxes);
  df::Session session(graph);
  df::Tensor<float> images = cropped_images<float>();
  for (float& pixel : images) pixel /= 32;
  df::Tensor<float> corners = corners_of_crops().copy();
  for (float& corner : corners) corner += 0.013f;  // beside the kinks
  const auto loss_at = [&](const df::Tensor<float>& pixels, const df::Tensor<float>& at) {
    return static_cast<double>(session.run({{x, pixels}, {boxes, at}}, loss).data()[0]);
  };
  const auto check_slope = [&](const df::Tensor<float>& slope, df::Tensor<float>& moved, double step) {
    for (std::int64_t i = 0; i < slope.num_elements(); ++i) {
      const float before = moved.data()[i];
      moved.data()[i] = before + static_cast<float>(step);
      const double above = loss_at(images, corners);
      moved.data()[i] = before - static_cast<float>(step);
      const double below = loss_at(images, corners);
      moved.data()[i] = before;
      INFO("element " << i);
      CHECK(static_cast<double>(slope.data()[i]) ==
            Catch::Approx((above - below) / (2 * step)).epsilon(0.02).margin(0.05));
    }
  };
  const df::Tensor<float> by_images = session.run({{x, images}, {boxes, corners}}, dx);
  const df::Tensor<float> by_boxes = session.run({{x, images}, {boxes, corners}}, dboxes);
  check_slope(by_images, images, 0.0625);
  check_slope(by_boxes, corners, 0.001);
}

TEST_CASE("crops refuse other shapes and images that are not there, and know no number in a box without one") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 4, 5, 2});
  const auto empty = df::placeholder<float>(graph, {2, 0, 5, 2});
  const auto boxes = df::placeholder<float>(graph, {df::dynamic, 4});
  const auto owners = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const auto three = df::placeholder<std::int32_t>(graph, {3});
  const auto four = df::placeholder<float>(graph, {4, 4});
  CHECK(contains(error_of([&] { df::crop_and_resize(x, boxes, owners, {0, 2}); }), "0 x 2"));
  CHECK(contains(error_of([&] { df::crop_and_resize(empty, boxes, owners, {2, 2}); }), "no pixels"));
  CHECK(contains(error_of([&] { df::crop_and_resize(x, four, three, {2, 2}); }), "4 boxes and 3"));
  CHECK(contains(error_of([&] { df::crop_and_resize(boxes, boxes, owners, {2, 2}); }), "crop_and_resize"));
  const auto y = df::crop_and_resize(x, boxes, owners, {2, 1}, {.extrapolation_value = 3});
  df::Session session(graph);
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const df::Tensor<float> odd({2, 4}, {nan, 0, 1, 1, -infinity, 0, infinity, 1});
  const df::Tensor<std::int32_t> first({2}, {0, 1}), wrong({2}, {0, 2});
  const df::Tensor<float> value = session.run({{x, cropped_images<float>()}, {boxes, odd}, {owners, first}}, y);
  for (const float number : value) CHECK(number == 3);
  const auto run_wrong = [&] { session.run({{x, cropped_images<float>()}, {boxes, odd}, {owners, wrong}}, y); };
  CHECK(contains(error_of(run_wrong), "[0, 2)"));
  const df::Tensor<float> none = df::Tensor<float>::zeros({0, 4});
  const df::Tensor<std::int32_t> nobody = df::Tensor<std::int32_t>::zeros({0});
  const df::Tensor<float> nothing = session.run({{x, cropped_images<float>()}, {boxes, none}, {owners, nobody}}, y);
  CHECK(nothing.shape() == df::Shape{0, 2, 1, 2});
}

TEST_CASE("corners that are no numbers, or far outside, give the value outside") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  const df::Tensor<float> corners({4, 4}, {nan, nan, nan, nan, -infinite, 0, infinite, 1, 3e38f, 3e38f, 3e38f, 3e38f,
                                           -3e38f, nan, -3e38f, infinite});
  for (const df::CropMethod method : {df::CropMethod::bilinear, df::CropMethod::nearest}) {
    df::Graph graph;
    const auto x = df::constant(graph, df::Tensor<float>::full({1, 3, 2, 1}, 1));
    const auto boxes = df::placeholder<float>(graph, {4, 4});
    const auto owners = df::constant(graph, df::Tensor<std::int32_t>({4}, {0, 0, 0, 0}));
    const auto y = df::crop_and_resize(x, boxes, owners, {2, 2}, {.method = method, .extrapolation_value = 7});
    df::Session session(graph);
    const df::Tensor<float> crops = session.run({{boxes, corners}}, y);
    for (const float pixel : crops) CHECK(pixel == 7);
  }
}
