#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>
#include <dflow/ops/nn/batch_norm.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace dflow {

namespace detail {

inline double batch_norm_cost_ns(const KernelInit& init) {
  return 1000 + 1.5 * estimated_elements(init.node.outputs[0]);
}

}  // namespace detail

template <class T, class U>
struct Kernel<FusedBatchNorm, Cpu, T, U> {
  BatchNormAttrs attrs;

  double cost_ns(const KernelInit& init) const { return detail::batch_norm_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<U>& scale, const Tensor<U>& offset,
                  const Tensor<U>& mean, const Tensor<U>& variance, Tensor<T>& y, Tensor<U>& batch_mean,
                  Tensor<U>& batch_variance, Tensor<U>& saved_mean, Tensor<U>& saved_variance) const {
    if constexpr (std::is_same_v<U, BatchNormParameter<T>>) {
      const std::int64_t channels = x.dim(3), rows = channels == 0 ? 0 : x.num_elements() / channels;
      if (!attrs.is_training) {
        if (rows != 0) {
          cpu::batch_norm_inference<T>(context.pool(), rows, channels, x.data(), scale.data(), offset.data(),
                                       mean.data(), variance.data(), U(attrs.epsilon), y.data(), cpu_options(context));
        }
        for (Tensor<U>* copy : {&batch_mean, &saved_mean}) std::copy(mean.begin(), mean.end(), copy->begin());
        for (Tensor<U>* copy : {&batch_variance, &saved_variance})
          std::copy(variance.begin(), variance.end(), copy->begin());
        return;
      }
      if (rows == 0) {
        for (Tensor<U>* statistic : {&batch_mean, &batch_variance, &saved_mean, &saved_variance}) {
          std::fill(statistic->begin(), statistic->end(), std::numeric_limits<U>::quiet_NaN());
        }
        return;
      }
      cpu::batch_norm_training<T>(context.pool(), rows, channels, x.data(), scale.data(), offset.data(),
                                  U(attrs.epsilon), y.data(), saved_mean.data(), saved_variance.data(),
                                  cpu_options(context));
      // Bessel's correction; of one value the variance is 0 either way.
      const U correction = static_cast<U>(rows) / static_cast<U>(std::max<std::int64_t>(rows - 1, 1));
      std::copy(saved_mean.begin(), saved_mean.end(), batch_mean.begin());
      std::transform(saved_variance.begin(), saved_variance.end(), batch_variance.begin(),
                     [&](U value) { return value * correction; });
    } else {
      context.fail("the element types of images and parameters do not go together");
    }
  }
};

template <class T, class U>
struct Kernel<FusedBatchNormGrad, Cpu, T, U> {
  BatchNormAttrs attrs;

  double cost_ns(const KernelInit& init) const { return 2 * detail::batch_norm_cost_ns(init); }

  void operator()(KernelContext& context, const Tensor<T>& dy, const Tensor<T>& x, const Tensor<U>& scale,
                  const Tensor<U>& mean, const Tensor<U>& variance, Tensor<T>& dx, Tensor<U>& dscale,
                  Tensor<U>& doffset) const {
    if constexpr (std::is_same_v<U, BatchNormParameter<T>>) {
      const std::int64_t channels = x.dim(3), rows = channels == 0 ? 0 : x.num_elements() / channels;
      if (rows == 0) {
        std::fill(dscale.begin(), dscale.end(), U(0));
        std::fill(doffset.begin(), doffset.end(), U(0));
        return;
      }
      const auto backward =
          attrs.is_training ? &cpu::batch_norm_training_backward<T> : &cpu::batch_norm_inference_backward<T>;
      backward(context.pool(), rows, channels, x.data(), dy.data(), scale.data(), mean.data(), variance.data(),
               U(attrs.epsilon), dx.data(), dscale.data(), doffset.data(), cpu_options(context));
    } else {
      context.fail("the element types of images and parameters do not go together");
    }
  }
};

}  // namespace dflow
