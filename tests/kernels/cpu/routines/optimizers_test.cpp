#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include "checks.hpp"

namespace dflow::cpu {
namespace {

using namespace test;

template <class T>
T number(double x) {
  return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
}

/// A variable, its slots and its gradient, and the values that are expected after the update.
template <class T>
struct State {
  std::vector<T> var, m, v, grad;
  std::vector<double> var_expected, m_expected, v_expected;

  explicit State(std::int64_t n)
      : var(random_values<T>(n, 1)),
        m(random_values<T>(n, 2)),
        v(random_values<T>(n, 3)),
        grad(random_values<T>(n, 4)) {
    for (T& x : v) x = number<T>(std::abs(wide(x)) + 0.01);
    for (std::size_t i = 0; i < var.size(); ++i) {
      var_expected.push_back(wide(var[i]));
      m_expected.push_back(wide(m[i]));
      v_expected.push_back(wide(v[i]));
    }
  }
  void check(const std::string& what) const {
    check_close(var, var_expected, 16, what + ": variable");
    check_close(m, m_expected, 4, what + ": first slot");
    check_close(v, v_expected, 4, what + ": second slot");
  }
};

constexpr double lr = 0.125, momentum = 0.75;

template <class T>
void momentum_step(State<T>& s, std::size_t i, double g, bool nesterov) {
  s.m_expected[i] = s.m_expected[i] * momentum + g;
  s.var_expected[i] -= nesterov ? lr * (g + momentum * s.m_expected[i]) : lr * s.m_expected[i];
}

template <class T>
AdamStep<T> adam_step(bool nesterov) {
  return {number<T>(0.75 * 0.75), number<T>(0.9375 * 0.9375), number<T>(lr), number<T>(0.75),
          number<T>(0.9375),      number<T>(0.001),           nesterov};
}
template <class T>
void adam_step(State<T>& s, std::size_t i, double g, const AdamStep<T>& step) {
  const double rate = lr * std::sqrt(1 - wide(step.beta2_power)) / (1 - wide(step.beta1_power));
  s.m_expected[i] += 0.25 * (g - s.m_expected[i]);
  s.v_expected[i] += 0.0625 * (g * g - s.v_expected[i]);
  const double direction = step.use_nesterov ? 0.75 * s.m_expected[i] + 0.25 * g : s.m_expected[i];
  s.var_expected[i] -= rate * direction / (std::sqrt(s.v_expected[i]) + wide(step.epsilon));
}

TEMPLATE_TEST_CASE("dense updates follow their formulas", "[routines][optimizers]", float, double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (std::int64_t n : {0, 1, 7, 1000, 100003}) {
      State<TestType> descent(n);
      for (std::size_t i = 0; i < descent.var.size(); ++i) descent.var_expected[i] -= lr * wide(descent.grad[i]);
      apply_gradient_descent(threads, n, descent.var.data(), number<TestType>(lr), descent.grad.data(), options);
      descent.check("gradient descent");
      for (bool nesterov : {false, true}) {
        State<TestType> s(n);
        for (std::size_t i = 0; i < s.var.size(); ++i) momentum_step(s, i, wide(s.grad[i]), nesterov);
        apply_momentum(threads, n, s.var.data(), s.m.data(), number<TestType>(lr), s.grad.data(),
                       number<TestType>(momentum), nesterov, options);
        s.check("momentum");
        State<TestType> a(n);
        const auto step = adam_step<TestType>(nesterov);
        for (std::size_t i = 0; i < a.var.size(); ++i) adam_step(a, i, wide(a.grad[i]), step);
        apply_adam(threads, n, a.var.data(), a.m.data(), a.v.data(), step, a.grad.data(), options);
        a.check("Adam");
      }
    }
  }
}

TEMPLATE_TEST_CASE("sparse updates touch the rows of their indices alone", "[routines][optimizers]", float, double,
                   Half, BFloat16) {
  WorkStealingPool threads(2);
  const std::int64_t row = 5, limit = 300;
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < 100; ++i) indices.push_back((i * 7) % 300);
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto each = [&](auto&& f) {
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (std::size_t j = 0; j < static_cast<std::size_t>(row); ++j)
        f(static_cast<std::size_t>(indices[i] * row) + j, i * static_cast<std::size_t>(row) + j);
  };
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    State<TestType> descent(limit * row);
    each([&](std::size_t to, std::size_t from) { descent.var_expected[to] -= lr * wide(descent.grad[from]); });
    sparse_apply_gradient_descent(threads, count, row, descent.var.data(), number<TestType>(lr), descent.grad.data(),
                                  indices.data(), options);
    descent.check("gradient descent");
    State<TestType> s(limit * row);
    each([&](std::size_t to, std::size_t from) { momentum_step(s, to, wide(s.grad[from]), true); });
    sparse_apply_momentum(threads, count, row, s.var.data(), s.m.data(), number<TestType>(lr), s.grad.data(),
                          indices.data(), number<TestType>(momentum), true, options);
    s.check("momentum");
    State<TestType> a(limit * row);
    const auto step = adam_step<TestType>(false);
    each([&](std::size_t to, std::size_t from) { adam_step(a, to, wide(a.grad[from]), step); });
    sparse_apply_adam(threads, count, row, a.var.data(), a.m.data(), a.v.data(), step, a.grad.data(), indices.data(),
                      options);
    a.check("Adam");
  }
}

}  // namespace
}  // namespace dflow::cpu
