#include <dflow/core/shape.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <limits>
#include <vector>

using namespace dflow;

namespace {
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Status status_of_shape(std::vector<std::int64_t> dims) {
  return status_of([&] { return Shape(std::span<const std::int64_t>(dims)); });
}
}  // namespace

TEST_CASE("a shape knows its extents and its number of elements", "[shape]") {
  const Shape shape{2, 3, 4};
  CHECK(shape.rank() == 3);
  CHECK(shape[1] == 3);
  CHECK(shape.num_elements() == 24);
  CHECK(shape.num_elements(1, 3) == 12);
  CHECK(shape.num_elements(3, 3) == 1);
  CHECK(shape.to_string() == "[2,3,4]");
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(shape == Shape{2, 3, 4});
  CHECK_FALSE(shape == Shape{2, 3});
  CHECK_FALSE(shape == Shape{2, 4, 3});
}

TEST_CASE("a shape without dimensions is a scalar, a zero extent makes it empty", "[shape]") {
  CHECK(Shape().num_elements() == 1);
  CHECK(Shape().is_scalar());
  CHECK(Shape() == Shape{});
  CHECK(Shape().to_string() == "[]");
  CHECK(Shape{0}.num_elements() == 0);
  CHECK(Shape{largest, 0, largest}.num_elements() == 0);
}

TEST_CASE("what is no shape is refused with the extents in the message", "[shape]") {
  Status status = status_of_shape({2, -1});
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shape [2,-1] has a negative dimension");
  CHECK(status_of_shape({0, -5}).message() == "shape [0,-5] has a negative dimension");
  status = status_of_shape({largest, 2});
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shape [9223372036854775807,2] has more than 2^63-1 elements");
  status = status_of_shape(std::vector<std::int64_t>(9, 1));
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shape [1,1,1,1,1,1,1,1,1] has 9 dimensions, more than 8");
  CHECK(status_of_shape(std::vector<std::int64_t>(8, 1)).ok());
  CHECK(status_of_shape(std::vector<std::int64_t>(1000, 1)).message().size() < 100);
}

TEST_CASE("shapes are changed by copies", "[shape]") {
  const Shape shape{2, 3};
  CHECK(shape.with_dim(0, 5) == Shape{5, 3});
  CHECK(shape.inserted(0, 7) == Shape{7, 2, 3});
  CHECK(shape.appended(7) == Shape{2, 3, 7});
  CHECK(shape.erased(0) == Shape{3});
  CHECK(shape.concatenated({4}) == Shape{2, 3, 4});
  CHECK(shape.subshape(1, 2) == Shape{3});
  CHECK(shape.subshape(1, 1) == Shape{});
  CHECK(status_of([&] { return shape.with_dim(0, -1); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return shape.appended(largest); }).code() == Code::invalid_argument);
  const Shape full{1, 1, 1, 1, 1, 1, 1, 1};
  CHECK(status_of([&] { return full.appended(1); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return full.concatenated(full); }).code() == Code::invalid_argument);
}

TEST_CASE("row-major strides", "[shape]") {
  const auto strides = row_major_strides(Shape{2, 3, 4});
  CHECK(strides[0] == 12);
  CHECK(strides[1] == 4);
  CHECK(strides[2] == 1);
  CHECK(strides[3] == 0);
}
