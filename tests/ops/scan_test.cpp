// Running sums and products, and reductions of runs of rows.
#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/scan.hpp>
#include <dflow/ops/reduction/sorted_segment.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
std::vector<double> values_of_scan(const df::Tensor<T>& tensor) {
  std::vector<double> values;
  for (const T& value : tensor) values.push_back(static_cast<double>(value));
  return values;
}

}  // namespace

TEST_CASE("running sums and products go along the first axis unless another is named") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto sums = df::cumsum(x), products = df::cumprod(x, -1, {.exclusive = true, .reverse = true});
  df::Session session(graph);
  const auto [s, p] = session.run({{x, df::Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})}}, sums, products);
  CHECK(values_of_scan(s) == std::vector<double>{1, 2, 3, 5, 7, 9});
  CHECK(values_of_scan(p) == std::vector<double>{6, 3, 1, 30, 6, 1});
  // By hand: the third of 256 + 1 + 1 is 258 in bfloat16, and 256 + 1 alone is 256.
  const auto h = df::placeholder<df::BFloat16>(graph);
  const auto y = session.run(
      {{h, df::Tensor<df::BFloat16>({3}, {df::BFloat16(256), df::BFloat16(1), df::BFloat16(1)})}}, df::cumsum(h, 0));
  CHECK(values_of_scan(y) == std::vector<double>{256, 256, 258});
}

TEST_CASE("gradients of products are those of the factors that are 0, too, in every order") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {3});
  const auto all = df::reduce_sum(df::cumprod(x, 0) * df::constant(graph, df::Tensor<double>({3}, {0, 0, 1})));
  const auto segment = df::reduce_sum(df::segment_prod(x, df::Tensor<std::int32_t>({3}, {0, 0, 0})));
  df::Session session(graph);
  for (const auto& product : {all, segment}) {
    // abc: da = bc, and d(da) by (a, b, c) = (0, c, b).
    const auto first = df::gradients(product, x);
    const auto pick = df::constant(graph, df::Tensor<double>({3}, {1, 0, 0}));
    const auto second = df::gradients(df::reduce_sum(first * pick), x);
    const auto third =
        df::gradients(df::reduce_sum(second * df::constant(graph, df::Tensor<double>({3}, {0, 1, 0}))), x);
    const auto [d, dd, ddd] = session.run({{x, df::Tensor<double>({3}, {0, 0, 5})}}, first, second, third);
    CHECK(values_of_scan(d) == std::vector<double>{0, 0, 0});
    CHECK(values_of_scan(dd) == std::vector<double>{0, 5, 0});
    CHECK(values_of_scan(ddd) == std::vector<double>{0, 0, 1});
  }
}

TEST_CASE("the gradient of a sparse segment has the rows that were read, and no others") {
  df::Graph graph;
  const auto table = df::placeholder<float>(graph, {1000, 2});
  const auto y = df::sparse_segment_mean(table, df::Tensor<std::int64_t>({3}, {7, 999, 7}),
                                         df::Tensor<std::int32_t>({3}, {0, 0, 1}));
  const std::vector<df::AnyOutput> of{df::reduce_sum(y)}, by{table};
  const std::vector<df::Gradient> gradient = df::gradients(of, by, df::GradientOptions{});
  REQUIRE(gradient.size() == 1);
  REQUIRE(gradient[0].slices.has_value());
  df::Session session(graph);
  const auto rows =
      session.run({{table, df::Tensor<float>::zeros({1000, 2})}}, df::Output<float>(gradient[0].slices->values));
  CHECK(values_of_scan(rows) == std::vector<double>{0.5, 0.5, 0.5, 0.5, 1, 1});
}

TEST_CASE("ids that decrease are refused with their place, and so are ids beyond counting") {
  df::Graph graph;
  const auto data = df::placeholder<float>(graph);
  const auto ids = df::placeholder<std::int64_t>(graph);
  const auto y = df::segment_max(data, ids);
  df::Session session(graph);
  const auto error_with = [&](std::vector<std::int64_t> given) {
    const df::Tensor<std::int64_t> values({3}, given);
    return error_of([&] { session.run({{data, df::Tensor<float>::zeros({3, 2})}, {ids, values}}, y); });
  };
  const std::string decreasing = error_with({0, 4, 3});
  for (const char* part : {"segment_ids[2] = 3 is below the one before it, 4", "SegmentMax", "scan_test.cpp"}) {
    CHECK(decreasing.find(part) != std::string::npos);
  }
  CHECK(error_with({0, 1, std::numeric_limits<std::int64_t>::max()}).find("more segments than") != std::string::npos);
}
