#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/linalg/band.hpp>
#include <dflow/kernels/cpu/linalg/cholesky.hpp>
#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/kernels/cpu/linalg/fourier.hpp>
#include <dflow/kernels/cpu/linalg/fourier_plan.hpp>
#include <dflow/kernels/cpu/linalg/normal_equations.hpp>
#include <dflow/kernels/cpu/linalg/qr.hpp>
#include <dflow/kernels/cpu/linalg/self_adjoint_eig.hpp>
#include <dflow/kernels/cpu/linalg/solve.hpp>
#include <dflow/kernels/cpu/linalg/solve_ls.hpp>
#include <dflow/kernels/cpu/linalg/svd.hpp>
#include <dflow/ops/linalg/list.hpp>
