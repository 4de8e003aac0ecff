#include <dflow/io/summary/histogram.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace dflow;

namespace {

constexpr double largest_double = std::numeric_limits<double>::max();
using Buckets = std::vector<double>;

}  // namespace

// The histograms are from TensorFlow 2.21's HistogramSummary.
TEST_CASE("a histogram has TensorFlow's limits, and one bucket for empty ones side by side", "[histogram]") {
  const Histogram histogram = histogram_of(Tensor<float>({5}, {-1, 0, 0.5f, 0.5f, 2}));
  CHECK(histogram.min == -1);
  CHECK(histogram.max == 2);
  CHECK(histogram.count == 5);
  CHECK(histogram.sum == 2);
  CHECK(histogram.sum_squares == 5.5);
  CHECK(histogram.limits == Buckets{-1.0089710279437536, -0.917246389039776, 0, 1e-12, 0.47069243095356195,
                                    0.5177616740489182, 1.9661990955585713, 2.1628190051144287, largest_double});
  CHECK(histogram.counts == Buckets{0, 1, 0, 1, 0, 2, 0, 1, 0});
}

TEST_CASE("a histogram without values has one empty bucket", "[histogram]") {
  const Histogram histogram = histogram_of(Tensor<float>(Shape{0}));
  CHECK(histogram.min == largest_double);
  CHECK(histogram.max == -largest_double);
  CHECK(histogram.limits == Buckets{largest_double});
  CHECK(histogram.counts == Buckets{0});
}

TEST_CASE("values far out and close to nothing have buckets", "[histogram]") {
  const Histogram far = histogram_of(Tensor<double>({4}, {1e30, -1e30, 1e-13, -1e-13}));
  CHECK(far.limits ==
        Buckets{-largest_double, -9.920775621859783e+19, -1e-12, 0, 1e-12, 9.920775621859783e+19, largest_double});
  CHECK(far.counts == Buckets{0, 1, 0, 1, 1, 0, 1});
  const Histogram least = histogram_of(Tensor<double>(-largest_double));
  CHECK(least.limits == Buckets{-largest_double, -9.920775621859783e+19, largest_double});
  CHECK(least.counts == Buckets{0, 1, 0});
  // TensorFlow writes past its buckets here.
  CHECK(histogram_of(Tensor<double>(largest_double)).counts == Buckets{0, 1});
  const Histogram edges = histogram_of(Tensor<double>({3}, {1e-12, -1e-12, 1.1e-12}));
  CHECK(edges.limits == Buckets{-1e-12, 0, 1e-12, 1.1000000000000002e-12, largest_double});
  CHECK(edges.counts == Buckets{0, 1, 0, 2, 0});
}

TEST_CASE("a histogram may be of any real numbers, and of no others", "[histogram]") {
  for_each_type<RealTypes>([]<class T>() {
    const Histogram histogram = histogram_of(Tensor<T>({3}, {T(3), T(3), T(7)}));
    CHECK(histogram.count == 3);
    CHECK(histogram.sum == 13);
    CHECK(histogram.sum_squares == 67);
  });
  CHECK(code_of([] { return histogram_of(Tensor<bool>(true)); }) == Code::invalid_argument);
  CHECK(code_of([] { return histogram_of(Tensor<std::string>("x")); }) == Code::invalid_argument);
  CHECK(code_of([] { return histogram_of(Tensor<std::complex<float>>(Shape{1})); }) == Code::invalid_argument);
  CHECK(code_of([] { return histogram_of(AnyTensor()); }) == Code::invalid_argument);
}

TEST_CASE("NaN and infinity are refused as TensorFlow does", "[histogram]") {
  CHECK(code_of([] {
          return histogram_of(Tensor<float>({2}, {1, std::numeric_limits<float>::quiet_NaN()}));
        }) == Code::invalid_argument);
  CHECK(code_of([] { return histogram_of(Tensor<double>(-std::numeric_limits<double>::infinity())); }) ==
        Code::invalid_argument);
}

TEST_CASE("buckets hold what lies between their limits", "[histogram]") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 100);
  Tensor<double> values(Shape{2000});
  for (double& value : values) value = normal(random);
  const Histogram histogram = histogram_of(values);
  REQUIRE(histogram.limits.size() == histogram.counts.size());
  CHECK(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  CHECK(histogram.limits.back() >= histogram.max);
  for (std::size_t i = 0; i < histogram.limits.size(); ++i) {
    const double low = i == 0 ? -std::numeric_limits<double>::infinity() : histogram.limits[i - 1];
    const auto count = std::count_if(values.begin(), values.end(),
                                     [&](double value) { return low <= value && value < histogram.limits[i]; });
    CHECK(histogram.counts[i] == static_cast<double>(count));
  }
}
