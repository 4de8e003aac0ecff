// Functions that other ops express. Expected, unless a line says otherwise: TensorFlow 2.21 in float64, or in the type
// that the row has.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace df = dflow;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

template <class T>
void check_formula(df::Graph& graph, const df::Output<T>& y, const std::vector<double>& wanted, double error = 1e-14) {
  const df::Tensor<T> got = df::Session(graph).run(y);
  REQUIRE(got.num_elements() == static_cast<std::int64_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double value = static_cast<double>(got.span()[i]);
    INFO(i << ": " << value << " for " << wanted[i]);
    CHECK((value == wanted[i] || std::abs(value - wanted[i]) <= error * std::abs(wanted[i])));
  }
}

}  // namespace

TEST_CASE("linspace ends at its end, and a single value is the first") {
  df::Graph graph;
  const auto ticks = df::linspace(graph, -1.0f, 0.3f, 7);
  check_formula(graph, ticks, {-1, -0.78333336, -0.56666672, -0.35, -0.13333338, 0.083333254, double{0.3f}}, 1e-6);
  CHECK(df::Session(graph).run(ticks).span()[6] == 0.3f);
  for (std::int64_t num : {2, 3, 10, 1000}) {
    const df::Tensor<float> many = df::Session(graph).run(df::linspace(graph, 0.1f, 0.7f, num));
    CHECK(many.num_elements() == num);
    CHECK(many.span().front() == 0.1f);
    CHECK(many.span().back() == 0.7f);
  }
  check_formula(graph, df::linspace(graph, 2.0, 5.0, 1), {2});
  check_formula(graph, df::linspace(graph, 2.0, 5.0, 0), {});
  const auto half = df::constant(graph, df::Half(0));
  check_formula(graph, df::linspace(half, df::Half(1), 5), {0, 0.25, 0.5, 0.75, 1});
  CHECK(error_of([&] { df::Session(graph).run(df::linspace(graph, 0.0, 1.0, -2)); }) != "no error");
  // d/d(start, stop) of the sum of 5 values is 2.5 each.
  const auto start = df::placeholder<double>(graph, {}), stop = df::placeholder<double>(graph, {});
  const auto [a, b] = df::gradients(df::reduce_sum(df::linspace(start, stop, 5)), start, stop);
  const auto [da, db] =
      df::Session(graph).run({{start, df::Tensor<double>(1.0)}, {stop, df::Tensor<double>(4.0)}}, a, b);
  CHECK(da.scalar() == 2.5);
  CHECK(db.scalar() == 2.5);
}

TEST_CASE("the logarithm of a sum of exponentials neither overflows nor loses rows of -infinity") {
  df::Graph graph;
  const auto x = df::constant(graph, df::Tensor<double>({2, 3}, {1.0, 2.0, 3.0, -1.0, 0.0, 4.5}));
  check_formula(graph, df::reduce_logsumexp(x, 1), {3.40760596444438, 4.515081468749686});
  check_formula(graph, df::reduce_logsumexp(x), {4.800555091087515});
  const auto kept = df::reduce_logsumexp(x, -1, {.keep_dims = true});
  CHECK(kept.shape() == df::PartialShape{2, 1});
  check_formula(graph, kept, {3.40760596444438, 4.515081468749686});
  const auto rows = df::constant(graph, df::Tensor<double>({3, 3}, {1000.0, 1000.0, -infinite, -infinite, -infinite,
                                                                    -infinite, 0.0, infinite, 1.0}));
  check_formula(graph, df::reduce_logsumexp(rows, 1), {1000.6931471805599, -infinite, infinite});
  check_formula(graph, df::reduce_logsumexp(df::zeros<double>(graph, {2, 0}), 1), {-infinite, -infinite});
  const auto open = df::placeholder<double>(graph);
  const auto y = df::reduce_logsumexp(open, 0);
  df::Session session(graph);
  CHECK(df::check_gradients(session, y, {{open, df::Tensor<double>({2, 2}, {0.5, -1, 3, 2})}}).is_ok());
}

TEST_CASE("vector products, traces, beta functions and counts") {
  df::Graph graph;
  const auto a = df::constant(graph, df::Tensor<double>({2, 3}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}));
  check_formula(graph, df::cross(a, df::constant(graph, df::Tensor<double>({2, 3}, {-1.0, 0.0, 2.0, 7.0, -3.0, 0.5}))),
                {4, -5, 2, 20.5, 40, -47});
  CHECK(error_of([&] {
          df::cross(df::constant(graph, df::Tensor<double>({2}, {1.0, 2.0})),
                    df::constant(graph, df::Tensor<double>({2}, {1.0, 2.0})));
        }) != "no error");
  check_formula(graph, df::trace(df::constant(graph, df::Tensor<std::int32_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}))),
                {5, 13});
  check_formula(graph, df::lbeta(df::constant(graph, df::Tensor<double>({2, 3}, {1.0, 2.0, 3.0, 0.5, 0.5, 4.0}))),
                {-4.0943445622221, -0.2415644752704904});
  const auto numbers = df::constant(graph, df::Tensor<std::int32_t>({5}, {1, 2, 1, 0, 7}));
  check_formula(graph,
                df::bincount(numbers, 4, df::constant(graph, df::Tensor<double>({5}, {0.5, 1.0, 2.0, 4.0, 8.0}))),
                {4, 2.5, 1, 0});
  check_formula(graph, df::bincount(numbers, 4), {1, 2, 1, 0});
  const auto negative = df::bincount(df::constant(graph, df::Tensor<std::int32_t>({2}, {1, -1})), 4);
  CHECK(error_of([&] { df::Session(graph).run(negative); }).find("negative") != std::string::npos);
  df::Output<float> product =
      df::sparse_matmul(df::constant(graph, df::Tensor<float>({2, 2}, {1.0f, 0.0f, 2.0f, 3.0f})),
                        df::constant(graph, df::Tensor<float>({2, 2}, {0.0f, 4.0f, 5.0f, 6.0f})),
                        {.transpose_a = true, .a_is_sparse = true});
  check_formula(graph, product, {10, 16, 15, 18});
}

TEST_CASE("divisions as Python's, and casts that saturate") {
  df::Graph graph;
  const auto x = df::constant(graph, df::Tensor<std::int32_t>({6}, {-7, -7, -7, 7, 7, 7})),
             y = df::constant(graph, df::Tensor<std::int32_t>({6}, {2, -2, 3, 2, -2, 3}));
  check_formula(graph, df::floordiv(x, y), {-4, 3, -3, 3, -4, 2});
  check_formula(graph, df::truediv(x, y), {-3.5, 3.5, -7.0 / 3, 3.5, -3.5, 7.0 / 3});
  check_formula(graph, df::floordiv(df::constant(graph, df::Tensor<double>({2}, {-7.5, 7.5})), 2.0), {-4, 3});
  check_formula(graph, df::truediv(df::constant(graph, df::Tensor<std::int8_t>({2}, {1, -3})), std::int8_t{2}),
                {0.5, -1.5});
  CHECK(error_of([&] { df::Session(graph).run(df::floordiv(x, 0)); }) != "no error");
  const auto wide = df::constant(graph, df::Tensor<std::int32_t>({3}, {-1000, 300, 5}));
  check_formula(graph, df::saturate_cast<std::int8_t>(wide), {-128, 127, 5});
  check_formula(graph, df::saturate_cast<std::uint8_t>(wide), {0, 255, 5});
  check_formula(graph, df::saturate_cast<std::uint64_t>(wide), {0, 300, 5});
  check_formula(graph, df::saturate_cast<df::Half>(df::constant(graph, df::Tensor<float>({3}, {-1e30f, 7e4f, 5.0f}))),
                {-65504, 65504, 5});
  check_formula(graph,
                df::saturate_cast<df::Half>(df::constant(graph, df::Tensor<std::int32_t>({3}, {-100000, 65504, 5}))),
                {-65504, 65504, 5});
  check_formula(graph,
                df::saturate_cast<std::int32_t>(df::constant(graph, df::Tensor<float>({3}, {-1e30f, 1e30f, 5.5f}))),
                {-2147483648.0, 2147483647.0, 5});
  check_formula(graph, df::saturate_cast<float>(df::constant(graph, df::Tensor<double>({2}, {-1e300, 0.5}))),
                {-double{std::numeric_limits<float>::max()}, 0.5});
  // The truth table.
  const auto p = df::constant(graph, df::Tensor<bool>({2, 2}, {false, true, true, false}));
  const auto q = df::constant(graph, df::Tensor<bool>({2}, {true, true}));
  check_formula(graph, df::cast<float>(df::logical_xor(p, q)), {1, 0, 0, 1});
}

TEST_CASE("moments, norms and shares of zeros") {
  df::Graph graph;
  const auto x = df::constant(graph, df::Tensor<double>({2, 3}, {1.0, 2.0, 3.0, -1.0, 0.0, 4.5}));
  check_formula(
      graph, df::l2_normalize(x, 1),
      {0.2672612419124244, 0.5345224838248488, 0.8017837257372732, -0.21693045781865616, 0, 0.9761870601839527});
  const auto [mean, variance] = df::moments(x, 1);
  check_formula(graph, mean, {2, 1.1666666666666667});
  check_formula(graph, variance, {0.6666666666666666, 5.722222222222221});
  CHECK(df::moments(x, {0}, {.keep_dims = true}).mean.shape() == df::PartialShape{1, 3});
  const auto statistics = df::sufficient_statistics(x, 0, df::constant(graph, 0.5));
  check_formula(graph, statistics.count, {2});
  check_formula(graph, statistics.mean_ss, {-1, 1, 6.5});
  check_formula(graph, statistics.variance_ss, {2.5, 2.5, 22.25});
  const auto moments = df::normalize_moments(statistics);
  check_formula(graph, moments.mean, {0, 1, 3.75});
  check_formula(graph, moments.variance, {1, 1, 0.5625});
  check_formula(graph, df::normalize_moments(df::sufficient_statistics(x, 0)).variance, {1, 1, 0.5625});
  check_formula(graph, df::zero_fraction(df::constant(graph, df::Tensor<double>({4}, {0.0, 1.0, 0.0, 3.0}))), {0.5});
  check_formula(graph, df::accumulate_n({x, x, x}), {3, 6, 9, -3, 0, 13.5});
  CHECK(error_of([&] {
          df::accumulate_n({x, df::constant(graph, df::Tensor<double>({1}, {1.0}))});
        }).find("[1]") != std::string::npos);
  const auto logits = df::constant(graph, df::Tensor<double>({3}, {-3.0, 2.0, 0.5})),
             targets = df::constant(graph, df::Tensor<double>({3}, {0.0, 1.0, 0.25}));
  check_formula(graph, df::weighted_cross_entropy_with_logits(logits, targets, 3.0),
                {0.048587351573742055, 0.3807840331289175, 1.0861154762701601});
  // The variance of bfloat16 is computed in float: of 256 and 258 the mean is 257, which bfloat16 has not.
  const auto coarse = df::constant(graph, df::Tensor<df::BFloat16>({2}, {df::BFloat16(256), df::BFloat16(258)}));
  check_formula(graph, df::moments(coarse).variance, {1});
  const auto open = df::placeholder<double>(graph, {2, 3});
  df::Session session(graph);
  const df::Tensor<double> at({2, 3}, {1, 2, 4, -1, 0.5, 3});
  CHECK(df::check_gradients(session, df::moments(open, 1).variance, {{open, at}}).is_ok());
  CHECK(df::check_gradients(session, df::l2_normalize(open, 0), {{open, at}}).is_ok());
}
