#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

// One step of an optimizer on a variable and its slots. Rates and factors are scalars; gradients have the variable's
// shape. A sparse form takes `grad` [n, row...] for the rows `indices` [n] of the variable. Rows of equal index are
// summed first. Rows that are not named keep their values, slots included. A bad index fails the step before anything
// is written.

/// var -= alpha * delta.
struct ApplyGradientDescent : StatefulOp<"ApplyGradientDescent", FloatTypes> {
  using Inputs = In<ResourceHandle, T, T>;  // var, alpha, delta
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// accum = momentum * accum + grad; var -= lr * accum. With Nesterov's momentum var -= lr * (grad + momentum * accum)
/// (Sutskever et al. 2013).
struct ApplyMomentum : StatefulOp<"ApplyMomentum", FloatTypes> {
  struct Attrs {
    bool use_nesterov = false;
  };
  using Inputs = In<ResourceHandle, ResourceHandle, T, T, T>;  // var, accum, lr, grad, momentum
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Kingma and Ba 2014 (arXiv:1412.6980), end of section 2: lr_t = lr sqrt(1 - beta2_power) / (1 - beta1_power);
/// m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr_t m / (sqrt(v) + epsilon).
struct ApplyAdam : StatefulOp<"ApplyAdam", FloatTypes> {
  struct Attrs {
    bool use_nesterov = false;
  };
  /// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
  using Inputs = In<ResourceHandle, ResourceHandle, ResourceHandle, T, T, T, T, T, T, T>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

struct SparseApplyGradientDescent : StatefulOp<"SparseApplyGradientDescent", FloatTypes, IndexTypes> {
  using Inputs = In<ResourceHandle, T, T, U>;  // var, alpha, grad, indices
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
};

struct SparseApplyMomentum : StatefulOp<"SparseApplyMomentum", FloatTypes, IndexTypes> {
  struct Attrs {
    bool use_nesterov = false;
  };
  using Inputs = In<ResourceHandle, ResourceHandle, T, T, U, T>;  // var, accum, lr, grad, indices, momentum
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
};

struct SparseApplyAdam : StatefulOp<"SparseApplyAdam", FloatTypes, IndexTypes> {
  struct Attrs {
    bool use_nesterov = false;
  };
  /// var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad, indices
  using Inputs = In<ResourceHandle, ResourceHandle, ResourceHandle, T, T, T, T, T, T, T, U>;
  using Outputs = Out<>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tindices"};
  static void infer(InferContext& context);
};

}  // namespace dflow
