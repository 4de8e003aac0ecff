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

namespace detail {
AnyOutput any_weighted_cross_entropy(const AnyOutput& logits, const AnyOutput& targets, const AnyOutput& pos_weight,
                                     const At& at);
}  // namespace detail

/// The loss of sigmoid_cross_entropy_with_logits with the terms of positive targets times `pos_weight`, so that a
/// weight above 1 trades precision for recall: targets * -log(sigmoid(logits)) * pos_weight + (1 - targets) * -log(1 -
/// sigmoid(logits)), in the form (1 - z) x + (1 + (q - 1) z) (log(1 + exp(-|x|)) + max(-x, 0)) of TensorFlow, which
/// does not overflow. Shapes broadcast; the arguments are in TensorFlow 0.8's order.
template <class A, class B, class C>
  requires Accepts<SigmoidCrossEntropyWithLogits, A, B> && Accepts<SigmoidCrossEntropyWithLogits, A, C>
Output<ElementFor<SigmoidCrossEntropyWithLogits, A, B>> weighted_cross_entropy_with_logits(const A& logits,
                                                                                           const B& targets,
                                                                                           const C& pos_weight,
                                                                                           const At& at = {}) {
  const auto edges = detail::edges_for<SigmoidCrossEntropyWithLogits>(at, logits, targets);
  const auto weight = detail::edges_for<SigmoidCrossEntropyWithLogits>(at, logits, pos_weight)[1];
  return Output<ElementFor<SigmoidCrossEntropyWithLogits, A, B>>::unchecked(
      detail::any_weighted_cross_entropy(edges[0], edges[1], weight, at));
}

}  // namespace dflow
