#include <dflow/interop/eigen.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <complex>
#include <string>
#include <type_traits>

using namespace dflow;

namespace {

template <class T>
T element_of(int i) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(30, static_cast<char>('a' + i));
  } else if constexpr (std::is_same_v<T, bool>) {
    return i % 2 == 1;
  } else if constexpr (is_complex_element<T>) {
    return T(static_cast<typename T::value_type>(i), 1);
  } else {
    return T(static_cast<float>(i));
  }
}

template <class T>
void check_both_ways() {
  eigen::Matrix<T> rows(2, 3);
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic> columns(2, 3);
  for (int i = 0; i < 6; ++i) rows(i / 3, i % 3) = columns(i / 3, i % 3) = element_of<T>(i);
  const T* const memory = rows.data();
  const Tensor<T> moved = eigen::tensor(std::move(rows)), transposed = eigen::tensor(std::move(columns));
  CHECK(moved.data() == memory);
  REQUIRE(moved.shape() == Shape{2, 3});
  REQUIRE(transposed.shape() == Shape{2, 3});
  for (int i = 0; i < 6; ++i) {
    CHECK(moved.span()[static_cast<std::size_t>(i)] == element_of<T>(i));
    CHECK(transposed.span()[static_cast<std::size_t>(i)] == element_of<T>(i));
  }
  const auto map = eigen::matrix(moved);
  CHECK(map.data() == memory);
  CHECK(map(1, 2) == element_of<T>(5));
}

template <class... Ts>
void check_all(TypeList<Ts...>) {
  (check_both_ways<Ts>(), ...);
}

}  // namespace

TEST_CASE("a matrix of any element type becomes a tensor and is seen as a matrix", "[interop]") {
  check_all(AllTypes{});
}

TEST_CASE("maps share a tensor's elements", "[interop]") {
  Tensor<float> x({2, 2}, {1, 2, 3, 4}), v({2}, {5, 6});
  eigen::matrix(x)(0, 1) = 7;
  CHECK(x(0, 1) == 7);
  const Tensor<float>& same = x;
  static_assert(std::is_same_v<decltype(eigen::matrix(same)), Eigen::Map<const eigen::Matrix<float>>>);
  Tensor<float> y(Shape{2});
  eigen::vector(y) = eigen::matrix(same) * eigen::vector(v);
  CHECK(y(0) == 1 * 5 + 7 * 6);
  CHECK(y(1) == 3 * 5 + 4 * 6);
}

TEST_CASE("a tensor of another rank is no matrix and no vector", "[interop]") {
  Tensor<double> scalar(1.0), vector({2}, {1, 2}), cube(Shape{1, 1, 1});
  for (const auto& wrong : {scalar, vector, cube}) {
    try {
      eigen::matrix(wrong);
      FAIL_CHECK("was a matrix");
    } catch (const Error& error) {
      CHECK(error.code() == Code::invalid_argument);
    }
  }
  try {
    eigen::vector(cube);
    FAIL_CHECK("was a vector");
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    CHECK(std::string(error.what()).find("[1,1,1]") != std::string::npos);
  }
}

TEST_CASE("expressions, vectors, arrays and fixed sizes become tensors", "[interop]") {
  Eigen::Matrix2d a;
  a << 1, 2, 3, 4;
  const Tensor<double> sum = eigen::tensor(a + a.transpose()), block = eigen::tensor(a.col(1)),
                       row = eigen::tensor(a.row(1)), fixed = eigen::tensor(Eigen::Matrix2d(a)),
                       kept = eigen::tensor(a);
  CHECK(bitwise_equal(sum, Tensor<double>({2, 2}, {2, 5, 5, 8})));
  CHECK(bitwise_equal(block, Tensor<double>({2}, {2, 4})));
  CHECK(bitwise_equal(row, Tensor<double>({2}, {3, 4})));
  CHECK(bitwise_equal(fixed, Tensor<double>({2, 2}, {1, 2, 3, 4})));
  CHECK(bitwise_equal(kept, fixed));
  Eigen::VectorXd vector = Eigen::VectorXd::LinSpaced(3, 0, 2);
  const double* const memory = vector.data();
  const Tensor<double> given = eigen::tensor(std::move(vector));
  CHECK(given.data() == memory);
  CHECK(bitwise_equal(given, Tensor<double>({3}, {0, 1, 2})));
  CHECK(bitwise_equal(eigen::tensor(Eigen::RowVector2d(8, 9)), Tensor<double>({2}, {8, 9})));
  CHECK(bitwise_equal(eigen::tensor(Eigen::ArrayXXd(a.array() * 2)), Tensor<double>({2, 2}, {2, 4, 6, 8})));
  CHECK(eigen::tensor(Eigen::MatrixXd(0, 3)).shape() == Shape{0, 3});
  CHECK(eigen::tensor(eigen::Matrix<double>(3, 0)).shape() == Shape{3, 0});
}

TEST_CASE("a matrix that was given away is fed, kept by a variable, and let go of at the end", "[interop]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 2});
  const auto y = matmul(x, x);
  Session session(graph);
  eigen::Matrix<float> dense(2, 2);
  dense << 1, 2, 3, 4;
  const eigen::Matrix<float> want = dense * dense;
  const Tensor<float> result = session.run({{x, eigen::tensor(std::move(dense))}}, y);
  CHECK((eigen::matrix(result) - want).norm() == 0);
}
