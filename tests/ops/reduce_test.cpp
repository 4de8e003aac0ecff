#include <dflow/ops/reduction/reduce.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace df = dflow;

namespace {

std::string shape_text(const df::AnyOutput& x) { return x.shape().to_string(); }

}  // namespace

TEST_CASE("one axis is a number, and positions are along the first one where none is named") {
  df::Graph graph;
  const auto x = df::constant<float>(graph, {{1, 5, 3}, {4, 2, 6}});
  df::Session session(graph);
  const auto [rows, kept, along, columns, first] = session.run(
      df::reduce_sum(x, 1), df::reduce_max(x, -1, {.keep_dims = true}), df::argmax(x, 1), df::argmax(x), df::argmin(x));
  CHECK(rows.to_string() == "float[2] [9, 12]");
  CHECK(kept.to_string() == "float[2,1] [[5], [6]]");
  CHECK(along.to_string() == "int64[2] [1, 2]");
  CHECK(columns.to_string() == "int64[3] [1, 0, 1]");
  CHECK(first.to_string() == "int64[3] [0, 1, 0]");
  static_assert(!std::is_convertible_v<bool, df::IndexList> && !std::is_convertible_v<double, df::IndexList>);
  CHECK(contains(error_of([&] { df::reduce_sum(x, 2); }), "axis 2 is outside [-2, 2)"));
}

TEST_CASE("a reduction drops its axes, or keeps them as 1") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 3, 4});
  CHECK(shape_text(df::reduce_sum(x)) == "[]");
  CHECK(shape_text(df::reduce_mean(x, {0, -1})) == "[3]");
  CHECK(shape_text(df::reduce_max(x, {1}, {.keep_dims = true})) == "[?,1,4]");
  CHECK(shape_text(df::reduce_prod(x, {}, {.keep_dims = true})) == "[1,1,1]");
  CHECK(shape_text(df::reduce_min(x, df::placeholder<std::int32_t>(graph, {2}), {.keep_dims = true})) == "[?,?,?]");
  CHECK(shape_text(df::argmax(x, -1)) == "[?,3]");
  CHECK(df::argmin(x, 0).dtype() == df::DType::int64);
  CHECK(shape_text(df::reduce_all(df::placeholder<bool>(graph, {2, 3}), {0})) == "[3]");
}

TEST_CASE("reducing all of a tensor of unknown rank gives a scalar") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  CHECK(shape_text(df::reduce_sum(x)) == "[]");
  CHECK(shape_text(df::reduce_sum(x, {}, {.keep_dims = true})) == "<unknown>");
}

TEST_CASE("axes that do not exist or repeat are refused when they are built") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  const std::string text = error_of([&] { df::reduce_sum(x, {2}); });
  CHECK(contains(text, "Sum"));
  CHECK(contains(text, "axis 2"));
  CHECK(contains(text, "[2,3]"));
  CHECK(contains(text, "reduce_test.cpp:"));
  CHECK(contains(error_of([&] { df::reduce_mean(x, {0, -2}); }), "named twice"));
  CHECK(contains(error_of([&] { df::argmax(x, 2); }), "ArgMax"));
  CHECK(contains(error_of([&] { df::argmax(df::placeholder<float>(graph, {}), 0); }), "scalar"));
  CHECK(contains(error_of([&] { df::argmin(df::placeholder<float>(graph, {0, 3}), 0); }), "no elements to search"));
}

TEST_CASE("a mean of integers does not wrap, whatever axes it is taken over") {
  // Exact quotients, rounded toward 0.
  df::Graph graph;
  const auto x = df::placeholder<std::int8_t>(graph);
  const auto rows = df::reduce_mean(x, {1}), columns = df::reduce_mean(x, {0}), all = df::reduce_mean(x);
  df::Session session(graph);
  {
    const df::Tensor<std::int8_t> value({2, 3}, {100, 120, 127, -128, -128, -127});
    const auto [by_row, by_column, of_all] = session.run({{x, value}}, rows, columns, all);
    CHECK(by_row.span()[0] == 115);
    CHECK(by_row.span()[1] == -127);
    CHECK(by_column.span()[0] == -14);
    CHECK(by_column.span()[1] == -4);
    CHECK(by_column.span()[2] == 0);
    CHECK(of_all.scalar() == -6);
  }
  const auto apart = df::reduce_mean(x, {0, 2});
  const df::Tensor<std::int8_t> cube({2, 2, 2}, {100, 101, -100, -101, 102, 103, -102, -128});
  const auto mean = session.run({{x, cube}}, apart);
  CHECK(mean.span()[0] == 101);
  CHECK(mean.span()[1] == -107);

  const auto bytes = df::reduce_mean(df::constant(graph, df::Tensor<std::uint8_t>({3}, {200, 200, 200})));
  const auto words = df::reduce_mean(df::constant(graph, df::Tensor<std::int32_t>({2}, {2000000000, 2000000001})));
  df::Session folding(graph);
  const auto [of_bytes, of_words] = folding.run(bytes, words);
  CHECK(of_bytes.scalar() == 200);
  CHECK(of_words.scalar() == 2000000000);
}

TEST_CASE("batches of products and sums of lists need shapes that agree") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {5, 2, 3});
  const auto y = df::placeholder<float>(graph, {df::dynamic, 4, 3});
  CHECK(shape_text(df::batch_matmul(x, y, {.adj_y = true})) == "[5,2,4]");
  CHECK(contains(error_of([&] { df::batch_matmul(x, y); }), "inner dimensions 3 and 4 differ"));
  CHECK(contains(error_of([&] { df::batch_matmul(x, df::placeholder<float>(graph, {4, 3, 2})); }), "BatchMatMul"));
  CHECK(shape_text(df::add_n({x, x, df::placeholder<float>(graph)})) == "[5,2,3]");
  CHECK(contains(error_of([&] { df::add_n({x, y}); }), "AddN"));
}

TEST_CASE("a reduction of no elements does not care how large the other extents are", "[ops]") {
  using namespace dflow;
  Graph graph;
  Session session(graph);
  const std::int64_t huge = std::int64_t{1} << 40;
  const auto x = placeholder<float>(graph, PartialShape::unknown());
  const auto axes = constant(graph, Tensor<std::int32_t>({3}, {0, 2, 4}));
  const auto sum = reduce_sum(x, axes);
  for (const Shape& shape : {Shape{huge, 2, huge, 1, 0}, Shape{0, 2, huge, 1, huge}, Shape{huge, 2, 0, 1, huge}}) {
    const Tensor<float> zeros = session.run({{x, Tensor<float>::zeros(shape)}}, sum);
    CHECK(zeros.shape() == Shape{2, 1});
    CHECK(zeros.span()[0] == 0.0f);
    CHECK(zeros.span()[1] == 0.0f);
  }
  // The op that takes a gradient back over a broadcast sums too.
  const auto narrow = placeholder<float>(graph, {1, 2, 1}), wide = placeholder<float>(graph, PartialShape::unknown());
  const auto dx = gradients(reduce_sum(narrow + wide), narrow);
  const Tensor<float> none = session.run(
      {{narrow, Tensor<float>::zeros({1, 2, 1})}, {wide, Tensor<float>::zeros({1 << 30, 1 << 30, 1 << 30, 2, 0})}}, dx);
  CHECK(none.shape() == Shape{1, 2, 1});
  CHECK(none.span()[0] == 0.0f);
}

TEMPLATE_TEST_CASE("a mean is a quotient, so that the mean of ones is one", "", float, double) {
  df::Graph graph;
  const auto x = df::placeholder<TestType>(graph);
  const auto all = df::reduce_mean(x), columns = df::reduce_mean(x, {0});
  df::Session session(graph);
  for (std::int64_t n = 1; n < 200; ++n) {
    INFO(n);
    const auto [mean, by_column] = session.run({{x, df::Tensor<TestType>::full({n, 3}, TestType(1))}}, all, columns);
    CHECK(mean.scalar() == 1);
    CHECK(by_column(1) == 1);
  }
}

TEMPLATE_TEST_CASE("a reduction rounds 16 bits once, however many runs of axes it is over", "", df::Half,
                   df::BFloat16) {
  // Half the distance between neighbours, relative to a result.
  const double roundoff = std::is_same_v<TestType, df::Half> ? 0x1p-11 : 0x1p-8;
  const df::Shape shape{3, 32, 2, 2, 5};
  df::Tensor<TestType> x(shape);
  std::uint64_t number = 1;
  for (TestType& value : x) {
    number = number * 6364136223846793005u + 1442695040888963407u;
    value = TestType(1.0f + static_cast<float>(number >> 59) / 64.0f);
  }
  df::Graph graph;
  const auto fed = df::placeholder<TestType>(graph);
  const df::IndexList axes{0, 2, 4};
  df::Session session(graph);
  const auto [sum, mean, product] =
      session.run({{fed, x}}, df::reduce_sum(fed, axes), df::reduce_mean(fed, axes), df::reduce_prod(fed, axes));
  REQUIRE(sum.shape() == df::Shape{32, 2});
  const auto error = [](TestType got, double exact) { return std::abs(static_cast<float>(got) / exact - 1); };
  double worst = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    double total = 0, times = 1;
    for (std::int64_t k = 0; k < 30; ++k) {
      const std::int64_t at = (((k / 10 * 32 + i / 2) * 2 + k / 5 % 2) * 2 + i % 2) * 5 + k % 5;
      const double value = static_cast<float>(x.data()[at]);
      total += value;
      times *= value;
    }
    worst = std::max(
        {worst, error(sum.data()[i], total), error(mean.data()[i], total / 30), error(product.data()[i], times)});
  }
  CHECK(worst < 1.02 * roundoff);
}

TEMPLATE_TEST_CASE("a sum to a shape rounds 16 bits once, however many axes it is over", "", df::Half, df::BFloat16) {
  // A row of two elements is 257 or 2049, half way between two numbers of this type.
  const float large = std::is_same_v<TestType, df::Half> ? 2048.0f : 256.0f;
  df::Graph graph;
  const auto x = df::placeholder<TestType>(graph, {3, 2, 2});
  const auto shape = df::constant(graph, df::Tensor<std::int32_t>({2}, {2, 1}));
  const df::Output<TestType> sums(df::AnyOutput(df::build<df::SumToShape>({x, shape})));
  df::Session session(graph);
  df::Tensor<TestType> value(df::Shape{3, 2, 2});
  for (std::int64_t i = 0; i < 12; ++i) value.span()[static_cast<std::size_t>(i)] = TestType(i % 2 == 0 ? large : 1.0f);
  const auto y = session.run({{x, value}}, sums);
  for (const TestType sum : y) CHECK(static_cast<float>(sum) == static_cast<float>(TestType(3 * large + 3)));
}

TEST_CASE("axes of an exclusive product that a step brings are checked") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  const auto axes = df::placeholder<std::int32_t>(graph);
  const df::Output<float> y(df::AnyOutput(df::build<df::ExclusiveProd>({x, axes})));
  const df::Output<float> dx(df::AnyOutput(df::build<df::ExclusiveProdGrad>({x, axes, x})));
  df::Session session(graph);
  const auto at = [&](std::vector<std::int32_t> values, const df::Output<float>& fetch) {
    const df::Tensor<std::int32_t> fed({static_cast<std::int64_t>(values.size())},
                                       std::span<const std::int32_t>(values));
    return session.run({{x, df::Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})}, {axes, fed}}, fetch);
  };
  CHECK(at({1}, y)(1, 0) == 30);
  for (const auto& fetch : {y, dx}) {
    CHECK(contains(error_of([&] { at({2}, fetch); }), "axis 2"));
    CHECK(contains(error_of([&] { at({-3}, fetch); }), "axis -3"));
    CHECK(contains(error_of([&] { at({1, -1}, fetch); }), "named twice"));
  }
}
