#include <dflow/kernels/cpu/raw/softmax.hpp>

#include "raw_checks.hpp"

#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

constexpr std::int64_t shapes[][2] = {{1, 1}, {3, 10}, {7, 33}, {2, 1000}, {1, 5001}, {0, 5}, {4, 0}, {40, 512}};

template <class T> std::vector<T> logits_of(std::int64_t n, unsigned seed) {
  auto x = random_values<T>(n, seed);
  for (T& v : x) v = T(static_cast<float>(wide(v)) * 20.0f);
  return x;
}

struct Row {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
};
template <class T> Row row_of(const T* x, std::int64_t n) {
  Row row;
  for (std::int64_t i = 0; i < n; ++i) row.largest = std::max(row.largest, wide(x[i]));
  for (std::int64_t i = 0; i < n; ++i) row.sum += std::exp(wide(x[i]) - row.largest);
  return row;
}

TEMPLATE_TEST_CASE("softmax, log softmax and their gradients equal naive ones in double", "[raw][softmax]", float,
                   double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const auto& [rows, cols] : shapes) {
      const auto x = logits_of<TestType>(rows * cols, 1);
      const auto dy = random_values<TestType>(rows * cols, 2);
      std::vector<double> soft, log_soft, grad, log_grad;
      std::vector<TestType> y(x.size()), log_y(x.size()), dx(x.size()), log_dx(x.size());
      softmax(threads, rows, cols, x.data(), y.data(), options);
      log_softmax(threads, rows, cols, x.data(), log_y.data(), options);
      softmax_backward(threads, rows, cols, y.data(), dy.data(), dx.data(), options);
      log_softmax_backward(threads, rows, cols, log_y.data(), dy.data(), log_dx.data(), options);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto* row_x = x.data() + r * cols;
        const Row row = row_of(row_x, cols);
        double dot = 0, sum = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          soft.push_back(std::exp(wide(row_x[c]) - row.largest) / row.sum);
          log_soft.push_back(wide(row_x[c]) - row.largest - std::log(row.sum));
          dot += wide(y[at]) * wide(dy[at]);
          sum += wide(dy[at]);
        }
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          grad.push_back((wide(dy[at]) - dot) * wide(y[at]));
          log_grad.push_back(wide(dy[at]) - std::exp(wide(log_y[at])) * sum);
        }
      }
      const std::string what =
          std::to_string(rows) + "x" + std::to_string(cols) + " " + std::string(cpu_level_name(level));
      check_close(y, soft, 64, "softmax " + what);
      check_close(log_y, log_soft, 100, "log softmax " + what);
      check_close(dx, grad, 16, "softmax gradient " + what);
      check_close(log_dx, log_grad, 64, "log softmax gradient " + what);
      std::vector<TestType> in_place = x;
      softmax(threads, rows, cols, in_place.data(), in_place.data(), options);
      CHECK(same_bits(in_place, y));
    }
  }
}

TEMPLATE_TEST_CASE("cross entropies and their gradients equal naive ones in double", "[raw][softmax]", float, double,
                   Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const auto& [rows, cols] : shapes) {
      if (cols == 0) continue;
      const auto x = logits_of<TestType>(rows * cols, 3);
      auto labels = random_values<TestType>(rows * cols, 4);
      std::vector<std::int32_t> classes;
      for (std::int64_t r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>(r * 7 % cols));
      for (auto& l : labels) l = TestType(static_cast<float>(std::abs(wide(l))));
      std::vector<double> dense_loss, sparse_loss, dense_grad, sparse_grad;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Row row = row_of(x.data() + r * cols, cols);
        double loss = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          const double log_p = wide(x[at]) - row.largest - std::log(row.sum);
          loss -= wide(labels[at]) * log_p;
          dense_grad.push_back(std::exp(log_p) - wide(labels[at]));
          const bool is_class = c == classes[static_cast<std::size_t>(r)];
          sparse_grad.push_back(std::exp(log_p) - (is_class ? 1 : 0));
          if (is_class) sparse_loss.push_back(-log_p);
        }
        dense_loss.push_back(loss);
      }
      const auto size = static_cast<std::size_t>(rows);
      std::vector<TestType> loss(size), loss_alone(size), grad(x.size()), grad_alone(x.size());
      softmax_cross_entropy(threads, rows, cols, x.data(), labels.data(), loss.data(), grad.data(), options);
      // The reference in double adds up to `cols` large terms.
      const auto n = static_cast<double>(cols);
      check_close(loss, dense_loss, 64 + 40 * n + (unit_roundoff<TestType>() == 0x1p-53 ? 2 * n * n : 0), "dense loss");
      check_close(grad, dense_grad, 64, "dense gradient");
      softmax_cross_entropy<TestType>(threads, rows, cols, x.data(), labels.data(), loss_alone.data(), nullptr,
                                      options);
      softmax_cross_entropy<TestType>(threads, rows, cols, x.data(), labels.data(), nullptr, grad_alone.data(),
                                      options);
      CHECK(same_bits(loss, loss_alone));
      CHECK(same_bits(grad, grad_alone));
      auto in_place = x;
      softmax_cross_entropy<TestType>(threads, rows, cols, in_place.data(), labels.data(), loss.data(), in_place.data(),
                                      options);
      check_close(in_place, dense_grad, 64, "dense gradient over the logits");
      CHECK(sparse_softmax_cross_entropy(threads, rows, cols, x.data(), classes.data(), loss.data(), grad.data(),
                                         options) == -1);
      check_close(loss, sparse_loss, 100, "sparse loss");
      check_close(grad, sparse_grad, 64, "sparse gradient");
      in_place = x;
      CHECK(sparse_softmax_cross_entropy(threads, rows, cols, in_place.data(), classes.data(), loss.data(),
                                         in_place.data(), options) == -1);
      CHECK(same_bits(in_place, grad));
    }
  }
}

TEST_CASE("softmax of huge logits stays finite and a class of no weight may be impossible", "[raw][softmax]") {
  InlinePool serial;
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1e30f, 1e30f, -1e30f, -inf};
  const std::vector<float> labels = {0.5f, 0.5f, 0, 0};
  std::vector<float> y(4), loss(1);
  softmax(serial, 1, 4, x.data(), y.data());
  CHECK(y == std::vector<float>{0.5f, 0.5f, 0, 0});
  softmax_cross_entropy(serial, 1, 4, x.data(), labels.data(), loss.data(), y.data());
  CHECK(std::fabs(loss[0] - std::log(2.0f)) < 1e-6f);
  CHECK(y == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("the first label out of range is reported and its row is NaN", "[raw][softmax]") {
  InlinePool serial;
  const auto x = logits_of<float>(4 * 3, 5);
  const std::vector<std::int64_t> labels = {0, 3, 2, -1};
  std::vector<float> loss(4), grad(12);
  CHECK(sparse_softmax_cross_entropy(serial, 4, 3, x.data(), labels.data(), loss.data(), grad.data()) == 1);
  CHECK(std::isfinite(loss[0]));
  CHECK(std::isnan(loss[1]));
  CHECK(std::isnan(grad[5]));
  CHECK(std::isfinite(loss[2]));
  CHECK(std::isnan(loss[3]));
}

}  // namespace
}  // namespace dflow::cpu
