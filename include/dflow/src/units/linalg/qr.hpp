#pragma once

/// Linear algebra by Eigen.

#include <dflow/kernels/cpu/linalg/qr.ipp>
