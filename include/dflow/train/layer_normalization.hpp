#pragma once

#include <dflow/ops/nn/batch_norm.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/train/layer.hpp>
#include <dflow/train/regularizers.hpp>

#include <string_view>

namespace dflow {

struct LayerNormalizationOptions {
  double epsilon = 1e-3;
  Regularizer gamma_regularizer = {};
  Regularizer beta_regularizer = {};
  std::string_view name = "layer_normalization";
};

/// gamma (x - mean) / sqrt(variance + epsilon) + beta, with the moments of each row, which is the last dimension of x
/// (Ba, Kiros and Hinton 2016, arXiv:1607.06450). Training and evaluation compute the same.
///
/// x [..., channels], of any rank from 2 on. The variables are "gamma" and "beta", [channels] each, in float unless x
/// is double. 16-bit floats are computed in float and rounded once.
///
/// ```cpp
/// df::LayerNormalization norm;
/// auto y = norm(hidden);
/// ```
/// Errors: InvalidArgument unless x has rank 2 or more and its last dimension is known.
class LayerNormalization : public Layer {
 public:
  explicit LayerNormalization(LayerNormalizationOptions options = {});
  LayerNormalization(const LayerNormalization&) = default;
  LayerNormalization& operator=(const LayerNormalization&) = default;

  template <AllowedFor<FusedBatchNorm> T>
  Output<T> operator()(const Output<T>& x, const At& at = {}) const {
    return Output<T>::unchecked(call(x, at));
  }

  AnyVariable gamma() const { return variable("gamma"); }
  AnyVariable beta() const { return variable("beta"); }

 private:
  AnyOutput call(const AnyOutput& x, const At& at) const;

  LayerNormalizationOptions options_;
};

/// A layer for one call.
template <AllowedFor<FusedBatchNorm> T>
Output<T> layer_normalization(const Output<T>& x, const LayerNormalizationOptions& options = {}, const At& at = {}) {
  return LayerNormalization(options)(x, at);
}

}  // namespace dflow
