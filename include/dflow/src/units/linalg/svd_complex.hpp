#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/svd_complex.ipp>
