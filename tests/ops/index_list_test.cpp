#include <dflow/ops/array/index_list.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

std::vector<float> sums_over(const df::IndexList& axes) {
  df::Graph graph;
  const auto x = df::constant<float>(graph, {{1, 2}, {3, 4}});
  df::Session session(graph);
  const df::Tensor<float> sums = session.run(df::reduce_sum(x, axes));
  return {sums.begin(), sums.end()};
}

}  // namespace

TEST_CASE("axes may be any range of integers, or a tensor", "[index_list]") {
  const std::vector<float> down{4, 6}, across{3, 7}, none{1, 2, 3, 4};
  CHECK(sums_over(std::vector<int>{0}) == down);
  CHECK(sums_over(std::vector<std::int64_t>{0}) == down);
  CHECK(sums_over(std::vector<std::size_t>{1}) == across);
  CHECK(sums_over(std::array<int, 1>{1}) == across);
  CHECK(sums_over(std::span<const int>(std::array<int, 1>{1})) == across);
  const int both[] = {0, 1};
  CHECK(sums_over(both) == std::vector<float>{10});
  CHECK(sums_over(df::Tensor<std::int32_t>({1}, {0})) == down);
  CHECK(sums_over(df::Tensor<std::int64_t>(std::int64_t{1})) == across);
  CHECK(sums_over({0, 1}) == std::vector<float>{10});
  CHECK(sums_over(std::vector<int>{}) == none);
  CHECK(sums_over({}) == std::vector<float>{10});
}

TEST_CASE("a list of integers is empty if it has neither numbers nor an edge", "[index_list]") {
  df::Graph graph;
  CHECK(df::IndexList().empty());
  CHECK_FALSE(df::IndexList().is_given());
  const df::IndexList none(std::vector<int>{});
  CHECK(none.empty());
  CHECK(none.is_given());
  CHECK_FALSE(df::IndexList(0).empty());
  CHECK_FALSE(df::IndexList({2, 3}).empty());
  CHECK_FALSE(df::IndexList(df::Shape{2}).empty());
  CHECK_FALSE(df::IndexList(df::constant(graph, std::int32_t{0})).empty());
}

TEST_CASE("shapes of builders may be any range of integers", "[index_list]") {
  df::Graph graph;
  const std::vector<int> dims{3, 2};
  const auto x = df::zeros<float>(graph, dims);
  CHECK(x.shape() == df::PartialShape{3, 2});
  CHECK(df::reshape(x, std::vector<int>{-1}).shape() == df::PartialShape{6});
  CHECK(df::transpose(x, std::vector<int>{1, 0}).shape() == df::PartialShape{2, 3});
  CHECK(df::squeeze(df::reshape(x, {1, 6, 1}), std::vector<int>{0}).shape() == df::PartialShape{6, 1});
  CHECK(df::squeeze(df::reshape(x, {1, 6, 1}), 2).shape() == df::PartialShape{1, 6});
  CHECK(df::squeeze(df::reshape(x, {1, 6, 1})).shape() == df::PartialShape{6});
}

TEST_CASE("a number that no index can be is refused, and does not wrap around", "[index_list]") {
  constexpr std::uint64_t too_large = std::uint64_t(-1);  // as int64 it would be the last axis, or an open extent
  df::Graph graph;
  const auto x = df::zeros<float>(graph, {1, 2});
  const df::Status axis = status_of([&] { return df::reduce_sum(x, too_large); });
  CHECK(axis.message() == "18446744073709551615 is no axis, extent or position: it does not fit in int64");
  CHECK(axis.where().line() == __LINE__ - 2);
  const df::Status extent = status_of([&] { return df::reshape(x, std::vector<std::uint64_t>{2, too_large}); });
  CHECK(extent.code() == df::Code::invalid_argument);
  CHECK(extent.where().line() == __LINE__ - 2);
  CHECK(code_of([&] { return df::squeeze(x, std::array<std::uint64_t, 1>{too_large / 2 + 1}); }) ==
        df::Code::invalid_argument);
  CHECK(df::IndexList(too_large / 2).numbers("", {}) == std::vector<std::int64_t>{0x7fffffffffffffff});
  CHECK(df::IndexList(std::vector<std::int8_t>{-128}).numbers("", {}) == std::vector<std::int64_t>{-128});
  const df::Status wide = status_of([&] { return df::reduce_sum(x, std::int64_t{1} << 40); });
  CHECK(wide.message() == "1099511627776 does not fit in int32");
  CHECK(wide.where().line() == __LINE__ - 2);
}

TEST_CASE("an error of a list of integers says what was wrong", "[index_list]") {
  df::Graph graph;
  const auto x = df::zeros<float>(graph, {1, 2});
  CHECK(error_of([&] {
          df::reshape(x, df::Tensor<std::int32_t>::zeros({1, 2}));
        }) == "INVALID_ARGUMENT: a list of integers is a scalar or a vector, got a tensor of shape [1,2]");
  const df::Status status = status_of([&] { return df::squeeze(x, df::constant(graph, std::int32_t{0})); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.message() == "Squeeze takes numbers here, and not an edge");
  CHECK(status.where().line() == __LINE__ - 3);
}

TEST_CASE("a list of integers has the type of the edge beside it, and as many numbers as dimensions need",
          "[index_list]") {
  df::Graph graph;
  const auto x = df::zeros<float>(graph, {4, 2});
  const auto begin = df::placeholder<std::int64_t>(graph, {2});
  const auto part = df::slice(x, begin, {1, 2});
  CHECK(part.node().types[1] == df::DType::int64);
  df::Session session(graph);
  CHECK(session.run({{begin, df::Tensor<std::int64_t>({2}, {3, 0})}}, part).shape() == df::Shape{1, 2});
  const std::vector<int> eight(8, 1), nine(9, 1);
  const auto deep = df::zeros<float>(graph, eight);
  CHECK(deep.shape() == df::PartialShape{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK_THAT(error_of([&] { df::zeros<float>(graph, nine); }), Catch::Contains("at most 8 dimensions"));
  const df::PartialShape padded =
      df::pad(deep, {{1, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}}).shape();
  CHECK(padded == df::PartialShape{3, 1, 1, 1, 1, 1, 1, 2});
}
