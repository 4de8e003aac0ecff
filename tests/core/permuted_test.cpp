#include <dflow/core/permuted.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

using namespace dflow;

// The values are numpy.transpose's, of NumPy 2.4.6.
TEST_CASE("a tensor's dimensions are put in another order, as by numpy.transpose", "[permuted]") {
  const Tensor<std::int32_t> matrix({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(bitwise_equal(permuted(matrix, std::array{1, 0}), Tensor<std::int32_t>({3, 2}, {0, 3, 1, 4, 2, 5})));
  CHECK(bitwise_equal(permuted(matrix, std::array{0, 1}), matrix));
  CHECK_FALSE(permuted(matrix, std::array{0, 1}).shares_buffer_with(matrix));
  const Tensor<std::string> box({2, 1, 3}, {"a", "b", "c", "d", "e", "f"});
  CHECK(bitwise_equal(permuted(box, std::array{2, 0, 1}),
                      Tensor<std::string>({3, 2, 1}, {"a", "d", "b", "e", "c", "f"})));
  Tensor<double> images({2, 3, 2, 2});
  double next = 0;
  for (double& element : images) element = next++;
  const AnyTensor moved = permuted(images, std::array{2, 3, 1, 0});
  CHECK(moved.shape() == Shape{2, 2, 3, 2});
  CHECK(bitwise_equal(moved.slice(0, 1).reshaped({12}),
                      Tensor<double>({12}, {0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21})));
  CHECK(bitwise_equal(permuted(Tensor<float>(7.0f), {}), Tensor<float>(7.0f)));
  CHECK(permuted(Tensor<float>(Shape{0, 3}), std::array{1, 0}).shape() == Shape{3, 0});
}

TEST_CASE("an order of dimensions has each of them once", "[permuted]") {
  const Tensor<float> matrix(Shape{2, 3});
  for (const std::vector<int>& axes : {std::vector<int>{}, {0}, {0, 0}, {0, 2}, {-1, 0}, {0, 1, 2}}) {
    CHECK(contains(error_of([&] { return permuted(matrix, axes); }), "shape [2,3]"));
  }
}
