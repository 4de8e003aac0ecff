#pragma once

#include <dflow/base/config.hpp>

namespace dflow::detail {

// The rules of optimizers, one body for all devices. An element is computed in type `C`, and `Math` has the functions
// `sqrt`, `abs` and `pow`. A rule is made of its factors, in the order of the inputs of its op. A call takes one
// element of the gradient, of the variable and of each slot. A `flag` is the same for all elements: a caller may have
// one loop for each value of the flag. `ops/state/update.hpp` has the formulas.

template <class C, class Math>
struct GradientDescentRule {
  static constexpr const char* name = "gradient descent";
  static constexpr const char* sparse_name = "sparse gradient descent";
  static constexpr const char* joint_name = "joint gradient descent";
  static constexpr int num_variables = 1, num_factors = 1;

  C lr;

  DFLOW_FN GradientDescentRule(const C* factors, bool) : lr(factors[0]) {}
  DFLOW_FN void operator()(C gradient, C& variable) const { variable = variable - lr * gradient; }
};

template <class C, class Math>
struct MomentumRule {
  static constexpr const char* name = "momentum";
  static constexpr const char* sparse_name = "sparse momentum";
  static constexpr const char* joint_name = "joint momentum";
  static constexpr int num_variables = 2, num_factors = 2;

  C lr, momentum;
  bool flag;  ///< Nesterov's momentum

  DFLOW_FN MomentumRule(const C* factors, bool use_nesterov)
      : lr(factors[0]), momentum(factors[1]), flag(use_nesterov) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& accumulator) const {
    accumulator = accumulator * momentum + gradient;
    variable = variable - lr * (flag ? gradient + momentum * accumulator : accumulator);
  }
};

template <class C, class Math>
struct AdamRule {
  static constexpr const char* name = "adam";
  static constexpr const char* sparse_name = "sparse adam";
  static constexpr const char* joint_name = "joint adam";
  static constexpr int num_variables = 3, num_factors = 6;

  C epsilon, rest1, rest2, lr;
  C of_m, of_gradient;  ///< the direction is m, or with Nesterov's momentum beta1 m + (1 - beta1) gradient

  DFLOW_FN AdamRule(const C* factors, bool nesterov)
      : epsilon(factors[5]),
        rest1(C(1) - factors[3]),
        rest2(C(1) - factors[4]),
        lr(factors[2] * Math::sqrt(C(1) - factors[1]) / (C(1) - factors[0])),
        of_m(nesterov ? factors[3] : C(1)),
        of_gradient(nesterov ? rest1 : C(0)) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& m, C& v) const {
    m = m + rest1 * (gradient - m);
    v = v + rest2 * (gradient * gradient - v);
    variable = variable - lr * (of_m * m + of_gradient * gradient) / (Math::sqrt(v) + epsilon);
  }
};

template <class C, class Math>
struct AdagradRule {
  static constexpr int num_variables = 2, num_factors = 1;

  C lr;

  DFLOW_FN AdagradRule(const C* factors, bool) : lr(factors[0]) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& accumulator) const {
    accumulator = accumulator + gradient * gradient;
    variable = variable - lr * gradient / Math::sqrt(accumulator);
  }
};

template <class C, class Math>
struct AdadeltaRule {
  static constexpr int num_variables = 3, num_factors = 3;

  C lr, rho, epsilon;

  DFLOW_FN AdadeltaRule(const C* factors, bool) : lr(factors[0]), rho(factors[1]), epsilon(factors[2]) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& accumulator, C& updates) const {
    accumulator = accumulator * rho + gradient * gradient * (C(1) - rho);
    const C update = Math::sqrt(updates + epsilon) / Math::sqrt(accumulator + epsilon) * gradient;
    updates = updates * rho + update * update * (C(1) - rho);
    variable = variable - lr * update;
  }
};

template <class C, class Math>
struct FtrlRule {
  static constexpr int num_variables = 3, num_factors = 4;

  C lr, l1, l2, power;
  bool flag;  ///< the power is a root

  DFLOW_FN FtrlRule(const C* factors, bool)
      : lr(factors[0]), l1(factors[1]), l2(factors[2]), power(-factors[3]), flag(power == C(0.5)) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& accumulator, C& linear) const {
    const C before = scale(accumulator);
    accumulator = accumulator + gradient * gradient;
    const C after = scale(accumulator);
    linear = linear + (gradient - (after - before) / lr * variable);
    const C shrunk = (linear < C(0) ? -l1 : l1) - linear;
    variable = Math::abs(linear) > l1 ? shrunk / (after / lr + C(2) * l2) : C(0);
  }

 private:
  DFLOW_FN C scale(C x) const { return flag ? Math::sqrt(x) : Math::pow(x, power); }
};

template <class C, class Math>
struct RmsPropRule {
  static constexpr const char* name = "rms prop";
  static constexpr const char* sparse_name = "sparse rms prop";
  static constexpr const char* joint_name = "joint rms prop";
  static constexpr int num_variables = 3, num_factors = 4;

  C lr, rest, momentum, epsilon;

  DFLOW_FN RmsPropRule(const C* factors, bool)
      : lr(factors[0]), rest(C(1) - factors[1]), momentum(factors[2]), epsilon(factors[3]) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& mean_square, C& moved) const {
    mean_square = mean_square + rest * (gradient * gradient - mean_square);
    moved = moved * momentum + lr * gradient / Math::sqrt(mean_square + epsilon);
    variable = variable - moved;
  }
};

template <class C, class Math>
struct CenteredRmsPropRule {
  static constexpr int num_variables = 4, num_factors = 4;

  C lr, rest, momentum, epsilon;

  DFLOW_FN CenteredRmsPropRule(const C* factors, bool)
      : lr(factors[0]), rest(C(1) - factors[1]), momentum(factors[2]), epsilon(factors[3]) {}
  DFLOW_FN void operator()(C gradient, C& variable, C& mean, C& mean_square, C& moved) const {
    mean = mean + rest * (gradient - mean);
    mean_square = mean_square + rest * (gradient * gradient - mean_square);
    moved = moved * momentum + lr * gradient / Math::sqrt(mean_square - mean * mean + epsilon);
    variable = variable - moved;
  }
};

}  // namespace dflow::detail
