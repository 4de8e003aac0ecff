#pragma once

/// Bodies of the ops of family nn.

#include <dflow/ops/nn/activation.ipp>
#include <dflow/ops/nn/batch_norm.ipp>
#include <dflow/ops/nn/bias.ipp>
#include <dflow/ops/nn/conv2d.ipp>
#include <dflow/ops/nn/conv3d.ipp>
#include <dflow/ops/nn/convolutions.ipp>
#include <dflow/ops/nn/ctc.ipp>
#include <dflow/ops/nn/ctc_decoders.ipp>
#include <dflow/ops/nn/depthwise_conv2d.ipp>
#include <dflow/ops/nn/dropout.ipp>
#include <dflow/ops/nn/fused.ipp>
#include <dflow/ops/nn/local_response.ipp>
#include <dflow/ops/nn/losses.ipp>
#include <dflow/ops/nn/pool2d.ipp>
#include <dflow/ops/nn/pool3d.ipp>
#include <dflow/ops/nn/pool_argmax.ipp>
#include <dflow/ops/nn/sampled_losses.ipp>
#include <dflow/ops/nn/softmax.ipp>
#include <dflow/ops/nn/window.ipp>
