// The snippets of docs/eigen.md: tensors as Eigen's matrices, and an op with a kernel written in Eigen.

// [include]
#include <dflow/dflow.hpp>
#include <dflow/interop/eigen.hpp>

#include <Eigen/Cholesky>
// [include]

#include <cmath>
#include <cstdio>

namespace df = dflow;

// [op]
/// log det A for each symmetric positive definite matrix A: [n, n] gives a scalar.
struct LogDet : df::Op<"LogDet", df::TypeList<float, double>> {
  static void infer(df::InferContext& context) {
    const df::PartialShape a = context.with_rank(0, 2);
    static_cast<void>(context.merge_dim(a[0], a[1]));
    context.set_output(0, df::PartialShape{});
  }
  static void gradient(df::GradientContext& context) {
    context.set_dx(0, context.dy() * df::Expr(df::build<df::MatrixInverse>({context.input(0)})));
  }
};
// [op]

// [kernel]
template <class T>
struct dflow::Kernel<LogDet, dflow::Cpu, T> {
  void operator()(df::KernelContext& context, const df::Tensor<T>& a, df::Tensor<T>& y) const {
    const Eigen::LLT<df::eigen::Matrix<T>> factor(df::eigen::matrix(a));
    if (factor.info() != Eigen::Success) context.fail("the matrix is not positive definite");
    y.data()[0] = 2 * factor.matrixLLT().diagonal().array().log().sum();
  }
};
// [kernel]

int main() {
  // [maps]
  df::Tensor<float> a({2, 2}, {2, 1, 1, 2}), b({2}, {3, 4});
  auto m = df::eigen::matrix(a);                                            // Eigen::Map of a tensor of rank 2; no copy
  m(0, 0) = 4;                                                              // a(0, 0) is 4 too
  df::Tensor<float> product = df::eigen::tensor(m * df::eigen::vector(b));  // the value of an expression
  // [maps]

  // [moved]
  df::eigen::Matrix<float> dense = df::eigen::Matrix<float>::Random(512, 10);
  df::Tensor<float> weights = df::eigen::tensor(std::move(dense));  // the tensor takes over its memory
  Eigen::MatrixXf columns = Eigen::MatrixXf::Identity(3, 2);        // column-major, Eigen's default
  df::Tensor<float> rows = df::eigen::tensor(std::move(columns));   // copied: tensors are row-major
  // [moved]

  // [use]
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {df::dynamic, df::dynamic});
  auto y = df::apply<LogDet>(x);
  auto dx = df::gradients(y, x);

  constexpr auto ops = df::standard_ops + df::ops<LogDet>;
  df::Session session(graph, {.ops = ops});
  df::Tensor<double> at({2, 2}, {4, 2, 2, 3});
  auto [value, slope] = session.run({{x, at}}, y, dx);
  // [use]

  // [linalg]
  auto l = df::cholesky(x);
  auto [q, r] = df::qr(x);
  auto [s, u, v] = df::svd(x);
  auto [e, vectors] = df::self_adjoint_eig(x);
  auto solution = df::matrix_solve(x, l);
  // [linalg]
  const df::Tensor<double> root = session.run({{x, at}}, l);

  const bool is_right = product(0) == 16 && product(1) == 11 && weights.dim(0) == 512 && rows(1, 1) == 1 &&
                        std::abs(value.scalar() - std::log(8.0)) < 1e-12 && std::abs(slope(0, 0) - 3.0 / 8) < 1e-12 &&
                        std::abs(root(0, 0) - 2) < 1e-12;
  static_cast<void>(q), static_cast<void>(r), static_cast<void>(s), static_cast<void>(u), static_cast<void>(v);
  static_cast<void>(e), static_cast<void>(vectors), static_cast<void>(solution);
  std::puts(is_right ? "ok" : "wrong");
  return is_right ? 0 : 1;
}
