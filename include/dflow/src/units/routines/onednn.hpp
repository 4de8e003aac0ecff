#pragma once

/// Routines of CPU kernels, for all their element types.

#include <dflow/kernels/cpu/routines/nn/onednn_conv2d.ipp>
#include <dflow/kernels/cpu/routines/onednn.ipp>
