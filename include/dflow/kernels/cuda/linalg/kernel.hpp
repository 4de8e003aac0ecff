#pragma once

#include <dflow/kernels/cuda/array/index_bodies.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/linalg/bodies.hpp>
#include <dflow/kernels/typed_kernel.hpp>
#include <dflow/ops/linalg/decompose.hpp>
#include <dflow/ops/linalg/solve.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow {

namespace cuda {

/// The kernels that a decomposition of one element type takes.
struct LinalgFunctions {
  const KernelFunction& flag_matrices;
  const KernelFunction& replace_flagged;
  const KernelFunction& check_diagonal;
  const KernelFunction& determinant;
  const KernelFunction& identity;
  const KernelFunction& conjugate;
  const KernelFunction* from_real;  ///< null for real elements
};
template <class T>
LinalgFunctions linalg_functions() {
  using E = DeviceElement<T>;
  const KernelFunction* from_real = nullptr;
  if constexpr (is_complex_element<T>) from_real = &kernel_function<CastBody<typename T::value_type, E>>();
  return {kernel_function<FlagMatricesBody<E>>(),
          kernel_function<ReplaceFlaggedBody<E>>(),
          kernel_function<CheckDiagonalBody<E>>(),
          kernel_function<DeterminantBody<E>>(),
          kernel_function<IdentityBody<E>>(),
          kernel_function<ConjugateBody<E>>(),
          from_real};
}

/// What least squares take, which are computed in double.
struct LeastSquaresFunctions {
  LinalgFunctions wide;
  const KernelFunction* widen;  ///< null where elements are as wide
  const KernelFunction* narrow;
  const KernelFunction& add_diagonal;
  const KernelFunction& divide_rows;
  DType wide_dtype;
  double epsilon;  ///< of the elements' real part
};
template <class T>
LeastSquaresFunctions least_squares_functions() {
  using Wide = std::conditional_t<is_complex_element<T>, std::complex<double>, double>;
  using E = DeviceElement<T>;
  using W = DeviceElement<Wide>;
  const KernelFunction *widen = nullptr, *narrow = nullptr;
  if constexpr (!std::is_same_v<T, Wide>) {
    widen = &kernel_function<CastBody<E, W>>();
    narrow = &kernel_function<CastBody<W, E>>();
  }
  const double epsilon =
      sizeof(T) == sizeof(Wide) ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  return {linalg_functions<Wide>(),
          widen,
          narrow,
          kernel_function<AddDiagonalBody<W>>(),
          kernel_function<DivideRowsBody<W>>(),
          dtype_of<Wide>,
          epsilon};
}

// The ops of the same names, whose matrices go through the library column by column.

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
  void operator()(KernelContext& context) const { cuda::decompose_cholesky(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<Qr, Cuda, T> {
  void operator()(KernelContext& context) const { cuda::decompose_qr(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<Svd, Cuda, T> {
  Svd::Attrs attrs;
  void operator()(KernelContext& context) const { cuda::decompose_svd(context, cuda::linalg_functions<T>(), attrs); }
};
template <class T>
struct Kernel<SelfAdjointEig, Cuda, T> {
  SelfAdjointEig::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::decompose_self_adjoint(context, cuda::linalg_functions<T>(), attrs.compute_v);
  }
};
template <class T>
struct Kernel<MatrixDeterminant, Cuda, T> {
  void operator()(KernelContext& context) const { cuda::find_determinants(context, cuda::linalg_functions<T>()); }
};
template <class T>
struct Kernel<MatrixInverse, Cuda, T> {
  MatrixInverse::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::invert_matrices(context, cuda::linalg_functions<T>(), attrs.adjoint);
  }
};
template <class T>
struct Kernel<MatrixSolve, Cuda, T> {
  MatrixSolve::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::solve_matrices(context, cuda::linalg_functions<T>(), attrs.adjoint);
  }
};
template <class T>
struct Kernel<MatrixTriangularSolve, Cuda, T> {
  MatrixTriangularSolve::Attrs attrs;
  void operator()(KernelContext& context) const { cuda::solve_triangles(context, cuda::linalg_functions<T>(), attrs); }
};
template <class T>
struct Kernel<MatrixSolveLs, Cuda, T> {
  static constexpr std::uint64_t host_inputs = 4;  // the regularizer
  MatrixSolveLs::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::solve_least_squares(context, cuda::least_squares_functions<T>(), attrs.fast);
  }
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cuda/linalg/kernel.ipp>
#endif
