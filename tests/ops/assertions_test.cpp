#include <dflow/ops/control/assertions.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/autodiff/gradients.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/control/frames.hpp>
#include <dflow/ops/control/while_loop.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/session/session.hpp>

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// A graph with one placeholder of any shape.
template <Element T>
struct Checked {
  Graph graph;
  Output<T> x = placeholder<T>(graph, PartialShape::unknown(), {.name = "x"});
  Session session{graph, {.num_threads = 1}};

  std::string error(const AnyOutput& checked, const Tensor<T>& value) {
    return error_of([&] { session.run({{x, value}}, checked); }, Code::invalid_argument);
  }
  bool passes(const Output<T>& checked, const Tensor<T>& value) {
    return session.run({{x, value}}, checked).to_string() == value.to_string();
  }
};

bool has_all(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) {
      UNSCOPED_INFO("'" << part << "' is missing in: " << text);
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("a check of a relation passes its edge on, and its error has the first place, the elements and the shapes") {
  Checked<float> in;
  const auto y = placeholder<float>(in.graph, {3}, {.name = "y"});
  const auto less = assert_less(in.x, y, "limits");
  const int line = __LINE__ - 1;
  const Tensor<float> limits({3}, {1, 2, 3});
  const Tensor<float> low({2, 3}, {0, 1, 2, -1, -1, -1});
  CHECK(in.session.run({{in.x, low}, {y, limits}}, less).to_string() == low.to_string());
  const std::string error = error_of(
      [&] {
        in.session.run({{in.x, Tensor<float>({2, 3}, {0, 1, 2, 0, 5, 7})}, {y, limits}}, less);
      },
      Code::invalid_argument);
  CHECK(has_all(error, {"limits: assert_less: 'x' is not less than 'y'", "int64[2] [1, 1]", "float[] 5", "float[] 2",
                        "int32[2] [2, 3]", "int32[1] [3]", "Assert", "assertions_test.cpp:" + std::to_string(line)}));
  CHECK(has_all(in.error(assert_less_equal(in.x, 2.0f), Tensor<float>({3}, {1, 2, 3})),
                {"'x' is not less than or equal to float[] 2", "[2]", "float[] 3"}));
  CHECK(has_all(in.error(assert_equal(in.x, Tensor<float>({2, 1}, {1, 2})), Tensor<float>({2}, {1, 1})),
                {"[1, 0]", "float[] 1", "float[] 2"}));
  CHECK(in.passes(assert_less_equal(in.x, 3.0f), Tensor<float>({3}, {1, 2, 3})));
  CHECK(in.passes(assert_less(in.x, 2.0f), Tensor<float>({})));
  CHECK(in.passes(assert_less(in.x, 2.0f), Tensor<float>({0, 4})));
  CHECK(has_all(in.error(assert_less(in.x, 2.0f), Tensor<float>(std::numeric_limits<float>::quiet_NaN())), {"nan"}));
}

TEMPLATE_TEST_CASE("signs of all signed numbers are checked", "", float, double, Half, BFloat16, std::int8_t,
                   std::int16_t, std::int32_t, std::int64_t) {
  using T = TestType;
  Checked<T> in;
  const Tensor<T> x({2, 2}, {T(1.0f), T(2.0f), T(0.0f), T(3.0f)});
  CHECK(in.passes(assert_non_negative(in.x), x));
  CHECK(has_all(in.error(assert_positive(in.x, "rates"), x),
                {"rates: assert_positive: 'x' is not positive", "[1, 0]", "[] 0", "[2, 2]"}));
  CHECK(has_all(in.error(assert_negative(in.x), x), {"assert_negative", "[0, 0]", "[] 1"}));
  CHECK(has_all(in.error(assert_non_positive(in.x), x), {"assert_non_positive", "[0, 0]", "[] 1"}));
  const Tensor<T> below({2}, {T(-1.0f), T(0.0f)});
  CHECK(in.passes(assert_non_positive(in.x), below));
  CHECK(has_all(in.error(assert_negative(in.x), below), {"[1]"}));
  CHECK(in.passes(assert_negative(in.x), Tensor<T>({1}, {T(-2.0f)})));
}

TEMPLATE_TEST_CASE("equality is checked for every element type", "", bool, std::uint8_t, std::uint64_t, std::string,
                   std::complex<float>) {
  using T = TestType;
  const auto value = [](int i) {
    if constexpr (std::same_as<T, std::string>) {
      return std::to_string(i);
    } else {
      return static_cast<T>(static_cast<float>(i));
    }
  };
  Checked<T> in;
  const auto checked = assert_equal(in.x, Tensor<T>({2}, {value(1), value(0)}));
  CHECK(in.passes(checked, Tensor<T>({2}, {value(1), value(0)})));
  CHECK(has_all(in.error(checked, Tensor<T>({2, 2}, {value(1), value(0), value(0), value(0)})), {"[1, 0]"}));
  Graph graph;
  const auto known = constant(graph, Tensor<T>({2}, {value(1), value(0)}));
  CHECK(assert_equal(known, Tensor<T>({2}, {value(1), value(0)})) == known);
  CHECK(code_of([&] { assert_equal(known, Tensor<T>({2}, {value(1), value(1)})); }) == Code::invalid_argument);
}

TEST_CASE("the order of elements is checked in row-major order") {
  Checked<std::int32_t> in;
  const auto rising = assert_strictly_increasing(in.x, "ids"), steady = assert_non_decreasing(in.x);
  const auto rises = is_strictly_increasing(in.x), falls_never = is_non_decreasing(in.x);
  const auto both = [&](const Tensor<std::int32_t>& x) {
    const auto [a, b] = in.session.run({{in.x, x}}, rises, falls_never);
    return std::pair(a.scalar(), b.scalar());
  };
  const Tensor<std::int32_t> up({2, 2}, {1, 2, 5, 9}), flat({2, 2}, {1, 2, 2, 9}), down({2, 2}, {1, 3, 2, 9});
  CHECK(in.passes(rising, up));
  CHECK(in.passes(steady, flat));
  CHECK(has_all(in.error(rising, flat), {"ids: assert_strictly_increasing: 'x' does not increase", "int64[1] [1]",
                                         "the element", "int32[] 2", "and the next", "int32[2] [2, 2]"}));
  CHECK(has_all(in.error(steady, down), {"assert_non_decreasing: 'x' decreases", "int32[] 3", "int32[] 2"}));
  CHECK(both(up) == std::pair(true, true));
  CHECK(both(flat) == std::pair(false, true));
  CHECK(both(down) == std::pair(false, false));
  for (const Tensor<std::int32_t>& few : {Tensor<std::int32_t>({0}), Tensor<std::int32_t>({0, 3}),
                                          Tensor<std::int32_t>(7), Tensor<std::int32_t>({1, 1}, {7})}) {
    CHECK(in.passes(rising, few));
    CHECK(both(few) == std::pair(true, true));
  }
}

TEST_CASE("a check of what the graph knows fails at once or costs nothing") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 3}, {.name = "x"});
  const auto known = constant<float>(graph, {1, 2, 2}, {.name = "known"});
  const auto extents = shape(x, {.name = "extents"});
  const std::size_t before = graph.num_nodes();
  CHECK(assert_positive(known) == known);
  CHECK(assert_non_decreasing(known) == known);
  CHECK(assert_rank(x, 2) == x);
  CHECK(assert_rank_at_least(x, 1) == x);
  CHECK(assert_less(known, known + 0.0f).is_valid());  // of a sum, so a step checks it
  CHECK(graph.num_nodes() > before);
  const std::size_t after = graph.num_nodes();
  CHECK(has_all(error_of([&] { assert_strictly_increasing(known, "bins"); }, Code::invalid_argument),
                {"bins: assert_strictly_increasing", "at [1]: float[] 2 and float[] 2", "assertions_test.cpp:"}));
  CHECK(has_all(error_of([&] { assert_rank(x, 3, "images"); }, Code::invalid_argument),
                {"images: assert_rank: 'x' has not rank 3", "[2,3]", "assertions_test.cpp:"}));
  CHECK(code_of([&] { assert_rank_at_least(x, 3); }) == Code::invalid_argument);
  CHECK(code_of([&] { assert_rank(x, -1); }) == Code::invalid_argument);
  CHECK(graph.num_nodes() == after);
  CHECK(has_all(error_of([&] { assert_negative(known); }, Code::invalid_argument), {"at [0]: float[] 1"}));
  CHECK(has_all(error_of(
                    [&] {
                      assert_equal(extents, Tensor<std::int32_t>({2}, {2, 4}));
                    },
                    Code::invalid_argument),
                {"at [1]: int32[] 3 and int32[] 4"}));
  CHECK(code_of([&] { assert_less(x, placeholder<float>(graph, {4})); }) == Code::invalid_argument);
  CHECK(code_of([&] { assert_positive(Output<float>()); }) == Code::invalid_argument);
}

TEST_CASE("a rank that only a step knows is checked there, and known behind the check") {
  Checked<float> in;
  const auto matrix = assert_rank(in.x, 2, "images"), many = assert_rank_at_least(in.x, 2);
  CHECK(matrix.shape().rank() == 2);
  CHECK(in.passes(matrix, Tensor<float>({1, 2}, {1, 2})));
  CHECK(in.passes(many, Tensor<float>({1, 2, 1}, {1, 2})));
  CHECK(has_all(in.error(matrix, Tensor<float>({2}, {1, 2})),
                {"images: assert_rank: 'x' has not rank 2", "int32[1] [2]"}));
  CHECK(has_all(in.error(many, Tensor<float>(1.0f)), {"rank 2 or more", "int32[0] []"}));
}

TEST_CASE("element types are checked when the check is built") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2}, {.name = "x"});
  const auto n = placeholder<std::uint16_t>(graph, {});
  const Output<float> same = assert_type<float>(AnyOutput(x));
  CHECK(same == x);
  CHECK(assert_type(n, DType::uint16) == n);
  CHECK(has_all(error_of([&] { assert_type(x, DType::float64, "loss"); }, Code::invalid_argument),
                {"loss: assert_type: 'x' is float[2], and not double", "assertions_test.cpp:"}));
  CHECK(assert_integer(n) == n);
  CHECK(has_all(error_of([&] { assert_integer(x); }, Code::invalid_argument), {"assert_integer: 'x' is float[2]"}));
  CHECK(is_numeric_tensor(x));
  CHECK_FALSE(is_numeric_tensor(placeholder<bool>(graph, {})));
  CHECK_FALSE(is_numeric_tensor(placeholder<std::string>(graph, {})));
  CHECK_FALSE(is_numeric_tensor(AnyOutput()));
}

TEST_CASE("gradients go through checks, and a check may stand in a loop") {
  Checked<float> in;
  const auto dx = gradients(assert_positive(in.x, "x") * in.x, in.x);
  const Tensor<float> value({2}, {1, 2});
  CHECK(in.session.run({{in.x, value}}, dx).to_string() == Tensor<float>({2}, {2, 4}).to_string());
  CHECK(has_all(in.error(dx, Tensor<float>({2}, {1, -2})), {"[1]", "float[] -2"}));
  const auto last =
      while_loop([](Output<float> v) { return v < 100.0f; },
                 [&](Output<float> v) { return assert_less(v, 50.0f, "v") * 2.0f; }, constant(in.graph, 1.0f));
  CHECK(has_all(error_of([&] { in.session.run(last); }, Code::invalid_argument), {"v: assert_less", "float[] 64"}));
}

TEST_CASE("all floating-point edges of a graph are checked by one operation") {
  Checked<float> in;
  const auto finite = verify_tensor_all_finite(log(in.x), "logs");
  CHECK(in.passes(finite, Tensor<float>({1}, {1})) == false);
  CHECK(has_all(in.error(finite, Tensor<float>({1}, {0})), {"logs: the tensor holds Inf"}));
  const auto first = log(in.x, {.name = "first"});
  const auto second = first * 2.0f;
  const Operation check = add_check_numerics_ops(in.graph);
  in.session.run({{in.x, Tensor<float>({1}, {1})}}, check);
  Checked<float> other;
  const auto root = sqrt(other.x, {.name = "root"});
  static_cast<void>(log(root, {.name = "log"}));
  const Operation all = add_check_numerics_ops(other.graph);
  CHECK(has_all(error_of(
                    [&] {
                      other.session.run({{other.x, Tensor<float>(-1.0f)}}, all);
                    },
                    Code::invalid_argument),
                {"root: the tensor holds NaN"}));
  CHECK(has_all(error_of(
                    [&] {
                      other.session.run({{other.x, Tensor<float>(0.0f)}}, all);
                    },
                    Code::invalid_argument),
                {"log: the tensor holds Inf"}));
  Graph empty;
  Session(empty).run(add_check_numerics_ops(empty));
  static_cast<void>(frames::switch_on(other.x, constant(other.graph, true)));
  CHECK(code_of([&] { add_check_numerics_ops(other.graph); }) == Code::invalid_argument);
  static_cast<void>(second);
}
