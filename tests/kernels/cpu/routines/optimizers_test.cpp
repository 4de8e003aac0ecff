#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include "checks.hpp"

#include <algorithm>
#include <initializer_list>

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

constexpr double epsilon = 0.0009765625, beta1 = 0.75, beta2 = 0.9375;

template <class T>
void adam_step(State<T>& s, std::size_t i, double g, bool nesterov) {
  const double rate = lr * std::sqrt(1 - beta2 * beta2) / (1 - beta1 * beta1);
  s.m_expected[i] += (1 - beta1) * (g - s.m_expected[i]);
  s.v_expected[i] += (1 - beta2) * (g * g - s.v_expected[i]);
  const double direction = nesterov ? beta1 * s.m_expected[i] + (1 - beta1) * g : s.m_expected[i];
  s.var_expected[i] -= rate * direction / (std::sqrt(s.v_expected[i]) + epsilon);
}

template <class T>
UpdateArguments arguments_of(State<T>& s, std::initializer_list<double> factors, bool nesterov = false) {
  UpdateArguments arguments{.dtype = dtype_of<T>,
                            .variables = {s.var.data(), s.m.data(), s.v.data()},
                            .gradient = s.grad.data(),
                            .use_nesterov = nesterov};
  std::copy(factors.begin(), factors.end(), arguments.factors);
  return arguments;
}
template <class T>
UpdateArguments adam_arguments(State<T>& s, bool nesterov) {
  return arguments_of(s, {beta1 * beta1, beta2 * beta2, lr, beta1, beta2, epsilon}, nesterov);
}

using dflow::detail::AdamRule;
using dflow::detail::GradientDescentRule;
using dflow::detail::MomentumRule;

TEMPLATE_TEST_CASE("dense updates follow their formulas", "[routines][optimizers]", float, double, Half, BFloat16) {
  WorkStealingPool threads(2);
  for (CpuLevel level : levels_here()) {
    const CpuOptions options{.max_level = level};
    for (std::int64_t n : {0, 1, 7, 1000, 100003}) {
      State<TestType> descent(n);
      for (std::size_t i = 0; i < descent.var.size(); ++i) descent.var_expected[i] -= lr * wide(descent.grad[i]);
      apply_update<GradientDescentRule>(threads, n, arguments_of(descent, {lr}), options);
      descent.check("gradient descent");
      for (bool nesterov : {false, true}) {
        State<TestType> s(n);
        for (std::size_t i = 0; i < s.var.size(); ++i) momentum_step(s, i, wide(s.grad[i]), nesterov);
        apply_update<MomentumRule>(threads, n, arguments_of(s, {lr, momentum}, nesterov), options);
        s.check("momentum");
        State<TestType> a(n);
        for (std::size_t i = 0; i < a.var.size(); ++i) adam_step(a, i, wide(a.grad[i]), nesterov);
        apply_update<AdamRule>(threads, n, adam_arguments(a, nesterov), options);
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
    apply_update_rows<GradientDescentRule>(threads, count, row, arguments_of(descent, {lr}), indices.data(), options);
    descent.check("gradient descent");
    State<TestType> s(limit * row);
    each([&](std::size_t to, std::size_t from) { momentum_step(s, to, wide(s.grad[from]), true); });
    apply_update_rows<MomentumRule>(threads, count, row, arguments_of(s, {lr, momentum}, true), indices.data(),
                                    options);
    s.check("momentum");
    State<TestType> a(limit * row);
    each([&](std::size_t to, std::size_t from) { adam_step(a, to, wide(a.grad[from]), false); });
    apply_update_rows<AdamRule>(threads, count, row, adam_arguments(a, false), indices.data(), options);
    a.check("Adam");
  }
}

}  // namespace
}  // namespace dflow::cpu
