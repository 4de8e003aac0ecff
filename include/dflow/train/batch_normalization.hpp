#pragma once

#include <dflow/ops/nn/batch_norm.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/layer.hpp>
#include <dflow/train/regularizers.hpp>
#include <dflow/train/training.hpp>

#include <string_view>

namespace dflow {

struct BatchNormalizationOptions {
  Training training = Training(true);  ///< for calls without a `Training` argument
  double momentum = 0.99;              ///< of the moving averages
  double epsilon = 1e-3;
  Regularizer gamma_regularizer = {};
  Regularizer beta_regularizer = {};
  std::string_view name = "batch_normalization";
};

/// gamma (x - mean) / sqrt(variance + epsilon) + beta over all dimensions but the last (Ioffe and Szegedy 2015,
/// arXiv:1502.03167). Training uses the moments of the batch, evaluation uses moving averages of the moments. The
/// result of evaluation uses no moment of the batch, even if the batch holds NaN or infinity. A batch without elements
/// leaves the averages as they are.
///
/// x [..., channels], of any rank from 2 on. Variables, [channels] each: "gamma", "beta", "moving_mean",
/// "moving_variance". They are float unless x is double, also if x has 16 bits. The moving variance averages unbiased
/// variances (n / (n - 1) of the batch's variance) for every rank, as in TensorFlow's fused op. One op,
/// `FusedBatchNorm`, does all the work. If training is an edge, other nodes compute the moments of the batch.
///
/// The operations that move the averages are in the graph's collection "update_ops". `minimize` runs the update
/// operations of its loss (`train::update_operations`):
///
/// ```cpp
/// df::BatchNormalization norm;
/// auto trained = norm(x, df::Training(true)), evaluated = norm(test_x, df::Training(false));   // one set of variables
/// auto train = df::train::Adam(1e-3f).minimize(loss);
/// ```
/// Errors: InvalidArgument unless x has rank 2 or more and its last dimension is known.
class BatchNormalization : public Layer {
 public:
  explicit BatchNormalization(BatchNormalizationOptions options = {});
  BatchNormalization(const BatchNormalization&) = default;
  BatchNormalization& operator=(const BatchNormalization&) = default;

  template <AllowedFor<FusedBatchNorm> T>
  Output<T> operator()(const Output<T>& x, const Training& training, const At& at = {}) const {
    return Output<T>::unchecked(call(x, training, at));
  }
  template <AllowedFor<FusedBatchNorm> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, options_.training, at));
  }

  AnyVariable gamma() const { return variable("gamma"); }
  AnyVariable beta() const { return variable("beta"); }
  AnyVariable moving_mean() const { return variable("moving_mean"); }
  AnyVariable moving_variance() const { return variable("moving_variance"); }

 private:
  AnyOutput call(const AnyOutput& x, const Training& training, const At& at) const;

  BatchNormalizationOptions options_;
};

/// A layer for one call.
template <AllowedFor<FusedBatchNorm> T>
Output<T> batch_normalization(const Output<T>& x, const BatchNormalizationOptions& options = {}, const At& at = {}) {
  return BatchNormalization(options)(x, at);
}

}  // namespace dflow
