#pragma once

/// Public: all CPU kernels of family linalg, for programs that use the standard op table.

#include <dflow/src/units/linalg/linalg.hpp>
#include <dflow/src/units/linalg/qr.hpp>
#include <dflow/src/units/linalg/self_adjoint_eig.hpp>
#include <dflow/src/units/linalg/solve_complex128.hpp>
#include <dflow/src/units/linalg/solve_complex64.hpp>
#include <dflow/src/units/linalg/solve_double.hpp>
#include <dflow/src/units/linalg/solve_float.hpp>
#include <dflow/src/units/linalg/solve_ls_complex.hpp>
#include <dflow/src/units/linalg/solve_ls_real.hpp>
#include <dflow/src/units/linalg/svd_complex.hpp>
#include <dflow/src/units/linalg/svd_real.hpp>
#include <dflow/src/units/linalg/svd_real_steps.hpp>
