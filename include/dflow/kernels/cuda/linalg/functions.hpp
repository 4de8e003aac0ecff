#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/bodies/linalg.hpp>
#include <dflow/kernels/cuda/grid/kernel_function.hpp>

#include <complex>
#include <limits>
#include <type_traits>

namespace dflow::cuda {

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

/// The functions for least squares, which are computed in double.
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

}  // namespace dflow::cuda
