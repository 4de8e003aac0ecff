#include <dflow/core/partial_shape.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <limits>

using namespace dflow;

TEST_CASE("dimensions or the rank of a partial shape may be unknown", "[partial_shape]") {
  const PartialShape batch{dynamic, 784};
  CHECK(batch.rank() == 2);
  CHECK(batch.dim(0) == dynamic);
  CHECK(batch.to_string() == "[?,784]");
  CHECK_FALSE(batch.is_fully_defined());
  CHECK_FALSE(batch.num_elements());
  CHECK(PartialShape::unknown().to_string() == "<unknown>");
  CHECK(PartialShape::unknown().rank() == -1);
  CHECK(PartialShape::unknown().dims().empty());
  CHECK(PartialShape::unknown().dim(3) == dynamic);
  CHECK(PartialShape::unknown(2).to_string() == "[?,?]");
  CHECK(PartialShape().to_string() == "[]");
  CHECK(PartialShape{} == PartialShape(Shape{}));
  CHECK(PartialShape(Shape{2, 3}).is_fully_defined());
  CHECK(PartialShape(Shape{2, 3}).num_elements() == 6);
}

TEST_CASE("partial shapes that cannot be are refused", "[partial_shape]") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const Status negative = status_of([] { return PartialShape{2, -2}; });
  CHECK(negative.code() == Code::invalid_argument);
  CHECK(negative.message() == "shape [2,-2] has a negative dimension");
  CHECK(status_of([] { return PartialShape{1, 1, 1, 1, 1, 1, 1, 1, dynamic}; }).code() == Code::invalid_argument);
  CHECK(status_of([] { return PartialShape{largest, dynamic, 2}; }).code() == Code::invalid_argument);
  CHECK(status_of([] { return PartialShape::unknown(9); }).code() == Code::invalid_argument);
}

TEST_CASE("merging keeps what either side knows", "[partial_shape]") {
  const PartialShape a{dynamic, 3};
  const PartialShape b{2, dynamic};
  CHECK(a.is_compatible_with(b));
  CHECK(a.merged_with(b) == PartialShape{2, 3});
  CHECK(a.merged_with(PartialShape::unknown()) == a);
  CHECK(PartialShape::unknown().merged_with(a) == a);
  CHECK(a.is_compatible_with(Shape{7, 3}));
  CHECK_FALSE(a.is_compatible_with(Shape{7, 4}));
  CHECK_FALSE(a.is_compatible_with(Shape{3}));
  const Status status = status_of([&] { return a.merged_with({2, 4}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shapes [?,3] and [2,4] do not agree");
  // Each is a shape, but no shape is both.
  const PartialShape large{std::int64_t{1} << 40, dynamic};
  CHECK(status_of([&] {
          return large.merged_with({dynamic, std::int64_t{1} << 40});
        }).code() == Code::invalid_argument);
}

TEST_CASE("generalising keeps what both sides agree on", "[partial_shape]") {
  CHECK(PartialShape{2, 3}.generalized_with({4, 3}) == PartialShape{dynamic, 3});
  CHECK(PartialShape{2, 3}.generalized_with({2, 3}) == PartialShape{2, 3});
  CHECK(PartialShape{2, 3}.generalized_with({2}) == PartialShape::unknown());
}

TEST_CASE("a fully defined partial shape is a shape, another is not", "[partial_shape]") {
  CHECK(PartialShape{2, 3}.to_shape() == Shape{2, 3});
  CHECK(status_of([] { return PartialShape{dynamic}.to_shape(); }).message() == "shape [?] is not fully defined");
  CHECK(status_of([] { return PartialShape::unknown().to_shape(); }).code() == Code::invalid_argument);
}

TEST_CASE("partial shapes are changed by copies", "[partial_shape]") {
  const PartialShape shape{dynamic, 3};
  CHECK(shape.with_dim(0, 2) == PartialShape{2, 3});
  CHECK(shape.inserted(1, dynamic) == PartialShape{dynamic, dynamic, 3});
  CHECK(shape.appended(4) == PartialShape{dynamic, 3, 4});
  CHECK(shape.erased(0) == PartialShape{3});
  CHECK(shape.subshape(0, 1) == PartialShape{dynamic});
  CHECK(shape.concatenated({5}) == PartialShape{dynamic, 3, 5});
  CHECK(shape.concatenated(PartialShape::unknown()) == PartialShape::unknown());
  CHECK(PartialShape::unknown().appended(1) == PartialShape::unknown());
  CHECK(PartialShape::unknown().with_dim(2, 1) == PartialShape::unknown());
}
