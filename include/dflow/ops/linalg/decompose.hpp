#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/linalg/element_types.hpp>

namespace dflow {

/// The lower triangular L with L L^H = A, for each Hermitian positive definite matrix A of the input. Only the lower
/// triangle of A is read. The gradient is Hermitian (Murray 2016, arXiv:1602.07527, section 3.3), as TensorFlow's.
struct Cholesky : StandardOp<"Cholesky", LinalgTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// A = Q R, with orthonormal columns of Q and an upper triangular R, by Householder reflections. With `full_matrices`,
/// Q is square; else it has as many columns as the smaller dimension of A.
///
/// The gradient (Seeger et al. 2017, arXiv:1710.08717; Roberts and Roberts 2020, arXiv:2009.10071, for wide and
/// complex matrices) is for matrices of full rank. Their numbers of rows and columns must be known when the gradient
/// is built. Full matrices with more rows than columns have no gradient.
struct Qr : StandardOp<"Qr", LinalgTypes> {
  struct Attrs {
    bool full_matrices = false;
  };
  using Outputs = Out<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// A = U diag(s) V^H; s, U and V are the outputs, s in descending order and of A's element type. Without `compute_uv`,
/// U and V are empty vectors.
///
/// The gradient (Seeger et al. 2017, arXiv:1710.08717; Wan and Zhang 2019, arXiv:1909.02659, for complex matrices)
/// takes the share of equal singular values in one another's vectors as 0. Full matrices that are not square have no
/// gradient. For complex matrices, only functions that do not depend on the phases of the vectors have a gradient.
struct Svd : StandardOp<"Svd", LinalgTypes> {
  struct Attrs {
    bool compute_uv = true;
    bool full_matrices = false;
  };
  using Outputs = Out<T, T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// A = V diag(e) V^H for each Hermitian matrix A of the input; its lower triangle is read. The outputs are the
/// eigenvalues e in ascending order, of A's element type, and the eigenvectors, V's columns. Without `compute_v`, V is
/// an empty vector.
///
/// The gradient (Giles 2008, "An extended collection of matrix derivative results for forward and reverse mode
/// algorithmic differentiation", section 3.1; Seeger et al. 2017, arXiv:1710.08717) is in the lower triangle, as
/// TensorFlow's. It takes the share of equal eigenvalues in one another's vectors as 0.
struct SelfAdjointEig : StandardOp<"SelfAdjointEigV2", LinalgTypes> {
  struct Attrs {
    bool compute_v = true;
  };
  using Outputs = Out<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

template <Element T>
struct QrResult {
  Output<T> q;  ///< [...batch, m, min(m, n)], or [...batch, m, m]
  Output<T> r;  ///< [...batch, min(m, n), n], or [...batch, m, n]
};

template <Element T>
struct SvdResult {
  Output<T> s;  ///< [...batch, min(m, n)]
  Output<T> u;  ///< [...batch, m, min(m, n)], or [...batch, m, m]
  Output<T> v;  ///< [...batch, n, min(m, n)], or [...batch, n, n]
};

template <Element T>
struct EigResult {
  Output<T> values;   ///< [...batch, n]
  Output<T> vectors;  ///< [...batch, n, n], one in each column
};

/// a: [...batch, n, n] gives L: [...batch, n, n].
///
/// Errors: InvalidArgument unless the matrices are square; in the step if one is not positive definite.
template <AllowedFor<Cholesky> T>
Output<T> cholesky(const Output<T>& a, const At& at = {}) {
  return apply<Cholesky>(a, {}, at);
}

/// a: [...batch, m, n].
///
/// ```cpp
/// auto [q, r] = df::qr(a);
/// ```
/// Errors: InvalidArgument if a has a rank below 2.
template <AllowedFor<Qr> T>
QrResult<T> qr(const Output<T>& a, Qr::Attrs attrs = {}, const At& at = {}) {
  auto [q, r] = apply<Qr>(a, attrs, at);
  return {q, r};
}

/// a: [...batch, m, n].
///
/// ```cpp
/// auto [s, u, v] = df::svd(a);   // a = u diag(s) v^H
/// ```
/// Errors: InvalidArgument if a has a rank below 2. Elements that are not finite give singular values that are NaN.
template <AllowedFor<Svd> T>
SvdResult<T> svd(const Output<T>& a, bool full_matrices = false, const At& at = {}) {
  auto [s, u, v] = apply<Svd>(a, {.full_matrices = full_matrices}, at);
  return {s, u, v};
}
/// The singular values alone: [...batch, min(m, n)].
template <AllowedFor<Svd> T>
Output<T> singular_values(const Output<T>& a, const At& at = {}) {
  return std::get<0>(apply<Svd>(a, {.compute_uv = false}, at));
}

/// a: [...batch, n, n], Hermitian.
///
/// Errors: InvalidArgument unless the matrices are square; in the step if one is not finite.
template <AllowedFor<SelfAdjointEig> T>
EigResult<T> self_adjoint_eig(const Output<T>& a, const At& at = {}) {
  auto [values, vectors] = apply<SelfAdjointEig>(a, {}, at);
  return {values, vectors};
}
/// The eigenvalues alone: [...batch, n].
template <AllowedFor<SelfAdjointEig> T>
Output<T> self_adjoint_eigenvalues(const Output<T>& a, const At& at = {}) {
  return std::get<0>(apply<SelfAdjointEig>(a, {.compute_v = false}, at));
}

}  // namespace dflow
