#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/batch_norm.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/ctc.hpp>
#include <dflow/ops/nn/ctc_decoders.hpp>
#include <dflow/ops/nn/depthwise_conv2d.hpp>
#include <dflow/ops/nn/fused.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/nn/pool2d.hpp>
#include <dflow/ops/nn/pool_argmax.hpp>
#include <dflow/ops/nn/softmax.hpp>

namespace dflow {

using ConvolutionOps = TypeList<Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter, DepthwiseConv2dNative,
                                DepthwiseConv2dNativeBackpropInput, DepthwiseConv2dNativeBackpropFilter, AvgPool,
                                AvgPoolGrad, MaxPool, MaxPoolGrad, MaxPoolGradGrad, MaxPoolWithArgmax>;

using LossOps = TypeList<Softmax, SoftmaxGrad, LogSoftmax, LogSoftmaxGrad, SoftmaxCrossEntropyWithLogits,
                         SparseSoftmaxCrossEntropyWithLogits, SigmoidCrossEntropyWithLogits, L2Loss>;

using NormalisationOps = TypeList<BiasAdd, BiasAddGrad, FusedBatchNorm, FusedBatchNormGrad>;

using SequenceOps = TypeList<CTCLoss, CTCGreedyDecoder, CTCBeamSearchDecoder>;

using FusedOps = TypeList<FusedMatMul, FusedConv2D>;

/// The family's ops in the standard table.
using NnOps = concat_t<ActivationOps, ConvolutionOps, LossOps, NormalisationOps, SequenceOps, FusedOps>;

}  // namespace dflow
