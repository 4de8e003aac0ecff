#include <dflow/ops/image/resize.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

struct Convention {
  df::ResizeMethod method;
  df::ResizeAttrs attrs;
};

std::vector<Convention> all_conventions() {
  std::vector<Convention> all;
  for (int method = 0; method < 4; ++method) {
    all.push_back({static_cast<df::ResizeMethod>(method), {}});
    all.push_back({static_cast<df::ResizeMethod>(method), {.align_corners = true}});
    if (method != 3) all.push_back({static_cast<df::ResizeMethod>(method), {.half_pixel_centers = true}});
  }
  return all;
}

template <class T>
df::Tensor<T> odd_pixels(const df::Shape& shape, int step) {
  df::Tensor<T> images(shape);
  int next = 3;
  for (T& pixel : images) pixel = static_cast<T>(((next += step) % 23) - 11);
  return images;
}

template <class T>
double product_of(const df::Tensor<T>& a, const df::Tensor<float>& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    sum += static_cast<double>(a.data()[i]) * static_cast<double>(b.data()[i]);
  }
  return sum;
}

std::vector<float> pixels_of(const df::Tensor<float>& images) { return {images.begin(), images.end()}; }

}  // namespace

TEST_CASE("gradients of resizes are the transposes of the resizes, and theirs the resizes") {
  for (const auto& [method, attrs] : all_conventions()) {
    for (const df::Shape& size : {df::Shape{5, 3}, df::Shape{2, 7}, df::Shape{1, 1}}) {
      INFO("method " << static_cast<int>(method) << ", corners " << attrs.align_corners << ", half pixels "
                     << attrs.half_pixel_centers << ", size " << size.to_string());
      df::Graph graph;
      const auto x = df::placeholder<float>(graph, {2, 3, 4, 2});
      const auto y = df::resize_images(x, size, method, attrs);
      const auto w = df::placeholder<float>(graph, {2, size.dim(0), size.dim(1), 2});
      const auto dx = df::gradients(df::reduce_sum(y * w), x);
      const auto v = df::placeholder<float>(graph, {2, 3, 4, 2});
      const auto dw = df::gradients(df::reduce_sum(dx * v), w);
      df::Session session(graph);
      const df::Tensor<float> at_w = odd_pixels<float>({2, size.dim(0), size.dim(1), 2}, 5);
      const df::Tensor<float> at_v = odd_pixels<float>({2, 3, 4, 2}, 7);
      const df::Tensor<float> slope = session.run({{x, odd_pixels<float>({2, 3, 4, 2}, 1)}, {w, at_w}}, dx);
      for (std::int64_t i = 0; i < slope.num_elements(); ++i) {
        df::Tensor<float> unit = df::Tensor<float>::zeros({2, 3, 4, 2});
        unit.data()[i] = 1;
        const df::Tensor<float> column = session.run({{x, unit}}, y);
        CHECK(static_cast<double>(slope.data()[i]) == Catch::Approx(product_of(column, at_w)).margin(1e-4));
      }
      const df::Tensor<float> back = session.run({{x, at_v}, {w, at_w}, {v, at_v}}, dw);
      const df::Tensor<float> again = session.run({{x, at_v}}, y);
      for (std::int64_t i = 0; i < back.num_elements(); ++i) {
        CHECK(back.data()[i] == Catch::Approx(again.data()[i]).margin(1e-4));
      }
    }
  }
}

TEST_CASE("a gradient of a resize has the element type of the images") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, df::PartialShape::unknown());
  const auto y = df::resize_bilinear(x, {4, 4});
  const df::Output<double> dx = df::gradients(df::reduce_sum(y), x);
  df::Session session(graph);
  const df::Tensor<double> slope = session.run({{x, odd_pixels<double>({1, 2, 2, 1}, 1)}}, dx);
  CHECK(slope.shape() == df::Shape{1, 2, 2, 1});
  CHECK(product_of(slope, df::Tensor<float>({1, 2, 2, 1}, {1, 1, 1, 1})) == Catch::Approx(16));
}

TEST_CASE("one image is resized without a batch, to a size that may come along an edge") {
  df::Graph graph;
  const auto image = df::placeholder<std::uint8_t>(graph, {2, 2, 1});
  const auto size = df::placeholder<std::int32_t>(graph, {2});
  const auto y = df::resize_images(image, {2, 4}, df::ResizeMethod::nearest_neighbor, {}, {.name = "wide"});
  const auto z = df::resize_images(image, size, df::ResizeMethod::area);
  CHECK(y.name() == "wide");
  CHECK(y.shape() == df::PartialShape{2, 4, 1});
  df::Session session(graph);
  const df::Tensor<std::uint8_t> at({2, 2, 1}, {1, 3, 5, 200});
  const df::Tensor<std::int32_t> one({2}, {1, 1});
  CHECK(pixels_of(session.run({{image, at}}, y)) == std::vector<float>{1, 1, 3, 3, 5, 5, 200, 200});
  CHECK(pixels_of(session.run({{image, at}, {size, one}}, z)) == std::vector<float>{52.25f});
  const df::Tensor<std::int32_t> bad({2}, {1, -1});
  const std::string refused = error_of([&] { session.run({{image, at}, {size, bad}}, z); });
  CHECK(contains(refused, "size[1] = -1 is not positive"));
  CHECK(contains(refused, "ResizeArea"));
}

TEST_CASE("resizes refuse images and conventions that they do not know") {
  df::Graph graph;
  const auto flat = df::placeholder<float>(graph, {4, 4});
  const auto unknown = df::placeholder<float>(graph, df::PartialShape::unknown());
  const auto images = df::placeholder<float>(graph, {1, 4, 4, 1});
  CHECK(contains(error_of([&] { df::resize_images(flat, {2, 2}); }), "[4,4]"));
  CHECK(contains(error_of([&] { df::resize_images(unknown, {2, 2}); }), "resize_images"));
  CHECK(contains(error_of([&] { df::resize_bilinear(images, {0, 2}); }), "size[0] = 0"));
  const df::ResizeAttrs both{.align_corners = true, .half_pixel_centers = true};
  CHECK(contains(error_of([&] { df::resize_bicubic(images, {2, 2}, both); }), "exclude each other"));
  const df::ResizeAttrs half{.half_pixel_centers = true};
  CHECK(contains(error_of([&] { df::resize_images(images, {2, 2}, df::ResizeMethod::area, half); }), "area"));
}

TEST_CASE("the corners of a single pixel are the pixel itself, also of its area") {
  df::Graph graph;
  const auto image = df::placeholder<float>(graph, {1, 1, 1});
  const auto y = df::resize_images(image, {2, 2}, df::ResizeMethod::area, {.align_corners = true});
  df::Session session(graph);
  const df::Tensor<float> pixel({1, 1, 1}, {7});
  CHECK(pixels_of(session.run({{image, pixel}}, y)) == std::vector<float>{7, 7, 7, 7});
}
