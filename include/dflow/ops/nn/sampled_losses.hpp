#pragma once

#include <dflow/ops/random/candidates.hpp>

#include <cstdint>
#include <optional>

namespace dflow {

struct SampledLossOptions {
  std::int64_t num_sampled = 1;  ///< candidates that a step draws for all examples of the batch
  std::int64_t num_classes = 1;  ///< rows of the weights
  /// Empty: `log_uniform_candidate_sampler`, unique, for classes in the order of their frequencies.
  std::optional<Candidates> sampled_values = std::nullopt;
  /// Leaves candidates that are a true class of an example out of its loss. Empty: in `sampled_softmax_loss` alone.
  std::optional<bool> remove_accidental_hits = std::nullopt;
  std::uint64_t seed = 0;  ///< of the sampler that is drawn from if there are no sampled_values
};

namespace detail {
enum class SampledLoss : std::uint8_t { nce, softmax };
AnyOutput any_sampled_loss(SampledLoss loss, const AnyOutput& weights, const AnyOutput& biases, const AnyOutput& inputs,
                           const AnyOutput& labels, const SampledLossOptions& options, const At& at);
}  // namespace detail

// Losses for training with very many classes: weights [classes, dim] and biases [classes], which may be variables;
// inputs [batch, dim]; labels [batch, num_true], int32 or int64, with a known num_true; gives the loss of each row,
// [batch]. Only the rows of the true classes and of the candidates are read, where the variables lie, and the gradients
// by weights and biases are IndexedSlices of these rows. The logarithm of the expected count of a class is subtracted
// from its logit, so that the loss is near to that of all classes.
//
// ```cpp
// auto loss = df::reduce_mean(df::nce_loss(weights, biases, hidden, labels, {.num_sampled = 64, .num_classes =
// words}));
// ```
// Errors: InvalidArgument as for the sampler, and if the shapes do not fit; in the step for a label outside [0,
// num_classes).

/// Noise-contrastive estimation (Gutmann and Hyvarinen 2010): the sum of the sigmoid cross entropies of the true
/// classes, with targets of 1 / num_true, and of the candidates, with targets of 0.
template <class T, class I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> nce_loss(const Output<T>& weights, const Output<T>& biases, const Output<T>& inputs, const Output<I>& labels,
                   const SampledLossOptions& options, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_sampled_loss(detail::SampledLoss::nce, weights, biases, inputs, labels, options, at));
}

/// Sampled softmax (Jean et al. 2014): the cross entropy of the softmax over the true classes, with targets of 1 /
/// num_true, and the candidates.
template <class T, class I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> sampled_softmax_loss(const Output<T>& weights, const Output<T>& biases, const Output<T>& inputs,
                               const Output<I>& labels, const SampledLossOptions& options, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_sampled_loss(detail::SampledLoss::softmax, weights, biases, inputs, labels, options, at));
}

}  // namespace dflow
