#pragma once

/// Linear algebra by Eigen.

#include <Eigen/SVD>
#include <dflow/kernels/cpu/linalg/eigen.hpp>

template class Eigen::JacobiSVD<dflow::cpu::OwnMatrix<double>>;
template Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>&
Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>::compute(const dflow::cpu::OwnMatrix<double>&);
