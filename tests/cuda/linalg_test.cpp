// Matrices that are decomposed and solved on a GPU, beside the CPU's.
#include "cuda/gpu_that_is_none.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

template <class T>
using Edges = std::vector<Output<T>>;
/// From a [..., m, n], and b with as many rows.
template <class T>
using Program = std::function<Edges<T>(const Output<T>& a, const Output<T>& b)>;

template <class T>
Output<T> product(const Output<T>& x, const Output<T>& y) {
  return batch_matmul(x, y);
}
template <class T>
Output<T> gram(const Output<T>& x) {
  return batch_matmul(x, x, {.adj_x = true});
}
/// A positive definite matrix.
template <class T>
Output<T> positive(const Output<T>& x) {
  return gram(x) + matrix_diag(ones_like(matrix_diag_part(gram(x))));
}

template <class T>
std::map<std::string, Program<T>> square_programs() {
  std::map<std::string, Program<T>> all;
  all["cholesky"] = [](auto& a, auto&) { return Edges<T>{cholesky(positive(a))}; };
  all["inverse"] = [](auto& a, auto&) { return Edges<T>{matrix_inverse(a), matrix_inverse(a, {.adjoint = true})}; };
  all["determinant"] = [](auto& a, auto&) { return Edges<T>{matrix_determinant(a)}; };
  all["solve"] = [](auto& a, auto& b) { return Edges<T>{matrix_solve(a, b), matrix_solve(a, b, {.adjoint = true})}; };
  all["triangular solve"] = [](auto& a, auto& b) {
    Edges<T> edges;
    for (const bool lower : {false, true}) {
      for (const bool adjoint : {false, true}) {
        edges.push_back(matrix_triangular_solve(a, b, {.lower = lower, .adjoint = adjoint}));
      }
    }
    return edges;
  };
  all["self-adjoint"] = [](auto& a, auto&) {
    const auto hermitian = positive(a);
    const auto [values, vectors] = self_adjoint_eig(hermitian);
    return Edges<T>{values, self_adjoint_eigenvalues(hermitian), gram(vectors),
                    batch_matmul(vectors * expand_dims(values, -2), vectors, {.adj_y = true})};
  };
  return all;
}

template <class T>
std::map<std::string, Program<T>> programs() {
  std::map<std::string, Program<T>> all;
  all["qr"] = [](auto& a, auto&) {
    Edges<T> edges;
    for (const bool full : {false, true}) {
      const auto [q, r] = qr(a, {.full_matrices = full});
      edges.insert(edges.end(), {gram(r), product(q, r), gram(q)});  // signs are the library's
    }
    return edges;
  };
  all["svd"] = [](auto& a, auto&) {
    const auto [s, u, v] = svd(a);
    const auto full = svd(a, true);
    return Edges<T>{s,       singular_values(a), batch_matmul(u * expand_dims(s, -2), v, {.adj_y = true}),
                    gram(u), gram(full.u),       gram(full.v)};
  };
  all["least squares"] = [](auto& a, auto& b) {
    return Edges<T>{matrix_solve_ls(a, b), matrix_solve_ls(a, b, 0.5), matrix_solve_ls(a, b, 0, false)};
  };
  return all;
}

template <class T>
std::vector<Tensor<T>> run_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver,
                              const Program<T>& program, const Tensor<T>& a, const Tensor<T>& b) {
  Graph graph;
  const auto of_a = placeholder<T>(graph, a.shape()), of_b = placeholder<T>(graph, b.shape());
  Edges<T> edges;
  {
    const auto on = graph.device(device);
    edges = program(of_a, of_b);
  }
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  return run_edges<T>(session, {{of_a, a}, {of_b, b}}, edges);
}

template <class T>
void compare(const std::string& what, const Program<T>& program, const Shape& a, const Shape& b) {
  const double tolerance = sizeof(std::abs(T())) == 4 ? 2e-3 : 1e-9;
  const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = what.size()});
  const auto of_a = random_numbers<T>(a, 3), of_b = random_numbers<T>(b, 4);
  const auto got = run_on<T>("/gpu:0", driver, program, of_a, of_b),
             want = run_on<T>("/cpu:0", driver, program, of_a, of_b);
  for (std::size_t k = 0; k < want.size(); ++k) {
    INFO(what << " of " << dflow::dtype_name(dtype_of<T>) << " " << a.to_string() << ", result " << k);
    REQUIRE(got[k].shape() == want[k].shape());
    for (std::int64_t i = 0; i < want[k].num_elements(); ++i) {
      const auto difference = std::abs(got[k].data()[i] - want[k].data()[i]);
      if (!(difference <= tolerance * (1 + std::abs(want[k].data()[i])))) {
        FAIL_CHECK("element " << i << ": " << got[k].data()[i] << ", on the CPU " << want[k].data()[i]);
        break;
      }
    }
  }
  check_end(*driver);
}

template <class T>
void compare_all() {
  for (const auto& [what, program] : square_programs<T>()) {
    for (const Shape& batch : {Shape{}, Shape{2, 3}}) {
      for (const std::int64_t n : {1, 2, 5}) {
        compare<T>(what, program, batch.appended(n).appended(n), batch.appended(n).appended(3));
      }
    }
    compare<T>(what, program, {2, 0, 0}, {2, 0, 3});
    compare<T>(what, program, {0, 3, 3}, {0, 3, 2});
  }
  for (const auto& [what, program] : programs<T>()) {
    for (const auto& [m, n] : {std::pair<int, int>{1, 1}, {3, 3}, {5, 3}, {3, 5}, {6, 1}, {1, 4}}) {
      compare<T>(what, program, {m, n}, {m, 2});
      compare<T>(what, program, {3, m, n}, {3, m, 1});
    }
    for (const auto& [m, n] : {std::pair<int, int>{0, 3}, {3, 0}, {0, 0}}) {
      compare<T>(what, program, {2, m, n}, {2, m, 2});
    }
    compare<T>(what, program, {0, 3, 2}, {0, 3, 2});
  }
}

/// The error of an op on a GPU.
template <class T>
std::string error_on_gpu(const Program<T>& program, const Tensor<T>& a, const Tensor<T>& b) {
  const auto driver = std::make_shared<FakeDriver>();
  const std::string text = error_of([&] { return run_on<T>("/gpu:0", driver, program, a, b); });
  check_end(*driver);
  return text;
}

}  // namespace

TEST_CASE("decompositions and solvers give on a GPU what they give on the CPU", "[cuda]") {
  compare_all<float>();
  compare_all<double>();
  compare_all<std::complex<float>>();
  compare_all<std::complex<double>>();
}

TEST_CASE("matrices that cannot be decomposed fail the step on a GPU as on the CPU", "[cuda]") {
  using namespace Catch::Matchers;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> singular({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4}), b = random_numbers<float>({2, 2, 1}, 1);
  const Tensor<float> not_positive({1, 2, 2}, {1, 2, 2, 1}), of_nan({2, 2, 2}, {1, 0, 0, 1, 1, 0, nan, 1});
  const Program<float> solve = [](auto& a, auto& right) { return Edges<float>{matrix_solve(a, right)}; };
  CHECK_THAT(error_on_gpu(solve, singular, b),
             Contains("Input matrix is not invertible.") && Contains("MatrixSolve") && Contains("GPU:0"));
  for (const Tensor<float>& of_no_rank : {Tensor<float>::full({2, 2, 2}, 1), Tensor<float>::full({2, 2, 2}, 0)}) {
    CHECK_THAT(error_on_gpu(solve, of_no_rank, b), Contains("Input matrix is not invertible."));
  }
  CHECK_THAT(error_on_gpu(solve, of_nan, b), Contains("Input matrix is not invertible."));
  const Program<float> inverse = [](auto& a, auto&) { return Edges<float>{matrix_inverse(a)}; };
  CHECK_THAT(error_on_gpu(inverse, singular, b), Contains("Input matrix is not invertible."));
  const Program<float> triangle = [](auto& a, auto& right) {
    return Edges<float>{matrix_triangular_solve(a - a, right)};
  };
  CHECK_THAT(error_on_gpu(triangle, singular, b), Contains("Input matrix is not invertible."));
  const Program<float> root = [](auto& a, auto&) { return Edges<float>{cholesky(a)}; };
  CHECK_THAT(error_on_gpu(root, not_positive, b), Contains("Cholesky decomposition was not successful."));
  CHECK_THAT(error_on_gpu(root, of_nan, b), Contains("Cholesky decomposition was not successful."));
  const Program<float> eigen = [](auto& a, auto&) { return Edges<float>{self_adjoint_eigenvalues(a)}; };
  CHECK_THAT(error_on_gpu(eigen, of_nan, b), Contains("Self-adjoint eigen decomposition was not successful."));
  const Program<float> squares = [](auto& a, auto& right) { return Edges<float>{matrix_solve_ls(a, right)}; };
  CHECK_THAT(error_on_gpu(squares, singular, b), Contains("rank deficient or ill-conditioned"));
}

TEST_CASE("a singular matrix has a determinant of 0 on a GPU, and one of what is not a number none", "[cuda]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto driver = std::make_shared<FakeDriver>();
  const Tensor<float> a({5, 2, 2}, {0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, nan, 0, 0, 1, 0, 2, 3, 0}),
      b({1, 2, 1}, {0, 0});
  const auto got = run_on<float>(
      "/gpu:0", driver, [](auto& x, auto&) { return Edges<float>{matrix_determinant(x)}; }, a, b);
  for (int i = 0; i < 3; ++i) CHECK(got[0].data()[i] == 0);
  CHECK(std::isnan(got[0].data()[3]));
  CHECK(got[0].data()[4] == Approx(-6));
  check_end(*driver);
}

TEST_CASE("what is above the diagonal does not count, and singular values of what is not finite are no numbers",
          "[cuda]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto driver = std::make_shared<FakeDriver>();
  const Tensor<float> above({1, 2, 2}, {4, nan, 2, 5}), b({1, 2, 1}, {0, 0});
  const auto lower = run_on<float>(
      "/gpu:0", driver,
      [](auto& a, auto&) {
        return Edges<float>{self_adjoint_eigenvalues(a), cholesky(a)};
      },
      above, b);
  CHECK(lower[0].data()[0] == Approx(4.5f - std::sqrt(4.25f)));
  CHECK(lower[1].data()[0] == 2);
  CHECK(lower[1].data()[1] == 0);
  const Tensor<float> one_of_two({2, 2, 2}, {1, 0, 0, 2, 1, nan, 0, 1});
  const auto values = run_on<float>(
      "/gpu:0", driver,
      [](auto& a, auto&) {
        const auto all = svd(a);
        return Edges<float>{all.s, all.u, all.v};
      },
      one_of_two, b);
  CHECK(values[0].data()[0] == Approx(2));
  CHECK(values[0].data()[1] == Approx(1));
  for (int k = 0; k < 3; ++k) {
    const std::int64_t half = values[k].num_elements() / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      CHECK(std::isfinite(values[k].data()[i]));
      CHECK(std::isnan(values[k].data()[half + i]));
    }
  }
  check_end(*driver);
}
