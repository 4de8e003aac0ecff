#include <dflow/kernels/cpu/routines/nn/softmax.hpp>

#include "checks.hpp"

#include <limits>

namespace dflow::cpu {
namespace {

using namespace test;

constexpr std::int64_t softmax_shapes[][2] = {{1, 1},    {3, 10}, {7, 33}, {2, 1000},
                                              {1, 5001}, {0, 5},  {4, 0},  {40, 512}};

template <class T>
std::vector<T> logits_of(std::int64_t n, unsigned seed) {
  auto x = random_values<T>(n, seed);
  for (T& v : x) v = T(static_cast<float>(wide(v)) * 20.0f);
  return x;
}

struct Row {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
};
template <class T>
Row row_of(const T* x, std::int64_t n) {
  Row row;
  for (std::int64_t i = 0; i < n; ++i) row.largest = std::max(row.largest, wide(x[i]));
  for (std::int64_t i = 0; i < n; ++i) row.sum += std::exp(wide(x[i]) - row.largest);
  return row;
}

TEMPLATE_TEST_CASE("softmax, log softmax and their gradients equal naive ones in double", "[routines][softmax]", float,
                   double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const auto& [rows, cols] : softmax_shapes) {
      const auto x = logits_of<TestType>(rows * cols, 1);
      const auto dy = random_values<TestType>(rows * cols, 2);
      std::vector<double> soft, log_soft, grad, log_grad, grad_terms, log_grad_terms;
      std::vector<TestType> y(x.size()), log_y(x.size()), dx(x.size()), log_dx(x.size());
      softmax(threads, rows, cols, x.data(), y.data(), options);
      log_softmax(threads, rows, cols, x.data(), log_y.data(), options);
      softmax_backward(threads, rows, cols, y.data(), dy.data(), dx.data(), options);
      log_softmax_backward(threads, rows, cols, log_y.data(), dy.data(), log_dx.data(), options);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto* row_x = x.data() + r * cols;
        const Row row = row_of(row_x, cols);
        double dot = 0, sum = 0, dot_terms = 0, sum_terms = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          soft.push_back(std::exp(wide(row_x[c]) - row.largest) / row.sum);
          log_soft.push_back(wide(row_x[c]) - row.largest - std::log(row.sum));
          dot += wide(y[at]) * wide(dy[at]);
          sum += wide(dy[at]);
          dot_terms += std::abs(wide(y[at]) * wide(dy[at]));
          sum_terms += std::abs(wide(dy[at]));
        }
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          grad.push_back((wide(dy[at]) - dot) * wide(y[at]));
          grad_terms.push_back((std::abs(wide(dy[at])) + dot_terms) * wide(y[at]));
          log_grad.push_back(wide(dy[at]) - std::exp(wide(log_y[at])) * sum);
          log_grad_terms.push_back(std::abs(wide(dy[at])) +
                                   std::exp(wide(log_y[at])) * (std::abs(sum) + sum_terms / 8));
        }
      }
      const std::string what =
          std::to_string(rows) + "x" + std::to_string(cols) + " " + std::string(cpu_level_name(level));
      // The argument of exp is as large as the logits, 40, and so is its error.
      check_relative(y, soft, 100, "softmax " + what);
      check_close(log_y, log_soft, 100, "log softmax " + what);
      check_terms(
          dx, grad, [&](std::size_t i) { return grad_terms[i]; }, 16, "softmax gradient " + what);
      check_terms(
          log_dx, log_grad, [&](std::size_t i) { return log_grad_terms[i]; }, 64, "log softmax gradient " + what);
      std::vector<TestType> in_place = x;
      softmax(threads, rows, cols, in_place.data(), in_place.data(), options);
      CHECK(same_bits(in_place, y));
    }
  }
}

TEMPLATE_TEST_CASE("cross entropies and their gradients equal naive ones in double", "[routines][softmax]", float,
                   double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (const auto& [rows, cols] : softmax_shapes) {
      if (cols == 0) continue;
      const auto x = logits_of<TestType>(rows * cols, 3);
      auto labels = random_values<TestType>(rows * cols, 4);
      std::vector<std::int32_t> classes;
      for (std::int64_t r = 0; r < rows; ++r) classes.push_back(static_cast<std::int32_t>(r * 7 % cols));
      for (auto& l : labels) l = TestType(static_cast<float>(std::abs(wide(l))));
      std::vector<double> dense_loss, sparse_loss, dense_grad, sparse_grad, loss_terms, grad_terms;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Row row = row_of(x.data() + r * cols, cols);
        double loss = 0, terms = 0;
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          const double log_p = wide(x[at]) - row.largest - std::log(row.sum);
          loss -= wide(labels[at]) * log_p;
          terms += wide(labels[at]) * (std::abs(log_p) + 20);
          grad_terms.push_back(std::exp(log_p) * (1 + std::abs(log_p)) + wide(labels[at]));
          dense_grad.push_back(std::exp(log_p) - wide(labels[at]));
          const bool is_class = c == classes[static_cast<std::size_t>(r)];
          sparse_grad.push_back(std::exp(log_p) - (is_class ? 1 : 0));
          if (is_class) sparse_loss.push_back(-log_p);
        }
        dense_loss.push_back(loss);
        loss_terms.push_back(terms);
      }
      const auto size = static_cast<std::size_t>(rows);
      std::vector<TestType> loss(size), loss_alone(size), grad(x.size()), grad_alone(x.size());
      softmax_cross_entropy(threads, rows, cols, x.data(), labels.data(), loss.data(), grad.data(), options);
      const auto terms_of_loss = [&](std::size_t i) { return loss_terms[i]; };
      const auto terms_of_grad = [&](std::size_t i) { return grad_terms[i]; };
      // The reference in double adds up to `cols` terms in a row.
      const double reference = unit_roundoff<TestType>() == 0x1p-53 ? static_cast<double>(cols) : 0;
      check_terms(loss, dense_loss, terms_of_loss, 16 + reference, "dense loss");
      check_terms(grad, dense_grad, terms_of_grad, 64, "dense gradient");
      softmax_cross_entropy<TestType>(threads, rows, cols, x.data(), labels.data(), loss_alone.data(), nullptr,
                                      options);
      softmax_cross_entropy<TestType>(threads, rows, cols, x.data(), labels.data(), nullptr, grad_alone.data(),
                                      options);
      CHECK(same_bits(loss, loss_alone));
      CHECK(same_bits(grad, grad_alone));
      auto in_place = x;
      softmax_cross_entropy<TestType>(threads, rows, cols, in_place.data(), labels.data(), loss.data(), in_place.data(),
                                      options);
      check_terms(in_place, dense_grad, terms_of_grad, 64, "dense gradient over the logits");
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

TEST_CASE("softmax of huge logits stays finite and a class of no weight may be impossible", "[routines][softmax]") {
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

TEST_CASE("the first label out of range is reported and its row is NaN", "[routines][softmax]") {
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
