#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/self_adjoint_eig.ipp>
