#include <dflow/kernels/cpu/linalg/eigen.hpp>

#include <Eigen/SVD>

template class Eigen::JacobiSVD<dflow::cpu::OwnMatrix<double>>;
template Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>&
Eigen::internal::UpperBidiagonalization<dflow::cpu::OwnMatrix<double>>::compute(const dflow::cpu::OwnMatrix<double>&);
