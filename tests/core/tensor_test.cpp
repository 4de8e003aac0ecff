#include <dflow/core/tensor.hpp>

#include <dflow/core/partial_shape.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <list>
#include <numeric>
#include <sstream>
#include <type_traits>
#include <vector>

using namespace dflow;

static_assert(sizeof(Tensor<float>) == sizeof(AnyTensor));
static_assert(std::is_nothrow_move_constructible_v<Tensor<float>> &&
              std::is_nothrow_copy_constructible_v<Tensor<float>>);
// A literal of the element type feeds a placeholder. A literal that would be narrowed, or a tensor of another type,
// does not.
static_assert(std::is_convertible_v<float, Tensor<float>> && std::is_convertible_v<const char*, Tensor<std::string>>);
static_assert(!std::is_convertible_v<int, Tensor<float>> && !std::is_convertible_v<double, Tensor<float>>);
static_assert(!std::is_constructible_v<Tensor<float>, Tensor<double>> ||
              !std::is_convertible_v<Tensor<double>, Tensor<float>>);
static_assert(std::is_convertible_v<Tensor<float>, AnyTensor> && !std::is_convertible_v<AnyTensor, Tensor<float>>);

TEST_CASE("a tensor is made from a shape and values in row-major order", "[tensor]") {
  Tensor<float> t({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(t.dtype() == DType::float32);
  CHECK(t(1, 2) == 6);
  t(1, 2) = 7;
  CHECK(t.span()[5] == 7);
  CHECK(std::accumulate(t.begin(), t.end(), 0.0f) == 22);
  CHECK(Tensor<std::string>({2}, {"a", "b"})(1) == "b");
  CHECK(Tensor<float>({2}).shape() == Shape{2});
  CHECK(Tensor<float>({5}).num_elements() == 5);
  CHECK(Tensor<float>({0}, {}).num_elements() == 0);
  CHECK(Tensor<bool>({3}, std::vector<bool>{true, false, true})(2));
}

TEMPLATE_TEST_CASE("integers in braces are a shape, of elements of any type", "[tensor]", std::int8_t, std::uint8_t,
                   std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, Half, BFloat16, float, double,
                   std::complex<double>, bool, std::string) {
  const int n = 3;
  const std::int64_t wide = 2;
  const std::size_t size = 4;
  CHECK(Tensor<TestType>({64}).shape() == Shape{64});
  CHECK(Tensor<TestType>({n}).shape() == Shape{3});
  CHECK(Tensor<TestType>({wide}).shape() == Shape{2});
  CHECK(Tensor<TestType>({size}).shape() == Shape{4});
  CHECK(Tensor<TestType>({0}).shape() == Shape{0});
  CHECK(Tensor<TestType>({2, 3}).shape() == Shape{2, 3});
  CHECK(Tensor<TestType>({wide, wide}).shape() == Shape{2, 2});
  const Tensor<TestType> ids({64});
  CHECK(ids.num_elements() == 64);
  CHECK_THROWS_AS(Tensor<TestType>({-1}), Error);
}

TEST_CASE("tensors, shapes, element types and statuses print as their text", "[tensor]") {
  std::ostringstream out;
  out << Tensor<float>({{1, 2}, {3, 4}}) << ' ' << AnyTensor(Tensor<std::string>("a")) << ' ' << Shape{2, 3} << ' '
      << PartialShape{dynamic, 3} << ' ' << DType::bfloat16 << ' ' << Status::not_found("no such row");
  CHECK(out.str() == "float[2,2] [[1, 2], [3, 4]] string[] \"a\" [2,3] [?,3] bfloat16 NOT_FOUND: no such row");
}

TEST_CASE("text is a scalar of its characters, and no shape", "[tensor]") {
  const Tensor<std::string> text("a text of more than eight characters");
  CHECK(text.shape().is_scalar());
  CHECK(text.scalar() == "a text of more than eight characters");
}

TEST_CASE("a number without braces, or in one pair that makes the tensor, is a scalar", "[tensor]") {
  CHECK(Tensor<std::int32_t>(64).shape().is_scalar());
  CHECK(Tensor<std::int32_t>{64}.scalar() == 64);
  const Tensor<std::int64_t> copied = {std::int64_t{5}};
  CHECK(copied.scalar() == 5);
  CHECK(Tensor<std::int32_t>({{64}}).shape() == Shape{1, 1});
}

TEST_CASE("a tensor is made from ranges and fills", "[tensor]") {
  const std::vector<float> floats{1, 2, 3, 4};
  const std::list<int> ints{1, 2, 3, 4};
  CHECK(Tensor<float>({2, 2}, floats)(1, 0) == 3);
  CHECK(Tensor<double>({2, 2}, ints)(1, 1) == 4);
  CHECK(Tensor<Half>({4}, floats)(2) == Half(3));
  CHECK(Tensor<std::int32_t>::full({3}, 7)(2) == 7);
  CHECK(Tensor<double>::zeros({3})(1) == 0);
  const Status status = status_of([&] { return Tensor<float>({3}, floats).rank(); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shape [3] has 3 elements, 4 values were given");
  CHECK(status_of([&] { return Tensor<float>({2}, {1, 2, 3}).rank(); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return Tensor<double>({5}, ints).rank(); }).code() == Code::invalid_argument);
}

TEST_CASE("braces in braces are the elements as they lie", "[tensor]") {
  const Tensor<float> matrix({{1, 2, 3}, {4, 5.5, 6}});
  CHECK(matrix.shape() == Shape{2, 3});
  CHECK(matrix(1, 1) == 5.5f);
  const auto first = [](const Tensor<float>& t) {
    return t.shape().to_string() + " " + std::to_string(int(t.data()[0]));
  };
  CHECK(first({{1, 2}, {3, 4}}) == "[2,2] 1");
  CHECK(first({{{1}, {2}}}) == "[1,2,1] 1");
  CHECK(first({{{{7, 2}, {3, 4}}, {{5, 6}, {7, 8}}}}) == "[1,2,2,2] 7");
  CHECK(Tensor<float>({{2, 3}}).shape() == Shape{1, 2});
  CHECK(Tensor<float>({{}, {}}).shape() == Shape{2, 0});
  CHECK(Tensor<std::string>({{"a", "b"}, {"c", "d"}})(1, 0) == "c");
  CHECK(Tensor<bool>({{true, false}, {false, true}})(1, 1));
  CHECK(Tensor<Half>({{1, 0.5}})(0, 1) == Half(0.5f));
  CHECK(Tensor<std::complex<double>>({{1, std::complex<double>(0, 2)}})(0, 1).imag() == 2);
  CHECK(Tensor<std::uint8_t>({{0, 255}})(0, 1) == 255);
}

TEST_CASE("braces that are no tensor are refused", "[tensor]") {
  const auto ragged = [](const Tensor<float>& t) { return t.rank(); };
  const Status status = status_of([&] { return ragged({{1, 2}, {3}}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(
      status.message() ==
      "braces in braces are rows of one shape, but row 1 has shape [1] and row 0 [2]; a shape and its elements are two "
      "arguments: Tensor<T>({2, 3}, {1, 2, 3, 4, 5, 6})");
  CHECK(status_of([&] { return ragged({{{1, 2}}, {3, 4}}); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return ragged({{2, 2}, {1, 2, 3, 4}}); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return ragged({{{1}, {2, 3}}, {{1}, {2, 3}}}); }).code() == Code::invalid_argument);
  CHECK(status_of([&] { return ragged({{{{{{{{{1}}}}}}}}}); }).code() == Code::invalid_argument);
  CHECK(status_of([] {
          return Tensor<std::uint8_t>({{0, 256}}).rank();
        }).message() == "an element is no number that uint8 can hold");
  CHECK(status_of([] { return Tensor<std::uint64_t>({{-1}}).rank(); }).code() == Code::invalid_argument);
}

TEST_CASE("finite numbers in braces that a real cannot hold are refused", "[tensor]") {
  CHECK(status_of([] {
          return Tensor<float>({{0, 1e300}}).rank();
        }).message() == "an element is no number that float can hold");
  CHECK(code_of([] { return Tensor<float>({{-1e39}}).rank(); }) == Code::invalid_argument);
  CHECK(code_of([] { return Tensor<Half>({{70000}}).rank(); }) == Code::invalid_argument);
  CHECK(code_of([] { return Tensor<Half>({{1e5f}}).rank(); }) == Code::invalid_argument);
  CHECK(code_of([] { return Tensor<BFloat16>({{1e39}}).rank(); }) == Code::invalid_argument);
  CHECK(code_of([] { return Tensor<std::complex<float>>({{1e39}}).rank(); }) == Code::invalid_argument);
  // Literals that are rounded, and infinities and NaN, are allowed.
  CHECK(Tensor<Half>({{65504, 1e-30}})(0, 1) == Half(0.0f));
  CHECK(Tensor<float>({{3.4028234e38, 16777217}})(0, 1) == 16777216.0f);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(Tensor<float>({{infinity, -infinity}})(0, 1) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(Tensor<float>({{std::numeric_limits<double>::quiet_NaN()}})(0, 0)));
}

TEST_CASE("scalars", "[tensor]") {
  const Tensor<float> t = 3.0f;
  CHECK(t.rank() == 0);
  CHECK(t.scalar() == 3.0f);
  CHECK(t() == 3.0f);
  const Tensor<std::int64_t> wide = 5;
  CHECK(wide.scalar() == 5);
  CHECK(Tensor<float>({1, 1}, {4}).scalar() == 4);
  CHECK(status_of([] { return Tensor<float>({2}).scalar(); }).message() == "a tensor of shape [2] is not one element");
  CHECK(status_of([] { return Tensor<float>({0}).scalar(); }).code() == Code::invalid_argument);
  CHECK(status_of([] { return Tensor<float>().scalar(); }).code() == Code::invalid_argument);
}

TEST_CASE("typed and erased tensors are views of one another", "[tensor]") {
  Tensor<float> t({2}, {1, 2});
  AnyTensor any = t;
  CHECK(any.shares_buffer_with(t));
  const Tensor<float>& seen = Tensor<float>::of(std::as_const(any));
  CHECK(&seen.any() == &any);
  Tensor<float>::of(any)(0) = 9;
  CHECK(t(0) == 9);
  CHECK(Tensor<float>(any)(1) == 2);
  CHECK(status_of([&] { return Tensor<std::int32_t>(any).rank(); }).message() ==
        "the tensor's element type is float, int32 was asked for");
  any.reset();
  CHECK(t.buffer_is_unique());
  AnyTensor moved = std::move(t).any();
  CHECK(moved.buffer_is_unique());
}

TEST_CASE("copies share, copy() does not, slices and reshapes keep the type", "[tensor]") {
  Tensor<std::int32_t> t({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor<std::int32_t> same = t;
  Tensor<std::int32_t> own = t.copy();
  same(0, 0) = 10;
  CHECK(t(0, 0) == 10);
  CHECK(own(0, 0) == 1);
  CHECK(t.slice(1, 3)(1, 1) == 6);
  CHECK(t.reshaped({2, 3})(0, 0) == 10);
}

TEST_CASE("borrowed memory is used in place", "[tensor]") {
  std::vector<float> values{1, 2, 3, 4};
  {
    Tensor<float> t = borrow(values, {2, 2});
    CHECK(t.data() == values.data());
    t(1, 1) = 8;
    CHECK(t.is_borrowed());
    CHECK_FALSE(t.is_read_only());
    CHECK_FALSE(t.buffer_is_unique());
  }
  CHECK(values[3] == 8);
  bool is_released = false;
  {
    const Tensor<float> t = borrow(std::span(values), {4}, [&] { is_released = true; });
  }
  CHECK(is_released);
  CHECK(status_of([&] { return borrow(values, {3}).rank(); }).code() == Code::invalid_argument);
}

TEST_CASE("adopted memory is the library's own until it is released", "[tensor]") {
  std::vector<float> values{1, 2, 3, 4};
  bool is_released = false;
  {
    const Tensor<float> t = adopt(std::span(values), {2, 2}, [&] { is_released = true; });
    CHECK(t.data() == values.data());
    CHECK_FALSE(t.is_borrowed());
    CHECK(t.buffer_is_unique());
    CHECK_FALSE(is_released);
  }
  CHECK(is_released);
  CHECK(status_of([&] { return adopt(std::span(values), {3}, [] {}).rank(); }).code() == Code::invalid_argument);
}

TEST_CASE("borrowed const memory is never up for reuse", "[tensor]") {
  const std::vector<float> values{1, 2, 3, 4};
  const Tensor<float> t = borrow(values, {4});
  CHECK(t.is_read_only());
  CHECK_FALSE(t.buffer_is_unique());
  CHECK_FALSE(t.slice(0, 2).buffer_is_unique());
  CHECK(t.copy().buffer_is_unique());
}

TEST_CASE("strided views in and out", "[tensor]") {
  Tensor<std::int32_t> t({2, 3}, {1, 2, 3, 4, 5, 6});
  auto view = t.view<2>();
  view(0, 1) = 20;
  CHECK(t(0, 1) == 20);
  const auto transposed = Tensor<std::int32_t>::from_view(std::as_const(t).view<2>().transposed(0, 1));
  CHECK(transposed.shape() == Shape{3, 2});
  CHECK(bitwise_equal(transposed, Tensor<std::int32_t>({3, 2}, {1, 4, 20, 5, 3, 6})));
  CHECK(bitwise_equal(Tensor<std::int32_t>::from_view(view.slice(1, 0, 3, 2)),
                      Tensor<std::int32_t>({2, 2}, {1, 3, 4, 6})));
  CHECK(Tensor<std::int32_t>::from_view(view.slice(0, 1, 1)).num_elements() == 0);
  CHECK(Tensor<std::int32_t>::from_view(Tensor<std::int32_t>(5).view<0>()).scalar() == 5);
  CHECK(status_of([&] { return t.view<3>().size(); }).message() == "a tensor of shape [2,3] has no view of rank 3");
}
