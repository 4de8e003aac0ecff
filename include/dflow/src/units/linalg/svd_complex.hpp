#pragma once

/// Linear algebra by Eigen.

// Each of Eigen's templates is instantiated in one unit of this folder.
#if !defined(DFLOW_LINALG_UNITS)
#define DFLOW_LINALG_UNITS
#endif

#include <dflow/kernels/cpu/linalg/svd_complex.ipp>
