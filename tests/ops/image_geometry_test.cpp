#include <dflow/ops/image/geometry.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

using Pixels = std::vector<int>;

/// The value of `build(edge)` for pixels 0, 1, ... of 5 x 6, by themselves or as a batch of one.
template <class F>
Pixels moved_pixels(bool is_known, bool is_batch, F&& build) {
  const df::Shape shape = is_batch ? df::Shape{1, 5, 6, 1} : df::Shape{5, 6, 1};
  df::Tensor<int> image(shape);
  std::iota(image.begin(), image.end(), 0);
  df::Graph graph;
  const auto x =
      df::placeholder<int>(graph, is_known ? df::PartialShape(shape) : df::PartialShape::unknown(shape.rank()));
  const df::Output<int> y = build(x);
  df::Session session(graph);
  const df::Tensor<int> value = session.run({{x, image}}, y);
  if (is_known) CHECK(y.shape() == df::PartialShape(value.shape()));
  return {value.begin(), value.end()};
}

}  // namespace

// The expected values are TensorFlow 2.21's, of the functions of the same names.

TEST_CASE("images are flipped, turned, cut and padded as TensorFlow does") {
  for (const bool is_known : {true, false}) {
    for (const bool is_batch : {true, false}) {
      INFO("known " << is_known << ", batch " << is_batch);
      const auto run = [&](auto&& build) { return moved_pixels(is_known, is_batch, build); };
      const Pixels turned{5, 11, 17, 23, 29, 4, 10, 16, 22, 28, 3, 9, 15, 21, 27,
                          2, 8,  14, 20, 26, 1, 7,  13, 19, 25, 0, 6, 12, 18, 24};
      CHECK(run([](auto& x) { return df::rot90(x); }) == turned);
      CHECK(run([](auto& x) { return df::rot90(x, -3); }) == turned);
      CHECK(run([](auto& x) { return df::rot90(x, 7); }) == Pixels(turned.rbegin(), turned.rend()));
      CHECK(run([](auto& x) { return df::rot90(df::rot90(x, 2), 2); }) == run([](auto& x) { return df::rot90(x, 0); }));
      CHECK(run([](auto& x) { return df::flip_left_right(df::flip_up_down(x)); }) ==
            run([](auto& x) { return df::rot90(x, 2); }));
      CHECK(run([](auto& x) { return df::flip_up_down(df::transpose_image(x)); }) == turned);
      CHECK(run([](auto& x) { return df::central_crop(x, 0.5); }) ==
            Pixels{7, 8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 22});
      CHECK(run([](auto& x) { return df::resize_image_with_crop_or_pad(x, 8, 3); }) ==
            Pixels{0, 0, 0, 1, 2, 3, 7, 8, 9, 13, 14, 15, 19, 20, 21, 25, 26, 27, 0, 0, 0, 0, 0, 0});
      CHECK(run([](auto& x) { return df::resize_image_with_crop_or_pad(x, 2, 9); }) ==
            Pixels{0, 6, 7, 8, 9, 10, 11, 0, 0, 0, 12, 13, 14, 15, 16, 17, 0, 0});
      CHECK(run([](auto& x) { return df::pad_to_bounding_box(x, 1, 2, 7, 8); }) ==
            Pixels{0,  0,  0, 0,  0,  0,  0,  0,  0,  0,  0,  1,  2,  3, 4, 5,  0,  0,  6,
                   7,  8,  9, 10, 11, 0,  0,  12, 13, 14, 15, 16, 17, 0, 0, 18, 19, 20, 21,
                   22, 23, 0, 0,  24, 25, 26, 27, 28, 29, 0,  0,  0,  0, 0, 0,  0,  0});
      CHECK(run([](auto& x) { return df::crop_to_bounding_box(x, 1, 2, 2, 3); }) == Pixels{8, 9, 10, 14, 15, 16});
    }
  }
}

TEST_CASE("gradients of moved pixels go back to where the pixels were") {
  for (const bool is_known : {true, false}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, is_known ? df::PartialShape{2, 3, 1} : df::PartialShape::unknown(3));
    const auto y = df::resize_image_with_crop_or_pad(df::rot90(df::pad_to_bounding_box(x, 1, 0, 4, 4)), 3, 5);
    const auto dx = df::gradients(df::reduce_sum(y * y * y), x);
    df::Session session(graph);
    const df::Tensor<double> at({2, 3, 1}, {1, 2, 3, 4, 5, 6});
    CHECK(df::check_gradients(session, y, {{x, at}}).is_ok());
    CHECK(df::check_gradients(session, dx, {{x, at}}).is_ok());
  }
}

TEST_CASE("images of a batch are flipped by chance, each for itself") {
  df::Graph graph;
  const auto x = df::placeholder<int>(graph, {8, 1, 2, 1});
  const auto one = df::placeholder<int>(graph, {2, 1, 1});
  const auto y = df::random_flip_left_right(x, 11), z = df::random_flip_up_down(one, 12);
  df::Session session(graph);
  df::Tensor<int> images({8, 1, 2, 1});
  for (int i = 0; i < 16; ++i) images.data()[i] = i;
  const df::Tensor<int> two({2, 1, 1}, {1, 2});
  int flips = 0, same = 0, turned = 0;
  for (int step = 0; step < 20; ++step) {
    const df::Tensor<int> value = session.run({{x, images}}, y);
    for (int i = 0; i < 16; i += 2) {
      const int a = value.data()[i], b = value.data()[i + 1];
      CHECK(std::min(a, b) == i);
      CHECK(std::max(a, b) == i + 1);
      (a < b ? same : flips) += 1;
    }
    const df::Tensor<int> image = session.run({{one, two}}, z);
    CHECK(image.data()[0] + image.data()[1] == 3);
    turned += image.data()[0] == 2;
  }
  CHECK(flips > 40);
  CHECK(same > 40);
  CHECK(turned > 2);
  CHECK(turned < 18);
}

TEST_CASE("random crops reach every position and nothing outside") {
  for (const bool is_known : {true, false}) {
    df::Graph graph;
    const auto x = df::placeholder<int>(graph, is_known ? df::PartialShape{4, 3, 1} : df::PartialShape::unknown());
    const auto y = df::random_crop(x, {2, 3, 1}, 5);
    df::Session session(graph);
    df::Tensor<int> image({4, 3, 1});
    std::iota(image.begin(), image.end(), 0);
    std::set<int> first;
    for (int step = 0; step < 40; ++step) {
      const df::Tensor<int> part = session.run({{x, image}}, y);
      CHECK(part.shape() == df::Shape{2, 3, 1});
      CHECK(part.data()[5] == part.data()[0] + 5);
      first.insert(part.data()[0]);
    }
    CHECK(first == std::set<int>{0, 3, 6});
    const std::string refused = error_of([&] { session.run({{x, image}}, df::random_crop(x, {5, 3, 1})); });
    CHECK(contains(refused, is_known ? "random_crop" : "Slice"));
  }
}

TEST_CASE("moves of pixels refuse other ranks and boxes outside") {
  df::Graph graph;
  const auto flat = df::placeholder<float>(graph, {4, 4});
  const auto unknown = df::placeholder<float>(graph, df::PartialShape::unknown());
  const auto image = df::placeholder<float>(graph, {4, 4, 3});
  const auto open = df::placeholder<float>(graph, df::PartialShape::unknown(3));
  CHECK(contains(error_of([&] { df::flip_left_right(flat); }), "[4,4]"));
  CHECK(contains(error_of([&] { df::rot90(flat); }), "rot90"));
  CHECK(contains(error_of([&] { df::random_flip_up_down(unknown); }), "random_flip_up_down"));
  CHECK(contains(error_of([&] { df::central_crop(image, 0); }), "(0, 1]"));
  CHECK(contains(error_of([&] { df::crop_to_bounding_box(image, 3, 0, 2, 1); }), "Slice"));
  CHECK(contains(error_of([&] { df::crop_to_bounding_box(image, -1, 0, 2, 1); }), "outside"));
  CHECK(contains(error_of([&] { df::crop_to_bounding_box(image, 0, 0, 0, 1); }), "0 x 1"));
  CHECK(contains(error_of([&] { df::pad_to_bounding_box(image, 1, 0, 4, 4); }), "do not fit"));
  CHECK(contains(error_of([&] { df::resize_image_with_crop_or_pad(image, 0, 4); }), "0 x 4"));
  df::Session session(graph);
  const auto late = df::pad_to_bounding_box(open, 1, 0, 4, 4);
  const df::Tensor<float> pixels = df::Tensor<float>::zeros({4, 4, 3});
  CHECK(contains(error_of([&] { session.run({{open, pixels}}, late); }), "Pad"));
}

TEST_CASE("an extent beyond int32 is refused at the line of the program") {
  df::Graph graph;
  const auto image = df::placeholder<float>(graph, {4, 4, 3});
  const auto open = df::placeholder<float>(graph, df::PartialShape::unknown(3));
  const std::int64_t huge = std::int64_t{1} << 40;
  const std::size_t before = graph.num_nodes();
  const auto check_refusal = [](const df::Status& status) {
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(contains(status.where().file_name(), "image_geometry_test.cpp"));
    CHECK(contains(status.message(), "does not fit in int32"));
  };
  check_refusal(status_of([&] { df::crop_to_bounding_box(image, huge, 0, 1, 1); }));
  check_refusal(status_of([&] { df::crop_to_bounding_box(open, 0, 0, huge, 1); }));
  check_refusal(status_of([&] { df::pad_to_bounding_box(open, 0, huge, 4, huge + 4); }));
  check_refusal(status_of([&] { df::resize_image_with_crop_or_pad(open, huge, 4); }));
  CHECK(graph.num_nodes() == before);
}
