#include <dflow/ops/random/random.hpp>

#include <dflow/ops/array/constant.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// The op with the stream of the two given seeds.
template <class O, class T>
Output<T> raw(Graph& graph, const IndexList& shape, std::int64_t seed, std::int64_t seed2) {
  const AnyOutput dims = shape.edge(*graph.store(), {});
  TypeArgs types;
  types.push_back(dtype_of<T>);
  return Output<T>(build<O>(*graph.store(), {&dims, 1}, {.seed = seed, .seed2 = seed2}, {}, types).output(0));
}

template <class T>
std::vector<double> wide(const Tensor<T>& tensor) {
  return std::vector<double>(tensor.begin(), tensor.end());
}

/// The first two runs of 7 values with seeds 301 and 17.
template <class O, class T>
std::vector<std::vector<double>> two_runs() {
  Graph graph;
  const auto x = raw<O, T>(graph, {7}, 301, 17);
  Session session(graph, {.num_threads = 1});
  return {wide(session.run(x)), wide(session.run(x))};
}

using Runs = std::vector<std::vector<double>>;

bool nearly(const Runs& got, const Runs& expected, double tolerance) {
  for (std::size_t run = 0; run < expected.size(); ++run) {
    for (std::size_t i = 0; i < expected[run].size(); ++i) {
      INFO("run " << run << ", value " << i << ": " << got[run][i] << " for " << expected[run][i]);
      CHECK(std::abs(got[run][i] - expected[run][i]) <= tolerance);
    }
  }
  return got.size() == expected.size();
}

struct SampleMoments {
  double mean, variance, skewness, kurtosis, low, high;
};
SampleMoments sample_moments(std::span<const float> x) {
  double sum = 0, second = 0, third = 0, fourth = 0;
  for (const float v : x) sum += v;
  const auto n = static_cast<double>(x.size());
  const double mean = sum / n;
  for (const float v : x) {
    const double c = v - mean;
    second += c * c;
    third += c * c * c;
    fourth += c * c * c * c;
  }
  const double variance = second / n;
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  return {mean, variance, third / n / std::pow(variance, 1.5), fourth / n / (variance * variance), *low, *high};
}

}  // namespace

// Expected values: TensorFlow 2.21.0, CPU, tf.raw_ops in a graph of its own, the first two runs of one session with
// seed = 301, seed2 = 17.

TEST_CASE("uniform numbers are TensorFlow's, bit for bit") {
  CHECK(two_runs<RandomUniform, float>() ==
        Runs{{0x1.7b59fp-2, 0x1.50e6ep-4, 0x1.c2fcd4p-1, 0x1.657610p-2, 0x1.a37f64p-1, 0x1.913b74p-1, 0x1.7a5600p-3},
             {0x1.90558cp-1, 0x1.a1a028p-2, 0x1.47b1b0p-1, 0x1.f4302p-1, 0x1.0b5fccp-1, 0x1.867ef0p-2, 0x1.3071e0p-1}});
  CHECK(two_runs<RandomUniform, double>() ==
        Runs{{0x1.ed67c44150e6ep-1, 0x1.7e6a2e595d840p-5, 0x1.1bfb3b4c89dbap-1, 0x1.e958211dcc31cp-2,
              0x1.be2dbbd4cb98ep-1, 0x1.de49eeda25b78p-2, 0x1.d489df2c76110p-4},
             {0x1.0558d06d0d014p-2, 0x1.ec6c54fd0c080p-4, 0x1.6bf98e1867ef0p-3, 0x1.838f1d034d876p-1,
              0x1.f647e5bee39acp-2, 0x1.d690496463e38p-2, 0x1.8213615d34340p-1}});
  CHECK(two_runs<RandomUniform, Half>() ==
        Runs{{0x1.9fp-1, 0x1.9b8p-1, 0x1.9a8p-1, 0x1.61p-1, 0x1.ec8p-1, 0x1.6e8p-1, 0x1.6p-2},
             {0x1.63p-2, 0x1.4p-8, 0x1.bp-4, 0x1p-7, 0x1.f98p-1, 0x1.efp-1, 0x1.ep-4}});
  CHECK(two_runs<RandomUniform, BFloat16>() ==
        Runs{{0x1.fp-2, 0x1.b8p-2, 0x1.a8p-2, 0x1.08p-1, 0x1.64p-1, 0x1.74p-1, 0x1.8p-1},
             {0x1.8cp-1, 0x1.4p-5, 0x1.bp-1, 0x1p-4, 0x1.ccp-1, 0x1.78p-1, 0x1.ep-1}});
}

TEST_CASE("normal numbers are TensorFlow's, up to what libraries' logarithms and sines differ by") {
  const Runs floats{
      {0x1.6483d0p-1, 0x1.39a7e4p+0, 0x1.a31146p-2, -0x1.2ccc20p-2, -0x1.3c05d0p-1, 0x1.0f6072p-3, -0x1.8a5886p-1},
      {0x1.891682p-2, -0x1.2c98c6p-1, -0x1.17798p-3, 0x1.de9f2ap-1, 0x1.8be98ap-1, -0x1.accd1cp-1, 0x1.f69d40p-1}};
  nearly(two_runs<RandomStandardNormal, float>(), floats, 1e-6);
  nearly(two_runs<RandomStandardNormal, Half>(), floats, 1e-3);
  nearly(two_runs<RandomStandardNormal, BFloat16>(), floats, 8e-3);
  nearly(two_runs<RandomStandardNormal, double>(),
         {{0x1.421ebf29c28c2p-4, 0x1.0aa3787b965a8p-2, 0x1.341dbc745328fp-3, -0x1.1344a66fda589p+0,
           0x1.b94fb17efcc54p-4, -0x1.06df3c7b7ce9bp-1, 0x1.072ac8746d06bp+1},
          {0x1.220b35bb144f4p+0, 0x1.34024de01ab04p+0, -0x1.db64eec66ff15p+0, 0x1.4c6c93da118bbp-4,
           0x1.3369d3013260ap-2, -0x1.27bb8bd0880aep+0, 0x1.7fa776df2fb63p-1}},
         1e-14);
}

TEST_CASE("truncated normal numbers are TensorFlow's") {
  const Runs floats{
      {0x1.6483d0p-1, 0x1.39a7e4p+0, 0x1.a31146p-2, -0x1.2ccc20p-2, -0x1.e9ce06p-1, 0x1.c1b566p-4, 0x1.9c69bap-1},
      {0x1.891682p-2, -0x1.2c98c6p-1, -0x1.17798p-3, 0x1.de9f2ap-1, 0x1.dd6d48p-1, 0x1.42bd38p-3, -0x1.0a4940p-2}};
  nearly(two_runs<TruncatedNormal, float>(), floats, 1e-6);
  nearly(two_runs<TruncatedNormal, Half>(), floats, 1e-3);
  nearly(two_runs<TruncatedNormal, BFloat16>(), floats, 8e-3);
  nearly(two_runs<TruncatedNormal, double>(),
         {{0x1.421ebf29c28c2p-4, 0x1.0aa3787b965a8p-2, -0x1.eba4678cc1532p-4, -0x1.949e69827963dp+0,
           -0x1.a56b0a25459d6p+0, -0x1.d712b629d4ffap-2, -0x1.ff3f3a6029c70p-1},
          {0x1.220b35bb144f4p+0, 0x1.34024de01ab04p+0, -0x1.05e8cf0007030p-3, -0x1.68e8c5441d455p+0,
           0x1.1f6bac2ec62fcp-4, 0x1.f81ac7ca4bf35p-1, 0x1.c45eab622a8e2p+0}},
         1e-14);
}

TEST_CASE("random integers are TensorFlow's, bit for bit") {
  const auto runs = []<class T>(T) {
    Graph graph;
    const auto shape = constant(graph, Tensor<std::int32_t>({1}, {7}));
    const auto low = constant(graph, T(-5)), high = constant(graph, T(1000003));
    const Output<T> x(build<RandomUniformInt>({shape, low, high}, {.seed = 301, .seed2 = 17}).output(0));
    Session session(graph, {.num_threads = 1});
    return Runs{wide(session.run(x)), wide(session.run(x))};
  };
  CHECK(runs(std::int32_t{}) == Runs{{911601, 110746, 123992, 801181, 745876, 977568, 136051},
                                     {636030, 320016, 846975, 858427, 840830, 957209, 262851}});
  CHECK(runs(std::int64_t{}) == Runs{{565953, 815936, 314676, 169699, 23512, 981146, 402540},
                                     {919382, 423879, 754686, 935099, 164642, 696660, 747286}});
}

TEST_CASE("negative and large seeds are TensorFlow's too") {
  Graph graph;
  const auto x = raw<RandomUniform, float>(graph, {3}, -1, 5000000000);
  Session session(graph, {.num_threads = 1});
  CHECK(wide(session.run(x)) == std::vector<double>{0x1.2ae4ap-3, 0x1.a527b8p-1, 0x1.734428p-2});
}

TEST_CASE("any number of threads draws the same bits") {
  const auto draw = [](int threads) {
    Graph graph({.seed = 5});
    const auto u = random_uniform<float>(graph, {100'003});
    const auto n = random_normal<double>(graph, {100'003});
    const auto t = truncated_normal<float>(graph, {99'998});
    const auto i = random_uniform_int<std::int64_t>(graph, {100'001}, {.minval = -3, .maxval = 1'000'000'007});
    Session session(graph, {.num_threads = threads});
    session.run(u, n, t, i);
    return session.run(u, n, t, i);
  };
  const auto one = draw(1), four = draw(4);
  CHECK(bitwise_equal(std::get<0>(one), std::get<0>(four)));
  CHECK(bitwise_equal(std::get<1>(one), std::get<1>(four)));
  CHECK(bitwise_equal(std::get<2>(one), std::get<2>(four)));
  CHECK(bitwise_equal(std::get<3>(one), std::get<3>(four)));
}

TEST_CASE("a million draws have the moments of their distribution") {
  Graph graph({.seed = 20260117});
  constexpr std::int64_t n = 1'000'000;
  const auto uniform = random_uniform<float>(graph, {n});
  const auto normal = random_normal<float>(graph, {n}, {.mean = 3, .stddev = 2});
  const auto truncated = truncated_normal<float>(graph, {n}, {.stddev = 0.1f});
  Session session(graph, {.num_threads = 2});
  const auto [u, g, t] = session.run(uniform, normal, truncated);
  // Bounds are five standard errors or more.
  const SampleMoments mu = sample_moments(u.span());
  CHECK(mu.mean == Catch::Approx(0.5).margin(0.0015));
  CHECK(mu.variance == Catch::Approx(1.0 / 12).margin(0.0005));
  CHECK(mu.kurtosis == Catch::Approx(1.8).margin(0.01));
  CHECK(mu.low >= 0);
  CHECK(mu.high < 1);
  const SampleMoments mg = sample_moments(g.span());
  CHECK(mg.mean == Catch::Approx(3).margin(0.01));
  CHECK(mg.variance == Catch::Approx(4).margin(0.03));
  CHECK(mg.skewness == Catch::Approx(0).margin(0.0125));
  CHECK(mg.kurtosis == Catch::Approx(3).margin(0.025));
  // Cut at 2 sigma the variance is 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.77374.
  const SampleMoments mt = sample_moments(t.span());
  CHECK(mt.mean == Catch::Approx(0).margin(0.0005));
  CHECK(mt.variance == Catch::Approx(0.0077374).margin(0.00005));
  CHECK(mt.low > -0.2f);
  CHECK(mt.high < 0.2f);
}

namespace {
/// The least and the greatest of a set of numbers.
template <class T>
std::pair<double, double> ends_of_uniform(double minval, double maxval, std::int64_t count = 200'000) {
  Graph graph({.seed = 5});
  const auto x = random_uniform<T>(graph, {count}, {.minval = minval, .maxval = maxval}, {.name = "numbers"});
  CHECK(x.name() == "numbers");
  Session session(graph, {.num_threads = 2});
  const std::vector<double> numbers = wide(session.run(x));
  CHECK(std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); }));
  const auto [low, high] = std::ranges::minmax(numbers);
  return {low, high};
}

template <class T>
void check_uniform_ends() {
  constexpr double last = std::numeric_limits<T>::epsilon();  // of the numbers from 1 to 2
  for (const auto& [minval, maxval] : {std::pair(1.0, 2.0),
                                       {5.0, 6.0},
                                       {10.0, 11.0},
                                       {0.0, 3.0},
                                       {0.0, 1 + last},
                                       {-6.0, -5.0},
                                       {-1.0, 0.0},
                                       {-2.0, 1.0},
                                       {1.0, 1 + 2 * last}}) {
    const auto [low, high] = ends_of_uniform<T>(minval, maxval);
    INFO(dtype_name(dtype_of<T>) << " from " << minval << " to " << maxval << ": " << low << " to " << high);
    CHECK(low >= minval);
    CHECK(low <= minval + (maxval - minval) / 32);
    CHECK(high < maxval);
    CHECK(high >= maxval - std::max((maxval - minval) / 32, 8 * last));
  }
  CHECK(ends_of_uniform<T>(5, 5) == std::pair(5.0, 5.0));
}
}  // namespace

// With 7 bits behind the point, one number in sixty would be the end of the range.
TEST_CASE("uniform numbers are below the end of their range, however they are rounded") {
  check_uniform_ends<BFloat16>();
  check_uniform_ends<Half>();
  check_uniform_ends<float>();
  check_uniform_ends<double>();
  CHECK(ends_of_uniform<float>(1000, 1001, 1'000'000).second < 1001);
  CHECK(ends_of_uniform<Half>(-30000, 30000).second < 30000);
  CHECK(ends_of_uniform<Half>(60000, 66000).second <= 65504);
}

TEST_CASE("a range of uniform numbers that the element type cannot hold is refused") {
  Graph graph;
  const auto error_from = [&]<class T>(double minval, double maxval, T) {
    return error_of([&] { random_uniform<T>(graph, {2}, {.minval = minval, .maxval = maxval}); });
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::string& error :
       {error_from(-1e308, 1e308, 0.0), error_from(0, infinity, 0.0), error_from(-infinity, 0, 0.0),
        error_from(infinity, infinity, 0.0), error_from(-3e38, 3e38, 0.0f), error_from(0, 1e39, 0.0f),
        error_from(0, 1e6, Half()), error_from(-65504, 65504, Half()), error_from(1e6, 1e6 + 1, Half())}) {
    INFO(error);
    CHECK(error.find("INVALID_ARGUMENT") != std::string::npos);
    CHECK(error.find("is not finite in ") != std::string::npos);
  }
}

TEST_CASE("integers fill their range evenly and never leave it") {
  Graph graph({.seed = 99});
  const auto x = random_uniform_int<std::int32_t>(graph, {100'000}, {.minval = -3, .maxval = 7});
  Session session(graph, {.num_threads = 2});
  const Tensor<std::int32_t> drawn = session.run(x);
  std::vector<int> counts(10);
  for (const std::int32_t v : drawn) {
    REQUIRE((v >= -3 && v < 7));
    ++counts[static_cast<std::size_t>(v + 3)];
  }
  for (const int count : counts) CHECK(count == Catch::Approx(10'000).margin(500));
}

TEST_CASE("the whole range of an integer type can be drawn from") {
  Graph graph({.seed = 1});
  const auto x = random_uniform_int<std::int32_t>(
      graph, {1000},
      {.minval = std::numeric_limits<std::int32_t>::min(), .maxval = std::numeric_limits<std::int32_t>::max()});
  Session session(graph, {.num_threads = 1});
  const Tensor<std::int32_t> drawn = session.run(x);
  CHECK(*std::min_element(drawn.begin(), drawn.end()) < -1'000'000'000);
  CHECK(*std::max_element(drawn.begin(), drawn.end()) > 1'000'000'000);
}

TEST_CASE("seeds decide what is drawn") {
  const auto draw = [](std::uint64_t graph_seed, std::uint64_t op_seed) {
    Graph graph({.seed = graph_seed});
    const auto a = random_uniform<double>(graph, {4}, {.seed = op_seed});
    const auto b = random_uniform<double>(graph, {4}, {.seed = op_seed});
    Session session(graph, {.num_threads = 1});
    const auto [x, y] = session.run(a, b);
    return Runs{wide(x), wide(y)};
  };
  CHECK(draw(7, 0) == draw(7, 0));
  CHECK(draw(7, 0) != draw(8, 0));
  CHECK(draw(7, 0)[0] != draw(7, 0)[1]);
  CHECK(draw(0, 5)[0] == draw(0, 5)[1]);
  CHECK(draw(0, 5) == draw(9, 5));
  CHECK(draw(0, 0) != draw(0, 0));
}

TEST_CASE("runs and ops that share nothing draw different numbers") {
  Graph graph;
  const auto x = random_normal<float>(graph, {16}, {.seed = 2});
  Session session(graph, {.num_threads = 1});
  const Tensor<float> first = session.run(x), second = session.run(x);
  CHECK_FALSE(bitwise_equal(first, second));
  CHECK(first(0) != first(1));
}

TEST_CASE("random tensors take their shape from numbers or from an edge") {
  Graph graph({.seed = 1});
  CHECK(random_uniform<float>(graph, {2, 3}).shape() == PartialShape{2, 3});
  CHECK(random_normal<Half>(graph, Shape{}).shape() == PartialShape{});
  const auto fed = placeholder<std::int64_t>(graph, {2});
  const auto x = truncated_normal<double>(graph, fed);
  CHECK(x.shape() == PartialShape{dynamic, dynamic});
  Session session(graph, {.num_threads = 1});
  CHECK(session.run({{fed, Tensor<std::int64_t>({2}, {3, 5})}}, x).shape() == Shape{3, 5});
  CHECK(session.run({{fed, Tensor<std::int64_t>({2}, {0, 5})}}, x).shape() == Shape{0, 5});
  CHECK(error_of([&] {
          session.run({{fed, Tensor<std::int64_t>({2}, {-1, 5})}}, x);
        }).find("dimension -1 is negative") != std::string::npos);
}

TEST_CASE("a range without numbers is refused") {
  Graph graph;
  CHECK(error_of([&] { random_uniform<float>(graph, {2, -3}); }).find("INVALID_ARGUMENT") == 0);
  CHECK(error_of([&] { random_uniform<float>(graph, {2}, {.minval = 2, .maxval = 1}); }).find("greater than maxval") !=
        std::string::npos);
  CHECK(error_of([&] {
          random_uniform_int<std::int32_t>(graph, {2}, {.minval = 3, .maxval = 3});
        }).find("no integer") != std::string::npos);
  CHECK(error_of([&] { random_normal<float>(graph, {2}, {.stddev = -1}); }).find("negative") != std::string::npos);
}
