#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/linalg/functions.hpp>
#include <dflow/ops/linalg/decompose.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

// The ops of the same names; their matrices go through the library column by column. They are not recorded: the
// library may wait for the GPU.

void decompose_cholesky(KernelContext& context, const LinalgFunctions& functions);
void decompose_qr(KernelContext& context, const LinalgFunctions& functions);
void decompose_svd(KernelContext& context, const LinalgFunctions& functions, const Svd::Attrs& attrs);
void decompose_self_adjoint(KernelContext& context, const LinalgFunctions& functions, bool wants_vectors);
void find_determinants(KernelContext& context, const LinalgFunctions& functions);
void invert_matrices(KernelContext& context, const LinalgFunctions& functions, bool is_adjoint);
void solve_matrices(KernelContext& context, const LinalgFunctions& functions, bool is_adjoint);
void solve_triangles(KernelContext& context, const LinalgFunctions& functions,
                     const MatrixTriangularSolve::Attrs& attrs);
void solve_least_squares(KernelContext& context, const LeastSquaresFunctions& functions, bool is_fast);

}  // namespace cuda

template <class T>
struct Kernel<Cholesky, Cuda, T> {
  static constexpr bool repeats = false;
  void operator()(KernelContext& context) const { cuda::decompose_cholesky(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<Qr, Cuda, T> {
  static constexpr bool repeats = false;
  void operator()(KernelContext& context) const { cuda::decompose_qr(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<Svd, Cuda, T> {
  static constexpr bool repeats = false;
  Svd::Attrs attrs;
  void operator()(KernelContext& context) const { cuda::decompose_svd(context, cuda::linalg_functions<T>(), attrs); }
};
template <class T>
struct Kernel<SelfAdjointEig, Cuda, T> {
  static constexpr bool repeats = false;
  SelfAdjointEig::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::decompose_self_adjoint(context, cuda::linalg_functions<T>(), attrs.compute_v);
  }
};
template <class T>
struct Kernel<MatrixDeterminant, Cuda, T> {
  static constexpr bool repeats = false;
  void operator()(KernelContext& context) const { cuda::find_determinants(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<MatrixInverse, Cuda, T> {
  static constexpr bool repeats = false;
  MatrixInverse::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::invert_matrices(context, cuda::linalg_functions<T>(), attrs.adjoint);
  }
};
template <class T>
struct Kernel<MatrixSolve, Cuda, T> {
  static constexpr bool repeats = false;
  MatrixSolve::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::solve_matrices(context, cuda::linalg_functions<T>(), attrs.adjoint);
  }
};
template <class T>
struct Kernel<MatrixTriangularSolve, Cuda, T> {
  static constexpr bool repeats = false;
  MatrixTriangularSolve::Attrs attrs;
  void operator()(KernelContext& context) const { cuda::solve_triangles(context, cuda::linalg_functions<T>(), attrs); }
};
template <class T>
struct Kernel<MatrixSolveLs, Cuda, T> {
  static constexpr bool repeats = false;
  static constexpr std::uint64_t host_inputs = 4;  // the regularizer
  MatrixSolveLs::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::solve_least_squares(context, cuda::least_squares_functions<T>(), attrs.fast);
  }
};

}  // namespace dflow
