#pragma once

/// Routines and inner loops of CPU kernels. A table instantiates the routines that its kernels need.

#include <dflow/kernels/cpu/loops/cast_loops.hpp>
#include <dflow/kernels/cpu/loops/channel_loops.hpp>
#include <dflow/kernels/cpu/loops/copy_loops.hpp>
#include <dflow/kernels/cpu/loops/depthwise_loops.hpp>
#include <dflow/kernels/cpu/loops/elementwise_loops.hpp>
#include <dflow/kernels/cpu/loops/gemm_loops.hpp>
#include <dflow/kernels/cpu/loops/math_loops.hpp>
#include <dflow/kernels/cpu/loops/patch_loops.hpp>
#include <dflow/kernels/cpu/loops/pool_loops.hpp>
#include <dflow/kernels/cpu/loops/reduce_loops.hpp>
#include <dflow/kernels/cpu/loops/simple_gemm_loops.hpp>
#include <dflow/kernels/cpu/loops/softmax_loops.hpp>
#include <dflow/kernels/cpu/loops/update_loops.hpp>
#include <dflow/kernels/cpu/loops/window_gradient_loops.hpp>
#include <dflow/kernels/cpu/loops/window_loops.hpp>
#include <dflow/kernels/cpu/routines/array/rows.ipp>
#include <dflow/kernels/cpu/routines/array/transpose.ipp>
#include <dflow/kernels/cpu/routines/math/gemm.ipp>
#include <dflow/kernels/cpu/routines/math/reduce.ipp>
#include <dflow/kernels/cpu/routines/math/vector_math.ipp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.ipp>
#include <dflow/kernels/cpu/routines/nn/bias.ipp>
#include <dflow/kernels/cpu/routines/nn/conv2d.ipp>
#include <dflow/kernels/cpu/routines/nn/onednn_conv2d.ipp>
#include <dflow/kernels/cpu/routines/nn/pool2d.ipp>
#include <dflow/kernels/cpu/routines/nn/softmax.ipp>
#include <dflow/kernels/cpu/routines/onednn.ipp>
#include <dflow/kernels/cpu/routines/state/optimizers.ipp>
