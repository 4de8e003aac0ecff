#pragma once

#include <dflow/op/build.hpp>

#include <tuple>

namespace dflow {

/// Cross entropy of softmax(logits) with a distribution per row: loss, and backprop = softmax(logits) - labels.
struct SoftmaxCrossEntropyWithLogits : StandardOp<"SoftmaxCrossEntropyWithLogits", FloatTypes> {
  using Inputs = In<T, T>;
  using Outputs = Out<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Cross entropy of softmax(logits) with one class per row: loss, and backprop = softmax(logits) - one_hot(labels).
struct SparseSoftmaxCrossEntropyWithLogits : StandardOp<"SparseSoftmaxCrossEntropyWithLogits", FloatTypes, IndexTypes> {
  using Inputs = In<T, U>;
  using Outputs = Out<T, T>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tlabels"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Cross entropy of independent probabilities sigmoid(logits) with `targets`, in the form that does not overflow:
/// max(x, 0) - x z + log(1 + exp(-|x|)).
struct SigmoidCrossEntropyWithLogits : StandardElementwiseOp<"SigmoidCrossEntropyWithLogits", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x, T z) {
    return max(x, T(0)) - x * z + log1p(exp(-abs(x)));
  }
  static void gradient(GradientContext& context);
};

/// Half the sum of the squares.
struct L2Loss : StandardOp<"L2Loss", FloatTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// logits: [...batch, classes], labels: [...batch, classes], each row a distribution over the classes; gives the loss
/// of each row: [...batch].
///
/// Errors: InvalidArgument unless both have one shape of rank 1 or more.
template <class A, class B>
  requires Accepts<SoftmaxCrossEntropyWithLogits, A, B>
Output<ElementFor<SoftmaxCrossEntropyWithLogits, A, B>> softmax_cross_entropy(const A& logits, const B& labels,
                                                                              const At& at = {}) {
  return std::get<0>(apply<SoftmaxCrossEntropyWithLogits>(logits, labels, {}, at));
}

/// logits: [...batch, classes], labels: int32 or int64 [...batch], each in [0, classes); gives the loss of each row:
/// [...batch].
///
/// Errors: InvalidArgument unless there is one label per row of logits. When the step runs, InvalidArgument for a label
/// out of range; the message names its position among all labels.
template <class A, class B>
  requires Accepts<SparseSoftmaxCrossEntropyWithLogits, A, B>
Output<ElementFor<SparseSoftmaxCrossEntropyWithLogits, A, B>> sparse_softmax_cross_entropy(const A& logits,
                                                                                           const B& labels,
                                                                                           const At& at = {}) {
  return std::get<0>(apply<SparseSoftmaxCrossEntropyWithLogits>(logits, labels, {}, at));
}

/// logits, labels: any shapes that broadcast together, labels in [0, 1]; gives the loss of each element.
///
/// Errors: InvalidArgument if the shapes do not broadcast together.
template <class A, class B>
  requires Accepts<SigmoidCrossEntropyWithLogits, A, B>
Output<ElementFor<SigmoidCrossEntropyWithLogits, A, B>> sigmoid_cross_entropy(const A& logits, const B& labels,
                                                                              const At& at = {}) {
  return apply<SigmoidCrossEntropyWithLogits>(logits, labels, {}, at);
}

/// x: any shape; gives sum(x^2) / 2, a scalar.
template <AllowedFor<L2Loss> T>
Output<T> l2_loss(const Output<T>& x, const At& at = {}) {
  return apply<L2Loss>(x, {}, at);
}

}  // namespace dflow
