#pragma once

/// Linear algebra by Eigen.

// Each of Eigen's templates is instantiated in one unit of this folder.
#if !defined(DFLOW_LINALG_UNITS)
#define DFLOW_LINALG_UNITS
#endif

#include <Eigen/SVD>
#include <dflow/kernels/cpu/linalg/eigen.hpp>

template class Eigen::JacobiSVD<dflow::cpu::OwnMatrix<double>>;
template Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>&
Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>::compute(const dflow::cpu::OwnMatrix<double>&);
