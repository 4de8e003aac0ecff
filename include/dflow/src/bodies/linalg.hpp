#pragma once

/// Bodies of the CPU kernels of family linalg. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/linalg/list.hpp>
#include <dflow/kernels/cpu/linalg/qr.ipp>
#include <dflow/kernels/cpu/linalg/self_adjoint_eig.ipp>
#include <dflow/kernels/cpu/linalg/solve_ls.ipp>
#include <dflow/kernels/cpu/linalg/svd_complex.ipp>
#include <dflow/kernels/cpu/linalg/svd_real.ipp>
