#pragma once

/// Bodies of the CPU kernels of family image. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/image/axis_taps.ipp>
#include <dflow/kernels/cpu/image/boxes.ipp>
#include <dflow/kernels/cpu/image/list.hpp>
#include <dflow/kernels/cpu/image/resize.ipp>
