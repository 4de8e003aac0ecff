#include <dflow/ops/linalg/matrix_expr.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace dflow;

namespace {

using Edges = std::vector<AnyOutput>;
using Tensors = std::vector<AnyTensor>;
using Function = std::function<Edges(const Edges&)>;

template <class T>
Tensor<T> linalg_random(const Shape& shape, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Tensor<T> result(shape);
  for (T& value : result) {
    const double real = uniform(random);
    if constexpr (is_complex_element<T>) {
      value = T(real, uniform(random));
    } else {
      value = real;
    }
  }
  return result;
}

AnyTensor random_as(const AnyTensor& like, unsigned seed) {
  return like.dtype() == DType::float64 ? AnyTensor(linalg_random<double>(like.shape(), seed))
                                        : AnyTensor(linalg_random<std::complex<double>>(like.shape(), seed));
}

/// The real part of <a, b>: the change that a gradient a predicts for a step b.
double real_dot(const AnyTensor& a, const AnyTensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    sum += a.dtype() == DType::float64
               ? a.span<double>()[at] * b.span<double>()[at]
               : std::real(std::conj(a.span<std::complex<double>>()[at]) * b.span<std::complex<double>>()[at]);
  }
  return sum;
}

AnyTensor moved(const AnyTensor& x, const AnyTensor& direction, double step) {
  AnyTensor result = x.deep_copy();
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (x.dtype() == DType::float64) {
      result.span<double>()[at] += step * direction.span<double>()[at];
    } else {
      result.span<std::complex<double>>()[at] += step * direction.span<std::complex<double>>()[at];
    }
  }
  return result;
}

/// A function of edges at one point: checks its gradients of first and second order against central differences.
class SlopeCheck {
 public:
  SlopeCheck(Tensors at, const Function& function) : values_(std::move(at)) {
    for (const AnyTensor& value : values_) {
      xs_.push_back(visit_dtype<TypeList<double, std::complex<double>>>(
          value.dtype(), [&]<class T>() -> AnyOutput { return placeholder<T>(graph_, value.shape()); }));
    }
    ys_ = function(xs_);
    SessionOptions options;
    options.pool = std::make_shared<InlinePool>();
    session_ = std::make_unique<Session>(graph_, options);
  }

  void run() {
    const Edges first = slopes(ys_, 1);
    CHECK(difference(ys_, first, 1) < 1e-6);
    CHECK(difference(first, slopes(first, 2), 2) < 1e-5);
  }

 private:
  Tensors fetch(const Edges& edges) {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < xs_.size(); ++i) feeds.emplace_back(xs_[i], values_[i]);
    Tensors results(edges.size());
    session_->run_erased({}, nullptr, feeds, edges, {}, results);
    return results;
  }

  Tensors weights(const Edges& ys, unsigned order) {
    Tensors result;
    for (const AnyTensor& value : fetch(ys))
      result.push_back(random_as(value, order * 100 + static_cast<unsigned>(result.size())));
    return result;
  }

  Edges slopes(const Edges& ys, unsigned order) {
    Edges grad_ys;
    for (const AnyTensor& weight : weights(ys, order)) {
      grad_ys.push_back(detail::any_constant(*graph_.store(), weight, {}));
    }
    GradientOptions options;
    options.grad_ys = grad_ys;
    Edges result;
    const std::vector<Gradient> all = gradients(ys, xs_, options);
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      result.push_back(all[i].exists() ? densify(all[i], xs_[i]) : AnyOutput(zeros_like(Expr(xs_[i]))));
    }
    return result;
  }

  double difference(const Edges& ys, const Edges& gradient, unsigned order) {
    const Tensors ws = weights(ys, order), analytic = fetch(gradient);
    const auto value = [&] {
      const Tensors outputs = fetch(ys);
      double sum = 0;
      for (std::size_t o = 0; o < outputs.size(); ++o) sum += real_dot(ws[o], outputs[o]);
      return sum;
    };
    double worst = 0;
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      const AnyTensor x = values_[i], direction = random_as(x, 7 + static_cast<unsigned>(i));
      const double step = 1e-5;
      values_[i] = moved(x, direction, step);
      const double above = value();
      values_[i] = moved(x, direction, -step);
      const double numeric = (above - value()) / (2 * step), exact = real_dot(analytic[i], direction);
      values_[i] = x;
      INFO("input " << i << ": " << exact << " in the graph, " << numeric << " by differences");
      const double error = std::abs(exact - numeric) / std::max({1.0, std::abs(exact), std::abs(numeric)});
      CHECK(error < 1e-5);
      worst = std::max(worst, error);
    }
    return worst;
  }

  Graph graph_;
  Tensors values_;
  Edges xs_, ys_;
  std::unique_ptr<Session> session_;
};

void check_slopes(const std::string& name, Tensors at, const Function& function) {
  INFO(name);
  SlopeCheck(std::move(at), function).run();
}

/// A Hermitian matrix for every x.
Expr hermitian(const Expr& x) { return (x + detail::adjoint(x)) * 0.5; }

template <class T>
void check_decompositions() {
  constexpr bool is_complex = is_complex_element<T>;
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 3, 3}, Shape{1, 1}}) {
    const Tensors at{linalg_random<T>(shape, 3)};
    INFO(shape.to_string());
    check_slopes("cholesky", at, [](const Edges& x) -> Edges {
      const Expr a = detail::product(x[0], x[0], false, true);
      return {build<Cholesky>({a + detail::diag(ones_like(detail::diag_part(a)))})};
    });
    check_slopes("eigenvalues", at, [](const Edges& x) -> Edges {
      return {build<SelfAdjointEig>({hermitian(x[0])}, {.compute_v = false})};
    });
    check_slopes("eigenvectors", at, [](const Edges& x) -> Edges {
      const BuiltNode eig = build<SelfAdjointEig>({hermitian(x[0])});
      const Expr e = eig.output(0), v = eig.output(1);
      if (!is_complex) return {e, v};
      // Eigenvectors of complex matrices have free phases; this value does not depend on them.
      return {e, detail::product(v * detail::as_row(e * e * e), v, false, true)};
    });
  }
  for (const Shape& shape : {Shape{3, 3}, Shape{4, 2}, Shape{2, 4}, Shape{2, 3, 2}, Shape{1, 2, 2, 3}}) {
    const Tensors at{linalg_random<T>(shape, 5)};
    INFO(shape.to_string());
    check_slopes("qr", at, [](const Edges& x) -> Edges {
      const BuiltNode qr = build<Qr>({x[0]});
      return {qr.output(0), qr.output(1)};
    });
    check_slopes("singular values", at,
                 [](const Edges& x) -> Edges { return {build<Svd>({x[0]}, {.compute_uv = false})}; });
    check_slopes("svd", at, [](const Edges& x) -> Edges {
      const BuiltNode svd = build<Svd>({x[0]});
      const Expr s = svd.output(0), u = svd.output(1), v = svd.output(2);
      if (!is_complex) return {s, u, v};
      return {s, detail::product(u * detail::as_row(s * s), v, false, true), detail::product(u, u, false, true),
              detail::product(v * detail::as_row(s), v, false, true)};
    });
  }
  const Tensors wide{linalg_random<T>({2, 3}, 6)};
  check_slopes("full qr of a wide matrix", wide, [](const Edges& x) -> Edges {
    const BuiltNode qr = build<Qr>({x[0]}, {.full_matrices = true});
    return {qr.output(0), qr.output(1)};
  });
}

template <class T>
void check_solvers() {
  for (const bool adjoint : {false, true}) {
    const Tensors at{linalg_random<T>({2, 3, 3}, 8), linalg_random<T>({2, 3, 2}, 9)};
    const auto far_from_singular = [](const AnyOutput& x) -> Expr {
      return Expr(x) + detail::diag(ones_like(detail::diag_part(x))) * 3.0;
    };
    check_slopes("inverse", {at[0]}, [&](const Edges& x) -> Edges {
      return {build<MatrixInverse>({far_from_singular(x[0])}, {.adjoint = adjoint})};
    });
    check_slopes("solve", at, [&](const Edges& x) -> Edges {
      return {build<MatrixSolve>({far_from_singular(x[0]), x[1]}, {.adjoint = adjoint})};
    });
    for (const bool lower : {false, true}) {
      check_slopes("triangular solve", at, [&](const Edges& x) -> Edges {
        return {build<MatrixTriangularSolve>({far_from_singular(x[0]), x[1]}, {.lower = lower, .adjoint = adjoint})};
      });
    }
  }
  check_slopes("determinant", {linalg_random<T>({2, 3, 3}, 8)},
               [](const Edges& x) -> Edges { return {build<MatrixDeterminant>({x[0]})}; });
  for (const auto& [m, n] : {std::pair{4, 2}, std::pair{2, 4}, std::pair{3, 3}}) {
    const Tensors at{linalg_random<T>({2, m, n}, 10), linalg_random<T>({2, m, 2}, 11)};
    for (const double l2 : {0.0, 0.5}) {
      for (const bool fast : {true, false}) {
        check_slopes("least squares", at,
                     [&](const Edges& x) -> Edges { return {matrix_solve_ls(x[0].as<T>(), x[1].as<T>(), l2, fast)}; });
      }
    }
  }
}

template <class T>
void check_bands() {
  const Tensors at{linalg_random<T>({2, 3, 4}, 12), linalg_random<T>({2, 3}, 13)};
  check_slopes("set diag", at, [](const Edges& x) -> Edges {
    const Expr y = AnyOutput(build<MatrixSetDiag>({x[0], x[1]}));
    return {y * y};
  });
  check_slopes("diag", at, [](const Edges& x) -> Edges {
    const Expr y = AnyOutput(build<MatrixDiag>({x[1]})), z = AnyOutput(build<MatrixDiagPart>({x[0]}));
    return {y * y, z * z};
  });
  check_slopes("band", at, [](const Edges& x) -> Edges {
    const Expr y = detail::any_band_part(x[0], 1, 0);
    return {y * y};
  });
}

}  // namespace

TEST_CASE("gradients of decompositions agree with differences, of real and complex matrices", "[ops][linalg]") {
  check_decompositions<double>();
  check_decompositions<std::complex<double>>();
}

TEST_CASE("gradients of solvers agree with differences, of real and complex matrices", "[ops][linalg]") {
  check_solvers<double>();
  check_solvers<std::complex<double>>();
}

TEST_CASE("gradients of bands and diagonals agree with differences", "[ops][linalg]") {
  check_bands<double>();
  check_bands<std::complex<double>>();
}

TEST_CASE("gradients of Fourier transforms agree with differences", "[ops][linalg]") {
  using Complex = std::complex<double>;
  const Tensors at{linalg_random<Complex>({2, 2, 3, 5}, 14)};
  // Squares make the second order nonzero.
  const auto squared = [](const AnyOutput& y) -> Edges { return {Expr(y) * Expr(y)}; };
  check_slopes("fft", at, [&](const Edges& x) { return squared(build<Fft>({x[0]})); });
  check_slopes("fft2d", at, [&](const Edges& x) { return squared(build<Fft2d>({x[0]})); });
  check_slopes("fft3d", at, [&](const Edges& x) { return squared(build<Fft3d>({x[0]})); });
  check_slopes("ifft", at, [&](const Edges& x) { return squared(build<Ifft>({x[0]})); });
  check_slopes("ifft2d", at, [&](const Edges& x) { return squared(build<Ifft2d>({x[0]})); });
  check_slopes("ifft3d", at, [&](const Edges& x) { return squared(build<Ifft3d>({x[0]})); });
  for (const bool inverse : {false, true}) {
    const AnyTensor x = inverse ? at[0] : AnyTensor(linalg_random<double>({2, 2, 3, 5}, 15));
    for (const std::vector<std::int64_t>& lengths :
         {std::vector<std::int64_t>{5}, {8}, {4}, {3, 5}, {4, 8}, {2, 3}, {2, 3, 5}, {1, 4, 4}, {3, 2, 9}}) {
      const int rank = static_cast<int>(lengths.size());
      INFO((inverse ? "irfft" : "rfft") << rank << " last of " << lengths.back());
      check_slopes("real", {x}, [&](const Edges& edges) {
        return squared(detail::any_real_fourier(edges[0], lengths, rank, inverse, {}));
      });
    }
  }
}

// TensorFlow reads the lower triangle of a symmetric matrix, and gives a symmetric gradient of Cholesky and one in the
// lower triangle of eigenvalues. Numbers: TensorFlow 2.21.0, tf.GradientTape of sum(y * w) at [[4, 2], [2, 3]] with w =
// [[1, 2], [3, 5]], and w = [1, 3] for the eigenvalues.
TEST_CASE("gradients of symmetric matrices lie where TensorFlow puts them", "[ops][linalg]") {
  Graph graph;
  const auto a = constant(graph, Tensor<double>({2, 2}, {4, 2, 2, 3}));
  const auto gradient_of = [&](const AnyOutput& y, const AnyTensor& w) {
    const Edges ys{y}, xs{a}, grad_ys{detail::any_constant(*graph.store(), w, {})};
    GradientOptions options;
    options.grad_ys = grad_ys;
    Session session(graph);
    return session.run(Output<double>(densify(gradients(ys, xs, options)[0], a)));
  };
  const Tensor<double> by_cholesky = gradient_of(cholesky(a), Tensor<double>({2, 2}, {1, 2, 3, 5}));
  const Tensor<double> by_values = gradient_of(self_adjoint_eigenvalues(a), Tensor<double>({2}, {1, 3}));
  const std::vector<double> want_cholesky{0.31694173824159216, -0.13388347648318433, -0.13388347648318433,
                                          1.7677669529663687},
      want_values{2.242535625036333, 0.0, 1.940285000290664, 1.7574643749636674};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(by_cholesky.span()[i] == Approx(want_cholesky[i]).margin(1e-12));
    CHECK(by_values.span()[i] == Approx(want_values[i]).margin(1e-12));
  }
}
