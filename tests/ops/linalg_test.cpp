#include <dflow/ops/linalg/decompose.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace dflow;

namespace {

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<std::complex<T>> {
  using type = T;
};

template <class T>
Tensor<T> random_matrices(const Shape& shape, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Tensor<T> result(shape);
  for (T& value : result) {
    const double real = normal(random);
    if constexpr (is_complex_element<T>) {
      value = T(static_cast<typename T::value_type>(real), static_cast<typename T::value_type>(normal(random)));
    } else {
      value = static_cast<T>(real);
    }
  }
  return result;
}

/// The largest difference of two tensors of one shape.
template <class T>
double distance(const Tensor<T>& a, const Tensor<T>& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.span().size(); ++i) {
    const double difference = std::abs(a.span()[i] - b.span()[i]);
    if (!(difference <= largest)) largest = difference;  // not a number stays
  }
  return largest;
}

template <class T>
Output<T> hermitian_part(const Output<T>& x) {
  return x + batch_matmul(x, matrix_diag(ones_like(matrix_diag_part(x))), {.adj_x = true});
}

/// Decomposes the matrices of one batch, and multiplies the factors again.
template <class T>
void check_reconstructions(const Shape& shape) {
  INFO(dtype_name(dtype_of<T>) << ' ' << shape.to_string());
  Graph graph;
  const auto a = placeholder<T>(graph, shape);
  const auto is_identity = [](const Output<T>& x) { return batch_matmul(x, x, {.adj_x = true}); };
  const auto eye_like = [](const Output<T>& x) { return matrix_diag(ones_like(matrix_diag_part(x))); };
  std::vector<std::pair<Output<T>, Output<T>>> equal;
  const auto same = [&](const Output<T>& x, const Output<T>& y) { equal.emplace_back(x, y); };
  const auto orthonormal = [&](const Output<T>& x) { same(is_identity(x), eye_like(is_identity(x))); };
  for (const bool full : {false, true}) {
    const auto [q, r] = qr(a, {.full_matrices = full});
    same(batch_matmul(q, r), a);
    same(matrix_band_part(r, 0, -1), r);
    orthonormal(q);
    const auto [s, u, v] = svd(a, full);
    orthonormal(u);
    orthonormal(v);
    same(s, singular_values(a));
    if (!full) same(batch_matmul(batch_matmul(u, matrix_diag(s)), v, {.adj_y = true}), a);
  }
  const int rank = shape.rank();
  if (shape[rank - 1] == shape[rank - 2]) {
    const auto h = hermitian_part(a);
    const auto [e, v] = self_adjoint_eig(h);
    orthonormal(v);
    same(batch_matmul(h, v), batch_matmul(v, matrix_diag(e)));
    same(e, self_adjoint_eigenvalues(h));
    const auto positive = batch_matmul(a, a, {.adj_y = true}) + eye_like(a);
    const auto l = cholesky(positive);
    same(batch_matmul(l, l, {.adj_y = true}), positive);
    same(matrix_band_part(l, -1, 0), l);
    same(batch_matmul(positive, matrix_inverse(positive)), eye_like(a));
    same(batch_matmul(positive, matrix_solve(positive, a)), a);
    same(batch_matmul(l, matrix_triangular_solve(l, a)), a);
    same(batch_matmul(l, matrix_triangular_solve(l, a, {.adjoint = true}), {.adj_x = true}), a);
  }
  SessionOptions options;
  options.num_threads = 4;
  Session session(graph, options);
  const Tensor<T> values = random_matrices<T>(shape);
  const double n = static_cast<double>(std::max(shape[rank - 1], shape[rank - 2]));
  const double tolerance = 200 * (n + 1) * n * std::numeric_limits<typename RealPart<T>::type>::epsilon();
  for (std::size_t i = 0; i < equal.size(); ++i) {
    INFO("relation " << i);
    const auto [x, y] = session.run({{a, values}}, equal[i].first, equal[i].second);
    CHECK(distance(x, y) <= tolerance);
  }
}

template <class T>
void check_reconstructions_of_all_shapes() {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 3}, Shape{5, 2}, Shape{2, 5}, Shape{2, 3, 4, 4}, Shape{3, 20, 17},
                             Shape{40, 40}, Shape{17, 40}}) {
    check_reconstructions<T>(shape);
  }
}

template <class T>
std::vector<std::complex<double>> direct_transform(const Tensor<T>& x) {
  const auto n = static_cast<std::size_t>(x.dim(0));
  std::vector<std::complex<double>> y(n);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t j = 0; j < n; ++j) {
      const double angle = -2 * 3.14159265358979323846 * static_cast<double>(j * k % n) / static_cast<double>(n);
      y[k] += std::complex<double>(x.span()[j]) * std::polar(1.0, angle);
    }
  }
  return y;
}

/// The largest error of a transform, relative to the root mean square of its result.
template <class T>
double transform_error(std::int64_t n) {
  Graph graph;
  const auto x = placeholder<T>(graph, {n});
  const auto y = fft(x), back = ifft(y);
  Session session(graph);
  const Tensor<T> values = random_matrices<T>({n});
  const auto [got, again] = session.run({{x, values}}, y, back);
  const auto want = direct_transform(values);
  double largest = 0, squares = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    largest = std::max(largest, std::abs(std::complex<double>(got.span()[k]) - want[k]));
    squares += std::norm(want[k]);
  }
  CHECK(distance(again, values) < 20 * std::numeric_limits<typename T::value_type>::epsilon() * std::log2(n + 2));
  return largest / std::sqrt(squares / static_cast<double>(n));
}

}  // namespace

TEST_CASE("decompositions and solutions put together give the matrix again", "[ops][linalg]") {
  check_reconstructions_of_all_shapes<float>();
  check_reconstructions_of_all_shapes<double>();
  check_reconstructions_of_all_shapes<std::complex<float>>();
  check_reconstructions_of_all_shapes<std::complex<double>>();
}

TEST_CASE("singular values of complex matrices are those of any scale and rank", "[ops][linalg]") {
  using T = std::complex<double>;
  Graph graph;
  const auto a = placeholder<T>(graph, {dynamic, dynamic});
  const auto [s, u, v] = svd(a, true);
  const auto identity_of = [](const Output<T>& x) { return batch_matmul(x, x, {.adj_x = true}); };
  Session session(graph);
  for (const double scale : {0.0, 1.0, 1e-300, 1e-160, 1e160, 1e300}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{1, 4}, Shape{4, 1}, Shape{3, 3}, Shape{6, 4}, Shape{4, 6}}) {
      INFO("scale " << scale << ", shape " << shape.to_string());
      Tensor<T> values = random_matrices<T>(shape);
      for (T& value : values) value *= scale;
      // Equal rows: a matrix of rank 1; its other singular values are 0.
      for (std::int64_t i = 1; shape[0] == 3 && i < 3; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) values(i, j) = values(0, j);
      }
      const auto [got_s, got_u, got_v, uu, vv] = session.run({{a, values}}, s, u, v, identity_of(u), identity_of(v));
      const std::int64_t k = std::min(shape[0], shape[1]);
      double worst = 0;
      for (std::int64_t i = 0; i < shape[0]; ++i) {
        for (std::int64_t j = 0; j < shape[1]; ++j) {
          T sum = 0;
          for (std::int64_t r = 0; r < k; ++r)
            sum += got_u(i, r) * (got_s(r) / (scale > 0 ? scale : 1)) * std::conj(got_v(j, r));
          worst = std::max(worst, std::abs(sum - values(i, j) / (scale > 0 ? scale : 1)));
        }
      }
      CHECK(worst < 1e-13);
      for (std::int64_t r = 0; r + 1 < k; ++r) CHECK(got_s(r).real() >= got_s(r + 1).real());
      if (shape[0] == 3) CHECK(got_s(1).real() <= 1e-14 * scale);
      for (const Tensor<T>& product : {uu, vv}) {
        for (std::int64_t i = 0; i < product.dim(0); ++i) {
          for (std::int64_t j = 0; j < product.dim(0); ++j) {
            if (!(std::abs(product(i, j) - T(i == j ? 1 : 0)) < 1e-13)) FAIL("not orthonormal");
          }
        }
      }
    }
  }
}

TEST_CASE("complex elements of moduli above the largest number have singular vectors", "[ops][linalg]") {
  using T = std::complex<double>;
  Graph graph;
  const auto a = placeholder<T>(graph, {dynamic, 1});
  const auto [s, u, v] = svd(a);
  Session session(graph);
  const T large(1.7e308, 1.7e308);
  for (const Tensor<T>& values : {Tensor<T>({1, 1}, {large}), Tensor<T>({2, 1}, {-large, 1})}) {
    const auto [got_s, got_u, got_v] = session.run({{a, values}}, s, u, v);
    CHECK(got_s(0).real() == std::numeric_limits<double>::infinity());
    CHECK(std::abs(got_u(0, 0)) == Approx(1));
    CHECK(std::abs(got_v(0, 0)) == Approx(1));
    CHECK(std::abs(got_u(0, 0) * std::conj(got_v(0, 0)) - values(0, 0) / std::abs(values(0, 0) / 2.0) / 2.0) < 1e-14);
  }
}

TEST_CASE("least squares of a matrix that is singular in its element type have the least norm", "[ops][linalg]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {3, 2}), b = placeholder<float>(graph, {3, 1});
  const auto x = matrix_solve_ls(a, b, 0, false);
  Session session(graph);
  // The second column is a third of the first, except for float's rounding. The rounding does not add to the rank.
  const Tensor<float> columns({3, 2}, {1, 1 / 3.0f, 0.1f, 0.1f / 3, 7, 7 / 3.0f});
  const Tensor<float> got = session.run({{a, columns}, {b, Tensor<float>({3, 1}, {1, 0.1f, 7})}}, x);
  CHECK(got(0, 0) == Approx(0.9));
  CHECK(got(1, 0) == Approx(0.3));
}

TEST_CASE("transforms of any length are as exact as their element type", "[ops][linalg]") {
  for (const std::int64_t n : {2, 17, 47, 53, 59, 64, 101, 128, 210, 257, 509, 512, 1000, 1009, 1021, 2018, 2187}) {
    INFO("length " << n);
    CHECK(transform_error<std::complex<float>>(n) < 2e-6);
    CHECK(transform_error<std::complex<double>>(n) < 1e-14 * std::sqrt(static_cast<double>(n)));
  }
}

TEST_CASE("what is not finite has no singular values and no eigenvalues", "[ops][linalg]") {
  Graph graph;
  const auto a = placeholder<float>(graph, {2, 2});
  Session session(graph);
  const auto [s, u, v] = svd(a);
  const auto e = self_adjoint_eigenvalues(a);
  const auto one = placeholder<float>(graph, {1, 1});
  const auto e_of_one = self_adjoint_eigenvalues(one);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Tensor<float> values({2, 2}, {1, 0, bad, 1});
    const auto [got_s, got_u, got_v] = session.run({{a, values}}, s, u, v);
    for (const Tensor<float>& tensor : {got_s, got_u, got_v}) {
      for (const float value : tensor) CHECK(std::isnan(value));
    }
    CHECK(code_of([&] { session.run({{a, values}}, e); }) == Code::invalid_argument);
    CHECK(code_of([&] { session.run({{one, Tensor<float>({1, 1}, {bad})}}, e_of_one); }) == Code::invalid_argument);
  }
  // Eigen reads neither the upper triangle nor the imaginary parts on the diagonal.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(session.run({{a, Tensor<float>({2, 2}, {1, float(nan), 0, 2})}}, e)(1) == 2);
  const auto complex = placeholder<std::complex<double>>(graph, {1, 1});
  const auto e_of_complex = self_adjoint_eigenvalues(complex);
  CHECK(code_of([&] {
          session.run({{complex, Tensor<std::complex<double>>({1, 1}, {{1, nan}})}}, e_of_complex);
        }) == Code::invalid_argument);
}

template <class T>
void check_not_positive_definite(T bad) {
  INFO(dtype_name(dtype_of<T>) << ' ' << bad);
  Graph graph;
  const auto a = placeholder<T>(graph, {dynamic, dynamic});
  const auto l = cholesky(a), x = matrix_solve_ls(a, a);
  Session session(graph);
  Tensor<T> large = Tensor<T>::zeros({40, 40});
  for (std::int64_t i = 0; i < 40; ++i) large(i, i) = T(1);
  large(30, 30) = bad;
  for (const Tensor<T>& values :
       {Tensor<T>({1, 1}, {bad}), Tensor<T>({2, 2}, {1, 0, 0, bad}), Tensor<T>({2, 2}, {1, 0, bad, 1}), large}) {
    CHECK(code_of([&] { session.run({{a, values}}, l); }) == Code::invalid_argument);
    CHECK(code_of([&] { session.run({{a, values}}, x); }) == Code::invalid_argument);
  }
}

TEST_CASE("what is not finite is not positive definite", "[ops][linalg]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {infinity, nan}) {
    check_not_positive_definite<float>(bad);
    check_not_positive_definite<double>(bad);
    check_not_positive_definite<std::complex<float>>(bad);
    check_not_positive_definite<std::complex<double>>(bad);
  }
}

TEST_CASE("matrices of no elements are passed over, however many they are", "[ops][linalg]") {
  Graph graph;
  const Shape shape{std::int64_t{1} << 40, 0, 0};
  const auto a = placeholder<double>(graph, shape);
  const auto [q, r] = qr(a);
  const auto [s, u, v] = svd(a);
  const auto [e, vectors] = self_adjoint_eig(a);
  Session session(graph);
  for (const Output<double>& y : {q, r, u, v, vectors, cholesky(a), matrix_inverse(a), matrix_solve(a, a),
                                  matrix_triangular_solve(a, a), matrix_solve_ls(a, a)}) {
    CHECK(session.run({{a, Tensor<double>(shape)}}, y).shape() == shape);
  }
  CHECK(session.run({{a, Tensor<double>(shape)}}, s).shape() == shape.subshape(0, 2));
  CHECK(session.run({{a, Tensor<double>(shape)}}, e).shape() == shape.subshape(0, 2));
}

TEST_CASE("gradients that need shapes say so, and equal values have finite ones", "[ops][linalg]") {
  Graph graph;
  const auto unknown = placeholder<double>(graph, PartialShape::unknown());
  const auto [q, r] = qr(unknown);
  const auto gradient_of_q = [&q = q, &unknown] { gradients(q, unknown); };
  CHECK(code_of(gradient_of_q) == Code::unimplemented);

  // The gradients of the other ops need no known shape.
  const auto [s, u, v] = svd(unknown);
  const auto [e, vectors] = self_adjoint_eig(unknown);
  const auto l = cholesky(unknown);
  const auto loss = reduce_sum(batch_matmul(batch_matmul(u, matrix_diag(s)), v, {.adj_y = true})) + reduce_sum(l) +
                    reduce_sum(batch_matmul(batch_matmul(vectors, matrix_diag(e)), vectors, {.adj_y = true}));
  const auto slope = gradients(loss, unknown);
  Session session(graph);
  const Tensor<double> twice({2, 2}, {2, 0, 0, 2});
  const Tensor<double> at_equal = session.run({{unknown, twice}}, slope);
  for (const double value : at_equal) CHECK(std::isfinite(value));
}

TEST_CASE("lengths of real transforms that are not given are those of the elements", "[ops][linalg]") {
  Graph graph;
  const auto known = placeholder<float>(graph, {2, 6});
  const auto unknown = placeholder<float>(graph, PartialShape::unknown());
  CHECK(rfft(known).shape() == PartialShape{2, 4});
  CHECK(irfft(rfft(known)).shape() == PartialShape{2, 6});
  CHECK(rfft2d(known).shape() == PartialShape{2, 4});
  Session session(graph);
  const Tensor<float> values = random_matrices<float>({2, 6});
  const auto [a, b] =
      session.run({{known, values}, {unknown, values}}, irfft2d(rfft2d(known)), irfft2d(rfft2d(unknown)));
  CHECK(distance(a, values) < 1e-5);
  CHECK(distance(b, values) < 1e-5);
  CHECK(status_of([&] { rfft3d(known); }).op() == "RFFT3D");
}

TEST_CASE("lengths of real transforms above the limit are refused before memory is taken for them", "[ops][linalg]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {8});
  const auto y = placeholder<std::complex<float>>(graph, {8});
  CHECK(code_of([&] { rfft(x, IndexList{(1 << 28) + 1}); }) == Code::invalid_argument);
  CHECK(code_of([&] { irfft(y, IndexList{(1 << 28) + 1}); }) == Code::invalid_argument);
  const auto length = placeholder<std::int32_t>(graph, {1});
  const auto forward = rfft(x, length);
  const auto backward = irfft(y, length);
  SessionOptions options;
  options.memory_limit_bytes = std::size_t{1} << 20;
  Session session(graph, options);
  const Tensor<std::int32_t> longest({1}, {std::numeric_limits<std::int32_t>::max()});
  const auto x_values = Tensor<float>::zeros({8});
  const auto y_values = Tensor<std::complex<float>>::zeros({8});
  CHECK(code_of([&] { session.run({{x, x_values}, {length, longest}}, forward); }) == Code::invalid_argument);
  CHECK(code_of([&] { session.run({{y, y_values}, {length, longest}}, backward); }) == Code::invalid_argument);
}

TEST_CASE("lines of transforms count against the memory limit", "[ops][linalg]") {
  using T = std::complex<double>;
  Graph graph;
  const std::int64_t length = 1 << 18;  // 4 MiB
  const auto x = placeholder<T>(graph, {length});
  const auto y = fft(x);
  const auto run = [&](std::size_t limit_mib) {
    SessionOptions options;
    options.memory_limit_bytes = limit_mib << 20;
    Session session(graph, options);
    return code_of([&] { session.run({{x, Tensor<T>::zeros({length})}}, y); });
  };
  CHECK(run(11) == Code::resource_exhausted);  // the input and the output would fit
  CHECK(run(32) == Code::ok);
}
