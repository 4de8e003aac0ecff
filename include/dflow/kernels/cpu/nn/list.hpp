#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/elementwise/library_code.hpp>
#include <dflow/kernels/cpu/nn/batch_norm.hpp>
#include <dflow/kernels/cpu/nn/bias.hpp>
#include <dflow/kernels/cpu/nn/conv2d.hpp>
#include <dflow/kernels/cpu/nn/ctc_decoders.hpp>
#include <dflow/kernels/cpu/nn/ctc_loss.hpp>
#include <dflow/kernels/cpu/nn/ctc_rows.hpp>
#include <dflow/kernels/cpu/nn/depthwise_conv2d.hpp>
#include <dflow/kernels/cpu/nn/fused.hpp>
#include <dflow/kernels/cpu/nn/losses.hpp>
#include <dflow/kernels/cpu/nn/pool2d.hpp>
#include <dflow/kernels/cpu/nn/softmax.hpp>
#include <dflow/ops/nn/list.hpp>
