#include <dflow/ops/reduction/segment.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace df = dflow;

// Expected: TensorFlow 2.21, tf.math.unsorted_segment_sum and its gradient.
TEMPLATE_TEST_CASE("rows with negative ids are left out of segments, and ids have any shape that data begins with", "",
                   float, double, df::Half, df::BFloat16) {
  using T = TestType;
  df::Graph graph;
  const auto data = df::placeholder<T>(graph);
  const auto ids = df::placeholder<std::int32_t>(graph);
  const auto sums = df::unsorted_segment_sum(data, ids, df::constant(graph, std::int32_t{3}));
  df::Tensor<T> weights(df::Shape{3, 2}), value(df::Shape{2, 3, 2});
  for (std::size_t i = 0; i < 6; ++i) weights.span()[i] = T(static_cast<float>(i + 1));
  for (std::size_t i = 0; i < 12; ++i) value.span()[i] = T(static_cast<float>(i + 1));
  const auto slope = df::gradients(df::reduce_sum(sums * df::constant(graph, weights)), data);
  df::Session session(graph);
  const auto [y, dx] =
      session.run({{data, value}, {ids, df::Tensor<std::int32_t>({2, 3}, {0, -1, 1, 1, 0, -7})}}, sums, slope);
  const auto equals = [](const df::Tensor<T>& got, std::vector<float> wanted) {
    REQUIRE(got.num_elements() == static_cast<std::int64_t>(wanted.size()));
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(static_cast<float>(got.span()[i]) == wanted[i]);
  };
  CHECK(y.shape() == df::Shape{3, 2});
  equals(y, {10, 12, 12, 14, 0, 0});
  CHECK(dx.shape() == df::Shape{2, 3, 2});
  equals(dx, {1, 2, 0, 0, 3, 4, 3, 4, 1, 2, 0, 0});
  // One id for all of data, and as many as it has elements.
  const auto whole = session.run({{data, value}, {ids, df::Tensor<std::int32_t>(1)}}, sums);
  CHECK(whole.shape() == df::Shape{3, 2, 3, 2});
  CHECK(static_cast<float>(whole.span()[12]) == 1);
  CHECK(static_cast<float>(whole.span()[0]) == 0);
  df::Tensor<std::int32_t> each(df::Shape{2, 3, 2});
  for (std::size_t i = 0; i < 12; ++i) each.span()[i] = static_cast<std::int32_t>(i % 4) - 1;
  equals(session.run({{data, value}, {ids, each}}, sums), {2 + 6 + 10, 3 + 7 + 11, 4 + 8 + 12});
}

TEST_CASE("shapes and ids that do not fit segments are refused") {
  df::Graph graph;
  const auto data = df::placeholder<float>(graph);
  const auto ids = df::placeholder<std::int64_t>(graph);
  const auto sums = df::unsorted_segment_sum(data, ids, df::constant(graph, std::int32_t{2}));
  df::Session session(graph);
  const df::Tensor<float> value({2, 2}, {1, 2, 3, 4});
  const auto error_with = [&](const df::Tensor<std::int64_t>& given) {
    return error_of([&] { session.run({{data, value}, {ids, given}}, sums); });
  };
  CHECK(contains(error_with(df::Tensor<std::int64_t>({3}, {0, 1, 0})), "[3]"));
  CHECK(contains(error_with(df::Tensor<std::int64_t>({2, 2, 1}, {0, 1, 0, 1})), "[2,2,1]"));
  CHECK(contains(error_with(df::Tensor<std::int64_t>({2}, {-1, 2})), "segment_ids[1] = 2"));
  const auto known = df::placeholder<float>(graph, {2, 3});
  CHECK(contains(error_of([&] {
                   df::unsorted_segment_sum(known, df::placeholder<std::int64_t>(graph, {3}),
                                            df::constant(graph, std::int32_t{2}));
                 }),
                 "UnsortedSegmentSum"));
}

TEST_CASE("16-bit segments are rounded once") {
  df::Graph graph;
  const auto ones = df::constant(graph, df::Tensor<df::BFloat16>::full({1001}, df::BFloat16(1.0f)));
  const auto ids = df::constant(graph, df::Tensor<std::int32_t>::zeros({1001}));
  const auto sums = df::unsorted_segment_sum(ones, ids, df::constant(graph, std::int32_t{1}));
  df::Session session(graph);
  CHECK(static_cast<float>(session.run(sums)(0)) == 1000.0f);
}
