// Ops that find elements and name them by their positions.
#include <dflow/ops/array/gather_nd.hpp>
#include <dflow/ops/array/unique.hpp>
#include <dflow/ops/array/where.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
std::vector<T> entries_of(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

df::Tensor<double> counting_up(const df::Shape& shape) {
  df::Tensor<double> tensor(shape);
  double next = 1;
  for (double& value : tensor) value = next++;
  return tensor;
}

/// Of y, which is linear in x.
void check_both_orders(const df::Graph& graph, const df::Output<double>& x, const df::Output<double>& y,
                       const df::Tensor<double>& at) {
  const auto dx = df::gradients(df::reduce_sum(y * y * y), x);
  df::Session session(graph);
  CHECK(df::check_gradients(session, y, {{x, at}}).is_ok());
  CHECK(df::check_gradients(session, dx, {{x, at}}).is_ok());
}

}  // namespace

TEST_CASE("the positions of true elements are found across blocks, by any number of threads") {
  // Rows of 683 elements: blocks end within them.
  df::Tensor<bool> truths({3, 4, 683});
  std::vector<std::int64_t> expected;
  std::int64_t position = 0;
  for (bool& truth : truths) {
    truth = position % 7 == 3 || position % 4096 == 0 || position % 4096 == 4095;
    if (truth) expected.insert(expected.end(), {position / 2732, position / 683 % 4, position % 683});
    ++position;
  }
  df::Graph graph;
  const auto x = df::placeholder<bool>(graph);
  const auto positions = df::where(x);
  for (const int threads : {1, 3}) {
    df::Session session(
        graph, {.pool = std::make_shared<df::WorkStealingPool>(threads, df::ThreadPoolOptions{.min_split_ns = 0})});
    CHECK(entries_of(session.run({{x, truths}}, positions)) == expected);
  }
}

TEST_CASE("a mask keeps the rows for which it is true") {
  const df::Tensor<bool> of_rows({3}, {true, false, true});
  const df::Tensor<bool> of_elements({3, 2}, {false, true, true, false, false, true});
  for (const bool is_known : {true, false}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, is_known ? df::PartialShape{3, 2} : df::PartialShape::unknown());
    const auto rows = df::placeholder<bool>(graph, {is_known ? 3 : df::dynamic});
    const auto elements =
        df::placeholder<bool>(graph, is_known ? df::PartialShape{3, 2} : df::PartialShape::unknown(2));
    const auto kept_rows = df::boolean_mask(x, rows, {.name = "kept"});
    const auto kept_elements = df::boolean_mask(x, elements);
    CHECK(kept_rows.name() == "kept");
    if (is_known) CHECK(kept_rows.shape() == df::PartialShape{df::dynamic, 2});
    df::Session session(graph);
    const auto [a, b] =
        session.run({{x, counting_up({3, 2})}, {rows, of_rows}, {elements, of_elements}}, kept_rows, kept_elements);
    CHECK(a.shape() == df::Shape{2, 2});
    CHECK(entries_of(a) == std::vector<double>{1, 2, 5, 6});
    CHECK(entries_of(b) == std::vector<double>{2, 3, 6});
    const auto none = session.run({{x, counting_up({3, 2})}, {rows, df::Tensor<bool>::zeros({3})}}, kept_rows);
    CHECK(none.shape() == df::Shape{0, 2});
    check_both_orders(graph, x, df::boolean_mask(x, of_rows), counting_up({3, 2}));
    check_both_orders(graph, x, df::boolean_mask(x, of_elements), counting_up({3, 2}));
    if (is_known) continue;
    // Only the step knows that these shapes do not fit.
    for (const df::Shape& shape : {df::Shape{2}, df::Shape{4}}) {
      CHECK(code_of([&] {
              return session.run({{x, counting_up({3, 2})}, {rows, df::Tensor<bool>::zeros(shape)}}, kept_rows);
            }) == df::Code::invalid_argument);
    }
    for (const df::Shape& shape : {df::Shape{2, 3}, df::Shape{1, 2}, df::Shape{3, 1}}) {
      CHECK(code_of([&] {
              return session.run({{x, counting_up({3, 2})}, {elements, df::Tensor<bool>::zeros(shape)}}, kept_elements);
            }) == df::Code::invalid_argument);
    }
  }
}

TEST_CASE("the gradient of gathered elements is right where only the step knows the shapes") {
  for (const bool is_wide : {false, true}) {
    df::Graph graph;
    const auto x = df::placeholder<double>(graph, df::PartialShape::unknown(2));
    const auto picked = is_wide ? df::gather_nd(x, df::Tensor<std::int64_t>({3, 1}, {2, 0, 2}))
                                : df::gather_nd(x, df::Tensor<std::int32_t>({3, 2}, {2, 1, 0, 0, 2, 1}));
    const auto dx = df::gradients(df::reduce_sum(picked), x);
    df::Session session(graph);
    CHECK(entries_of(session.run({{x, counting_up({3, 2})}}, dx)) ==
          (is_wide ? std::vector<double>{1, 1, 0, 0, 2, 2} : std::vector<double>{1, 0, 0, 0, 0, 2}));
    check_both_orders(graph, x, picked, counting_up({3, 2}));
  }
}

TEST_CASE("scattered elements are added in the shape that is asked for") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {3});
  const df::Tensor<std::int32_t> indices({3, 1}, {4, 0, 4});
  const auto wide = df::placeholder<std::int64_t>(graph, {1});
  const auto y = df::scatter_nd(indices, x, {6});
  const auto z = df::scatter_nd(indices, x, wide);
  CHECK(y.shape() == df::PartialShape{6});
  df::Session session(graph);
  const auto [a, b] = session.run({{x, counting_up({3})}, {wide, df::Tensor<std::int64_t>({1}, {5})}}, y, z);
  CHECK(entries_of(a) == std::vector<double>{2, 0, 0, 0, 4, 0});
  CHECK(entries_of(b) == std::vector<double>{2, 0, 0, 0, 4});
  check_both_orders(graph, x, y, counting_up({3}));
}

TEST_CASE("distinct elements come in the order of their first places") {
  df::Graph graph;
  const auto words = df::placeholder<std::string>(graph);
  const auto found = df::unique<std::int64_t>(words);
  const auto counted = df::unique_with_counts(words);
  const auto rest = df::setdiff1d(words, df::Tensor<std::string>({2}, {"b", "c"}));
  df::Session session(graph);
  const df::Tensor<std::string> given({5}, {"b", "a", "b", "", "a"});
  const auto [values, positions, counts, others, places] =
      session.run({{words, given}}, found.values, found.positions, counted.counts, rest.values, rest.positions);
  CHECK(entries_of(values) == std::vector<std::string>{"b", "a", ""});
  CHECK(entries_of(positions) == std::vector<std::int64_t>{0, 1, 0, 2, 1});
  CHECK(entries_of(counts) == std::vector<std::int32_t>{2, 2, 1});
  CHECK(entries_of(others) == std::vector<std::string>{"a", "", "a"});
  CHECK(entries_of(places) == std::vector<std::int32_t>{1, 3, 4});
  const auto x = df::placeholder<float>(graph, {3});
  CHECK(code_of([&] { return df::gradients(df::reduce_sum(df::unique(x).values), x); }) == df::Code::unimplemented);
}

TEST_CASE("a table of distinct elements grows, and finds each element again") {
  constexpr std::int64_t count = 100000;
  df::Tensor<std::int64_t> numbers({count});
  df::Tensor<std::complex<double>> pairs({count});
  std::int64_t i = 0;
  for (std::int64_t& number : numbers) number = (i++ * 7919 % 50021) << 40;
  i = 0;
  for (std::complex<double>& pair : pairs) {
    const std::int64_t k = i++ * 7919 % 50021;
    const std::int64_t quotient = k / 251, rest = k % 251;
    pair = {static_cast<double>(rest), static_cast<double>(quotient)};
  }
  df::Graph graph;
  const auto x = df::placeholder<std::int64_t>(graph);
  const auto z = df::placeholder<std::complex<double>>(graph);
  const auto of_numbers = df::unique(x);
  const auto of_pairs = df::unique(z);
  df::Session session(graph);
  const auto [values, positions, pair_values, pair_positions] = session.run(
      {{x, numbers}, {z, pairs}}, of_numbers.values, of_numbers.positions, of_pairs.values, of_pairs.positions);
  CHECK(values.num_elements() == 50021);
  CHECK(pair_values.num_elements() == 50021);
  std::int64_t wrong = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    if (positions.data()[k] != k % 50021 || values.data()[positions.data()[k]] != numbers.data()[k]) ++wrong;
    if (pair_positions.data()[k] != k % 50021) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("arguments that do not fit are refused with the op, the shapes, the position and the line") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {3, 4});
  const auto any = df::placeholder<float>(graph);
  const auto flags = df::placeholder<bool>(graph);
  const auto wide = df::placeholder<std::int64_t>(graph);
  const auto of_any = df::gather_nd(any, wide);
  const auto sums = df::scatter_nd(wide, any, {3, 4});
  const auto kinds = df::unique(any);
  df::Session session(graph);
  using Indices = df::Tensor<std::int64_t>;
  const auto zeros = [](const df::Shape& shape) { return df::Tensor<float>::zeros(shape); };
  struct Row {
    std::string_view what;
    std::function<void()> call;
    std::vector<std::string_view> parts;
  };
  const std::vector<Row> rows{
      {"a mask of another extent",
       [&] { df::boolean_mask(x, df::Tensor<bool>::zeros({2})); },
       {"BooleanMask", "dimension 0", "[3,4]", "[2]", "array_index_test.cpp"}},
      {"a mask of more dimensions",
       [&] {
         df::boolean_mask(x, df::Tensor<bool>::zeros({3, 4, 1}));
       },
       {"BooleanMask", "more dimensions", "[3,4,1]"}},
      {"a scalar mask", [&] { df::boolean_mask(x, true); }, {"BooleanMask", "scalar", "array_index_test.cpp"}},
      {"a mask of any rank", [&] { df::boolean_mask(x, flags); }, {"BooleanMask", "rank", "<unknown>"}},
      {"too many indices",
       [&] {
         df::gather_nd(x, Indices({1, 3}, {0, 0, 0}));
       },
       {"GatherNd", "tuples of 3 indices", "2 dimensions", "[3,4]", "array_index_test.cpp"}},
      {"a negative index",
       [&] {
         session.run({{any, zeros({3, 4})}, {wide, Indices({2, 2}, {0, 0, 2, -1})}}, of_any);
       },
       {"GatherNd", "indices[1,1] = -1", "[0, 4)", "dimension 1", "[3,4]", "array_index_test.cpp"}},
      {"an index behind the end",
       [&] {
         session.run({{any, zeros({3, 4})}, {wide, Indices({2, 1}, {3, -1})}}, of_any);
       },
       {"GatherNd", "indices[0,0] = 3", "[0, 3)"}},
      {"more elements than can be counted",
       [&] {
         session.run({{any, zeros({1 << 20})}, {wide, Indices({std::int64_t{1} << 50, 0})}}, of_any);
       },
       {"GatherNd"}},
      {"a scattered negative index",
       [&] {
         session.run({{any, zeros({2})}, {wide, Indices({2, 2}, {0, 0, -3, 1})}}, sums);
       },
       {"ScatterNd", "indices[1,0] = -3", "[0, 3)", "dimension 0", "[3,4]", "array_index_test.cpp"}},
      {"updates of other rows",
       [&] {
         session.run({{any, zeros({2, 3})}, {wide, Indices({2, 1}, {0, 1})}}, sums);
       },
       {"ScatterNd", "[2,4]", "[2,3]", "array_index_test.cpp"}},
      {"a negative extent",
       [&] {
         df::scatter_nd(Indices({1, 1}, {0}), df::constant(graph, zeros({1})), {-3});
       },
       {"ScatterNd", "-3", "array_index_test.cpp"}},
      {"a matrix", [&] { df::unique(x); }, {"Unique", "[3,4]", "array_index_test.cpp"}},
      {"a matrix in the step",
       [&] {
         session.run({{any, zeros({1, 2})}}, kinds.values);
       },
       {"Unique", "[1,2]", "array_index_test.cpp"}},
      {"a difference by a matrix", [&] { df::setdiff1d(any, x); }, {"ListDiff", "[3,4]", "array_index_test.cpp"}},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    const std::string error = error_of([&] { return row.call(), 0; });
    for (const std::string_view part : row.parts) {
      INFO(error);
      CHECK(contains(error, part));
    }
  }
}
