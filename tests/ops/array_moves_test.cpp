#include <dflow/ops/array/reverse.hpp>
#include <dflow/ops/array/tile.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

df::Tensor<double> steps(const df::Shape& shape) {
  df::Tensor<double> tensor(shape);
  double next = 1;
  for (double& value : tensor) value = next++;
  return tensor;
}

std::vector<double> numbers_of(const df::Tensor<double>& tensor) { return {tensor.begin(), tensor.end()}; }

/// Of y, which is linear in x, fed and differentiated twice.
void check_moves(const df::Graph& graph, const df::Output<double>& x, const df::Output<double>& y,
                 const df::Tensor<double>& at) {
  const auto dx = df::gradients(df::reduce_sum(y * y * y), x);
  df::Session session(graph);
  CHECK(df::check_gradients(session, y, {{x, at}}).is_ok());
  CHECK(df::check_gradients(session, dx, {{x, at}}).is_ok());
}

/// Where NumPy's pad(range(extent), (before, after), mode) reads.
std::vector<std::int64_t> mirrored(std::int64_t extent, df::PadWidth width, df::Mirror mirror) {
  const std::int64_t left_out = mirror == df::Mirror::reflect ? 1 : 0;
  std::vector<std::int64_t> positions;
  for (std::int64_t i = -width.before; i < extent + width.after; ++i) {
    positions.push_back(i < 0 ? -i - 1 + left_out : i >= extent ? 2 * extent - 1 - left_out - i : i);
  }
  return positions;
}

}  // namespace

TEST_CASE("an axis is reversed whether it counts from the front or from behind") {
  for (const bool is_known : {true, false}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, is_known ? df::PartialShape{2, 1, 3} : df::PartialShape::unknown());
    df::Session session(graph);
    const auto run = [&](const df::IndexList& axes) {
      return numbers_of(session.run({{x, steps({2, 1, 3})}}, df::reverse(x, axes)));
    };
    CHECK(run(2) == std::vector<double>{3, 2, 1, 6, 5, 4});
    CHECK(run(-3) == std::vector<double>{4, 5, 6, 1, 2, 3});
    CHECK(run({0, -1}) == std::vector<double>{6, 5, 4, 3, 2, 1});
    CHECK(run(std::vector<int>{}) == std::vector<double>{1, 2, 3, 4, 5, 6});
    CHECK(df::reverse(x, {0, -1}, {.name = "both"}).name() == "both");
    check_moves(graph, x, df::reverse(x, {0, -1}), steps({2, 1, 3}));
    CHECK(contains(error_of([&] { df::reverse(x, {0, 0}); }), "axis 0 is named twice"));
    CHECK(contains(error_of([&] { df::reverse(x, 8); }), "axis 8"));
    CHECK(contains(error_of([&] { run(is_known ? 3 : 5); }), is_known ? "axis 3" : "6 positions and ranges"));
  }
}

TEST_CASE("a tensor is padded with its own mirror images") {
  for (const df::Mirror mirror : {df::Mirror::reflect, df::Mirror::symmetric}) {
    for (const bool is_known : {true, false}) {
      df::Graph graph;
      const auto x = df::placeholder<double>(graph, is_known ? df::PartialShape{3, 1, 4} : df::PartialShape::unknown());
      const auto y = df::mirror_pad(x, {{2, 1}, {0, 0}, {0, 3}}, mirror, {.name = "padded"});
      std::vector<double> expected;
      for (const std::int64_t i : mirrored(3, {2, 1}, mirror)) {
        for (const std::int64_t j : mirrored(4, {0, 3}, mirror)) expected.push_back(static_cast<double>(i * 4 + j + 1));
      }
      df::Session session(graph);
      const df::Tensor<double> got = session.run({{x, steps({3, 1, 4})}}, y);
      CHECK(got.shape() == df::Shape{6, 1, 7});
      CHECK(numbers_of(got) == expected);
      CHECK(y.name() == "padded");
      check_moves(graph, x, y, steps({3, 1, 4}));
      const std::int64_t most = mirror == df::Mirror::reflect ? 2 : 3;
      const auto status_of_rows = [&](df::PadWidth width) {
        return status_of([&] {
          return session.run({{x, steps({3, 1, 4})}}, df::mirror_pad(x, {width, {0, 0}, {0, 0}}, mirror));
        });
      };
      CHECK(status_of_rows({most, most}).ok());
      CHECK(status_of_rows({most + 1, 0}).code() == df::Code::invalid_argument);
      CHECK(status_of_rows({0, most + 1}).code() == df::Code::invalid_argument);
      CHECK(contains(error_of([&] { df::mirror_pad(x, {{-1, 0}, {0, 0}, {0, 0}}, mirror); }), "is negative"));
      if (is_known) CHECK(contains(error_of([&] { df::mirror_pad(x, {{1, 1}}, mirror); }), "1 pairs of paddings"));
    }
  }
}

TEST_CASE("the gradient of a tile is right where only the step knows shapes and multiples") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {df::dynamic, df::dynamic});
  for (const bool is_fed : {false, true}) {
    const auto fed = df::placeholder<std::int32_t>(graph, {2});
    const auto twice = df::identity(df::constant(graph, df::Tensor<std::int32_t>({2}, {2, 3})));
    const auto y = df::tile(x, is_fed ? fed : twice);
    if (!is_fed) {
      check_moves(graph, x, y, steps({2, 2}));
      continue;
    }
    const auto dx = df::gradients(df::reduce_sum(y), x);
    df::Session session(graph);
    const auto run = [&](std::int32_t columns) {
      return numbers_of(session.run({{x, steps({2, 2})}, {fed, df::Tensor<std::int32_t>({2}, {2, columns})}}, dx));
    };
    CHECK(run(3) == std::vector<double>{6, 6, 6, 6});
    CHECK(run(0) == std::vector<double>{0, 0, 0, 0});
  }
}
