#include <dflow/core/broadcast.hpp>

#include "catch.hpp"

using namespace dflow;

TEST_CASE("shapes broadcast by NumPy's rule", "[broadcast]") {
  CHECK(broadcast_shapes(Shape{2, 3}, Shape{2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes(Shape{2, 3}, Shape{}) == Shape{2, 3});
  CHECK(broadcast_shapes(Shape{3}, Shape{2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes(Shape{2, 1}, Shape{1, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes(Shape{8, 1, 6, 1}, Shape{7, 1, 5}) == Shape{8, 7, 6, 5});
  CHECK(broadcast_shapes(Shape{0}, Shape{1}) == Shape{0});
  CHECK(broadcast_shapes(Shape{2, 0}, Shape{}) == Shape{2, 0});
  CHECK_FALSE(broadcast_shapes(Shape{2}, Shape{3}));
  CHECK_FALSE(broadcast_shapes(Shape{0}, Shape{2}));
  CHECK_FALSE(broadcast_shapes(Shape{2, 1}, Shape{8, 4, 3}));
}

TEST_CASE("partial shapes broadcast as far as they are known", "[broadcast]") {
  const auto both = [](PartialShape a, PartialShape b) {
    const std::optional<PartialShape> forward = broadcast_shapes(a, b);
    CHECK(forward == broadcast_shapes(b, a));
    return forward ? forward->to_string() : std::string("none");
  };
  CHECK(both({dynamic, 3}, {3}) == "[?,3]");
  CHECK(both({dynamic}, {1}) == "[?]");
  CHECK(both({dynamic}, {4}) == "[4]");
  CHECK(both({dynamic}, {0}) == "[0]");
  CHECK(both({dynamic}, {dynamic}) == "[?]");
  CHECK(both({dynamic, 2}, {3}) == "none");
  CHECK(both(PartialShape::unknown(), {3}) == "<unknown>");
}

TEST_CASE("a repeated dimension has stride 0", "[broadcast]") {
  const auto strides = broadcast_strides(Shape{3, 1}, Shape{2, 3, 4});
  CHECK(strides[0] == 0);
  CHECK(strides[1] == 1);
  CHECK(strides[2] == 0);
  const auto dense = broadcast_strides(Shape{2, 3}, Shape{2, 3});
  CHECK(dense[0] == 3);
  CHECK(dense[1] == 1);
}
