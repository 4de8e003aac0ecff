#pragma once

#include <dflow/op/build.hpp>

#include <utility>

namespace dflow {

// One step of an optimizer on a variable and its slots. Rates and factors are scalars; gradients have the variable's
// shape. A sparse form takes `grad` [n, row...] for the rows `indices` [n] of the variable. Rows of equal index are
// summed first. Rows that are not named keep their values, slots included. A bad index fails the step before anything
// is written.

namespace detail {

/// The inputs of an update: the handles of the variable and its slots, then scalar factors in their order, with the
/// gradient among them, and the numbers of its rows behind a sparse one.
struct UpdateInputs {
  int num_variables = 1;
  int gradient = 1;
  int num_inputs = 2;
  bool is_sparse = false;

  constexpr int num_factors() const { return num_inputs - num_variables - (is_sparse ? 2 : 1); }
  /// The input that is factor `i`.
  constexpr int factor(int i) const {
    const int input = num_variables + i;
    return input < gradient ? input : input + (is_sparse ? 2 : 1);
  }
};

void infer_update(InferContext& context, const UpdateInputs& inputs);

template <int, class Arg>
using SameArg = Arg;

template <class Handles, class Before, class Gradient, class After>
struct UpdateSignature;
template <int... H, int... B, class... G, int... A>
struct UpdateSignature<std::integer_sequence<int, H...>, std::integer_sequence<int, B...>, In<G...>,
                       std::integer_sequence<int, A...>> {
  using type = In<SameArg<H, ResourceHandle>..., SameArg<B, TypeParam<0>>..., G..., SameArg<A, TypeParam<0>>...>;
};
template <int num_variables, int before, class Gradient, int after>
using UpdateSignatureOf =
    typename UpdateSignature<std::make_integer_sequence<int, num_variables>, std::make_integer_sequence<int, before>,
                             Gradient, std::make_integer_sequence<int, after>>::type;

/// An update of `num_variables` variables with `before` factors before the gradient and `after` behind it.
template <FixedString name, int num_variables, int before, int after = 0>
struct DenseUpdateOp : StatefulOp<name, FloatTypes> {
  static constexpr UpdateInputs update{num_variables, num_variables + before, num_variables + before + 1 + after};
  using Inputs = UpdateSignatureOf<num_variables, before, In<TypeParam<0>>, after>;
  using Outputs = Out<>;
  static void infer(InferContext& context) { infer_update(context, update); }
};
/// The same of rows.
template <FixedString name, int num_variables, int before, int after = 0>
struct SparseUpdateOp : StatefulOp<name, FloatTypes, IndexTypes> {
  static constexpr UpdateInputs update{num_variables, num_variables + before, num_variables + before + 2 + after, true};
  using Inputs = UpdateSignatureOf<num_variables, before, In<TypeParam<0>, TypeParam<1>>, after>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context) { infer_update(context, update); }
};

struct NesterovAttrs {
  bool use_nesterov = false;
};

template <class O>
constexpr bool uses_nesterov(const typename O::Attrs& attrs) {
  if constexpr (requires { attrs.use_nesterov; }) {
    return attrs.use_nesterov;
  } else {
    return false;
  }
}

}  // namespace detail

/// Inputs: var, alpha, delta. var -= alpha delta.
struct ApplyGradientDescent : detail::DenseUpdateOp<"ApplyGradientDescent", 1, 1> {};
/// Inputs: var, alpha, grad, indices.
struct SparseApplyGradientDescent : detail::SparseUpdateOp<"SparseApplyGradientDescent", 1, 1> {};

/// Inputs: var, accum, lr, grad, momentum. accum = momentum accum + grad; var -= lr accum. With Nesterov's momentum
/// var -= lr (grad + momentum accum) (Sutskever et al. 2013).
struct ApplyMomentum : detail::DenseUpdateOp<"ApplyMomentum", 2, 1, 1> {
  using Attrs = detail::NesterovAttrs;
};
/// Inputs: var, accum, lr, grad, indices, momentum.
struct SparseApplyMomentum : detail::SparseUpdateOp<"SparseApplyMomentum", 2, 1, 1> {
  using Attrs = detail::NesterovAttrs;
};

/// Inputs: var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad. Kingma and Ba 2014 (arXiv:1412.6980),
/// end of section 2: lr_t = lr sqrt(1 - beta2_power) / (1 - beta1_power); m += (1 - beta1) (grad - m);
/// v += (1 - beta2) (grad^2 - v); var -= lr_t m / (sqrt(v) + epsilon). With Nesterov's momentum var moves by
/// beta1 m + (1 - beta1) grad in place of m. The powers belong to the current step, beta^t, t from 1.
struct ApplyAdam : detail::DenseUpdateOp<"ApplyAdam", 3, 6> {
  using Attrs = detail::NesterovAttrs;
};
/// Inputs: those of `ApplyAdam`, and indices.
struct SparseApplyAdam : detail::SparseUpdateOp<"SparseApplyAdam", 3, 6> {
  using Attrs = detail::NesterovAttrs;
};

/// Inputs: var, accum, lr, grad. Duchi et al. 2011: accum += grad^2; var -= lr grad / sqrt(accum).
struct ApplyAdagrad : detail::DenseUpdateOp<"ApplyAdagrad", 2, 1> {};
/// Inputs: var, accum, lr, grad, indices.
struct SparseApplyAdagrad : detail::SparseUpdateOp<"SparseApplyAdagrad", 2, 1> {};

/// Inputs: var, accum, accum_update, lr, rho, epsilon, grad. Zeiler 2012 (arXiv:1212.5701), algorithm 1, times lr:
/// accum = rho accum + (1 - rho) grad^2; update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) grad;
/// accum_update = rho accum_update + (1 - rho) update^2; var -= lr update.
struct ApplyAdadelta : detail::DenseUpdateOp<"ApplyAdadelta", 3, 3> {};
/// Inputs: those of `ApplyAdadelta`, and indices.
struct SparseApplyAdadelta : detail::SparseUpdateOp<"SparseApplyAdadelta", 3, 3> {};

/// Inputs: var, accum, linear, grad, lr, l1, l2, lr_power. McMahan et al. 2013, algorithm 1: new_accum = accum +
/// grad^2; linear += grad - (new_accum^-lr_power - accum^-lr_power) / lr var; var = (sign(linear) l1 - linear) /
/// (new_accum^-lr_power / lr + 2 l2) where |linear| > l1, else 0; accum = new_accum.
struct ApplyFtrl : detail::DenseUpdateOp<"ApplyFtrl", 3, 0, 4> {};
/// Inputs: var, accum, linear, grad, indices, lr, l1, l2, lr_power.
struct SparseApplyFtrl : detail::SparseUpdateOp<"SparseApplyFtrl", 3, 0, 4> {};

/// Inputs: var, ms, mom, lr, rho, momentum, epsilon, grad. Tieleman and Hinton 2012, lecture 6.5:
/// ms += (1 - rho) (grad^2 - ms); mom = momentum mom + lr grad / sqrt(ms + epsilon); var -= mom.
struct ApplyRMSProp : detail::DenseUpdateOp<"ApplyRMSProp", 3, 4> {};
/// Inputs: those of `ApplyRMSProp`, and indices.
struct SparseApplyRMSProp : detail::SparseUpdateOp<"SparseApplyRMSProp", 3, 4> {};

/// Inputs: var, mg, ms, mom, lr, rho, momentum, epsilon, grad. As `ApplyRMSProp`, by the variance of the gradient:
/// mg += (1 - rho) (grad - mg); mom = momentum mom + lr grad / sqrt(ms - mg^2 + epsilon) (Graves 2013,
/// arXiv:1308.0850, equations 38 to 41).
struct ApplyCenteredRMSProp : detail::DenseUpdateOp<"ApplyCenteredRMSProp", 4, 4> {};
/// Inputs: those of `ApplyCenteredRMSProp`, and indices.
struct SparseApplyCenteredRMSProp : detail::SparseUpdateOp<"SparseApplyCenteredRMSProp", 4, 4> {};

}  // namespace dflow
