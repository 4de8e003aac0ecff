#include <dflow/ops/array/blocks.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

using Moved = std::function<df::Output<double>(const df::Output<double>&)>;

df::Tensor<double> one_to_n(const df::Shape& shape) {
  df::Tensor<double> tensor(shape);
  double next = 1;
  for (double& value : tensor) value = next++;
  return tensor;
}

struct MovedRow {
  df::Shape x;
  df::Shape shape;
  std::vector<double> expected;  // TensorFlow 2.21's, of elements 1, 2, ...
  Moved move;
};

/// Values, shape and gradients of first and second order, where the shape is known, partly known and unknown.
void check_moved(const MovedRow& row) {
  std::vector<std::int64_t> open_batch(row.x.begin(), row.x.end());
  open_batch[0] = df::dynamic;
  for (const df::PartialShape& shape :
       {df::PartialShape(row.x), df::PartialShape(open_batch), df::PartialShape::unknown(row.x.rank())}) {
    INFO(row.x.to_string() << " as " << shape.to_string());
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, shape);
    const auto y = row.move(x);
    if (shape.is_fully_defined()) CHECK(y.shape() == df::PartialShape(row.shape));
    const auto dx = df::gradients(df::reduce_sum(y * y * y), x);
    df::Session session(graph);
    const df::Tensor<double> got = session.run({{x, one_to_n(row.x)}}, y);
    CHECK(got.shape() == row.shape);
    CHECK(std::vector<double>(got.begin(), got.end()) == row.expected);
    CHECK(df::check_gradients(session, y, {{x, one_to_n(row.x)}}).is_ok());
    CHECK(df::check_gradients(session, dx, {{x, one_to_n(row.x)}}).is_ok());
  }
}

std::string error_of_move(const df::PartialShape& shape, const Moved& move, const df::Shape& fed) {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, shape);
  df::Session session(graph);
  return error_of([&] { session.run({{x, one_to_n(fed)}}, move(x)); });
}

}  // namespace

TEST_CASE("blocks of an image become depth, and depth becomes blocks") {
  const auto to_depth = [](const auto& x) { return df::space_to_depth(x, 2); };
  const auto to_space = [](const auto& x) { return df::depth_to_space(x, 2); };
  check_moved({{1, 2, 4, 1}, {1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8}, to_depth});
  check_moved({{1, 1, 2, 4}, {1, 2, 4, 1}, {1, 2, 5, 6, 3, 4, 7, 8}, to_space});
  check_moved({{2, 2, 2, 2}, {2, 1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, to_depth});
  const auto unknown = df::PartialShape::unknown(4);
  CHECK(contains(error_of_move({1, 3, 2, 1}, to_depth, {1, 3, 2, 1}), "the height of 3 cannot be divided by 2"));
  CHECK(contains(error_of_move({1, 2, 2, 6}, to_space, {1, 2, 2, 6}), "the depth of 6 cannot be divided by 4"));
  CHECK(contains(error_of_move(unknown, to_depth, {2, 3, 2, 1}), "Reshape"));
  CHECK(contains(error_of_move(unknown, to_space, {1, 2, 2, 6}), "Reshape"));
  CHECK(contains(error_of_move({4, 4}, to_depth, {4, 4}), "an image has the rank 4"));
  CHECK(contains(error_of_move(unknown, [](const auto& x) { return df::space_to_depth(x, 0); }, {1, 1, 1, 1}),
                 "the block size is 0"));
}

TEST_CASE("an image without elements keeps its known shape between space and depth") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {df::dynamic, 0, 4, 3});
  df::Session session(graph);
  CHECK(session.run({{x, df::Tensor<double>({5, 0, 4, 3})}}, df::space_to_depth(x, 2)).shape() ==
        df::Shape{5, 0, 2, 12});
}

TEST_CASE("blocks of a grid become batches, and batches become blocks") {
  const auto to_batch = [](const auto& x) { return df::space_to_batch(x, {2, 2}, {{0, 1}, {1, 0}}); };
  const auto to_space = [](const auto& x) { return df::batch_to_space(x, {2, 2}, {{0, 1}, {1, 0}}); };
  check_moved({{1, 1, 3, 1}, {4, 1, 2, 1}, {0, 2, 1, 3, 0, 0, 0, 0}, to_batch});
  check_moved({{4, 1, 2, 1}, {1, 1, 3, 1}, {3, 2, 4}, to_space});
  check_moved({{1, 4, 2}, {2, 2, 2}, {1, 2, 5, 6, 3, 4, 7, 8}, [](const auto& x) { return df::space_to_batch(x, 2); }});
  check_moved({{2, 2, 2}, {1, 4, 2}, {1, 2, 5, 6, 3, 4, 7, 8}, [](const auto& x) { return df::batch_to_space(x, 2); }});
  check_moved({{1, 1, 2, 2, 1, 2}, {4, 1, 1, 1, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, [](const auto& x) {
                 return df::space_to_batch(x, {1, 2, 2});
               }});
  CHECK(contains(error_of_move({1, 3, 2}, [](const auto& x) { return df::space_to_batch(x, 2); }, {1, 3, 2}),
                 "dimension 1 of 3 cannot be divided by 2"));
  CHECK(contains(error_of_move({3, 3, 2}, [](const auto& x) { return df::batch_to_space(x, 2); }, {3, 3, 2}),
                 "the batch of 3"));
  CHECK(contains(error_of_move({2, 1, 2},
                               [](const auto& x) {
                                 return df::batch_to_space(x, 2, {{1, 2}});
                               },
                               {2, 1, 2}),
                 "are more than 2"));
  CHECK(contains(error_of_move({2, 1}, [](const auto& x) { return df::space_to_batch(x, {1, 1}); }, {2, 1}), "rank"));
  CHECK(contains(error_of_move({2, 1},
                               [](const auto& x) {
                                 return df::space_to_batch(x, 1, {{-1, 0}});
                               },
                               {2, 1}),
                 "is negative"));
}

TEST_CASE("a tensor of any rank is the diagonal of another one") {
  const auto spread = [](const auto& x) { return df::diag(x); };
  const auto part = [](const auto& x) { return df::diag_part(x); };
  check_moved({{2}, {2, 2}, {1, 0, 0, 2}, spread});
  check_moved({{1, 2}, {1, 2, 1, 2}, {1, 0, 0, 2}, spread});
  check_moved({{2, 2}, {2}, {1, 4}, part});
  check_moved({{2, 2, 2, 2}, {2, 2}, {1, 6, 11, 16}, part});
  CHECK(contains(error_of_move({2, 3}, part, {2, 3}), "two halves"));
  CHECK(contains(error_of_move({2}, part, {2}), "two halves"));
  CHECK(contains(error_of_move(df::PartialShape::unknown(4), part, {2, 3, 3, 2}), "Reshape"));
  CHECK(contains(error_of_move({1, 1, 1, 1, 1}, spread, {1, 1, 1, 1, 1}), "10 dimensions"));
}

TEST_CASE("a placeholder with a default has its value where a step feeds none") {
  df::Graph graph;
  const auto value = df::constant(graph, one_to_n({2}));
  const auto x = df::placeholder_with_default(value, {df::dynamic});
  const auto twin = df::placeholder_with_default(value, {df::dynamic});
  const auto y = x * 2.0 + twin;
  df::Session session(graph);
  const auto numbers = [](const df::Tensor<double>& tensor) {
    return std::vector<double>(tensor.begin(), tensor.end());
  };
  CHECK(x.shape() == df::PartialShape{df::dynamic});
  CHECK(numbers(session.run(y)) == std::vector<double>{3, 6});
  CHECK(numbers(session.run({{x, df::Tensor<double>({1}, {5})}}, y)) == std::vector<double>{11, 12});
  CHECK(contains(error_of([&] { session.run({{x, df::Tensor<double>(1.0)}}, y); }), "[?]"));
  CHECK(contains(error_of([&] { df::placeholder_with_default(value, {3}); }), "PlaceholderWithDefault"));
  CHECK(numbers(session.run(df::gradients(df::reduce_sum(y), value))) == std::vector<double>{3, 3});
}

TEST_CASE("the shapes of several tensors are taken at once") {
  df::Graph graph;
  const auto a = df::constant(graph, one_to_n({2, 3})), b = df::constant(graph, one_to_n({4}));
  const std::vector<df::Output<std::int32_t>> shapes = df::shape_n<double>({a, b}, {.name = "of"});
  df::Session session(graph);
  CHECK(session.run(shapes[0]).to_string() == "int32[2] [2, 3]");
  CHECK(session.run(shapes[1]).to_string() == "int32[1] [4]");
  CHECK(shapes[1].name() == "of_1");
}
