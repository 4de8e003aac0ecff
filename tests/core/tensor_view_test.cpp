#include <dflow/core/tensor_view.hpp>

#include "catch.hpp"

using dflow::TensorView;

static_assert(dflow::MdspanLike<TensorView<float, 2>>);

TEST_CASE("a dense view is row-major", "[tensor_view]") {
  int values[6] = {1, 2, 3, 4, 5, 6};
  const TensorView<int, 2> view(values, {2, 3});
  CHECK(view(1, 0) == 4);
  CHECK(view.extent(1) == 3);
  CHECK(view.stride(0) == 3);
  CHECK(view.size() == 6);
  view(1, 2) = 60;
  CHECK(values[5] == 60);
  CHECK(view[1](2) == 60);
  CHECK(view[1][2]() == 60);
}

TEST_CASE("slices, transposes and broadcasts are strides", "[tensor_view]") {
  int values[6] = {1, 2, 3, 4, 5, 6};
  const TensorView<int, 2> view(values, {2, 3});
  CHECK(view.transposed(0, 1)(2, 1) == 6);
  CHECK(view.slice(1, 1, 3)(1, 0) == 5);
  CHECK(view.slice(1, 0, 3, 2).extent(1) == 2);
  CHECK(view.slice(1, 0, 3, 2)(1, 1) == 6);
  const TensorView<const int, 2> repeated(values, {4, 3}, {0, 1});
  CHECK(repeated(3, 2) == 3);
  const TensorView<const int, 2> read_only = view;
  CHECK(&read_only(1, 1) == &view(1, 1));
}

TEST_CASE("a view of rank 0 is one element", "[tensor_view]") {
  int value = 5;
  const TensorView<int, 0> view(&value, {});
  CHECK(view() == 5);
  CHECK(view.size() == 1);
}
