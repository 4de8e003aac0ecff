#pragma once

/// Bodies of the CPU kernels of family nn. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/nn/ctc_decoders.ipp>
#include <dflow/kernels/cpu/nn/ctc_loss.ipp>
#include <dflow/kernels/cpu/nn/ctc_rows.ipp>
#include <dflow/kernels/cpu/nn/list.hpp>
