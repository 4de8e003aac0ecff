#include <dflow/op/symbol.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <optional>

using namespace dflow;

namespace {

using FormulaOperation = Formula::Operation;

struct Cube : ElementwiseOp<"Cube", FloatTypes> {
  static constexpr bool chains = true;
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x * x * x;
  }
};

/// Clipped on both sides, by branches.
struct Clipped : ElementwiseOp<"Clipped", RealTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    if (x > T(1)) return T(1);
    if (x < T(-1)) return T(-1);
    return x;
  }
};

/// Its loop ends where an argument says.
struct Halvings : ElementwiseOp<"Halvings", FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    T count(0);
    for (; x > T(1); x = x * T(0.5f)) count += T(1);
    return count;
  }
};

struct IsInside : ElementwiseOp<"IsInside", FloatTypes> {
  template <class T>
  DFLOW_FN static bool apply(T x) {
    return x > T(0) && x < T(1);
  }
};

/// The formula's value for numbers, as double.
double value_of(const Formula& formula, std::initializer_list<double> arguments) {
  std::vector<double> values;
  for (const Formula::Step& step : formula.steps) {
    const auto of = [&](std::int32_t s) { return values[static_cast<std::size_t>(s)]; };
    switch (step.operation) {
      case FormulaOperation::argument:
        values.push_back(arguments.begin()[step.a]);
        break;
      case FormulaOperation::constant:
      case FormulaOperation::truth:
        values.push_back(step.is_whole ? static_cast<double>(step.whole) : step.real);
        break;
      case FormulaOperation::choose:
        values.push_back(of(step.a) != 0 ? of(step.b) : of(step.c));
        break;
      case FormulaOperation::less:
        values.push_back(of(step.a) < of(step.b));
        break;
      case FormulaOperation::multiply:
        values.push_back(of(step.a) * of(step.b));
        break;
      case FormulaOperation::add:
        values.push_back(of(step.a) + of(step.b));
        break;
      default:
        FAIL("a step that these formulas do not have");
    }
  }
  return values[static_cast<std::size_t>(formula.result)];
}

}  // namespace

TEST_CASE("an expression becomes the steps that it takes, each once", "[op]") {
  const Formula* const cube = formula_of<Cube>();
  REQUIRE(cube != nullptr);
  CHECK(cube == formula_of<Cube>());
  REQUIRE(cube->steps.size() == 3);
  CHECK(cube->steps[0].operation == FormulaOperation::argument);
  CHECK(cube->steps[1].operation == FormulaOperation::multiply);
  CHECK(value_of(*cube, {3}) == 27);
  CHECK(!cube->rounds_once);
  CHECK(formula_of<Square>()->rounds_once);
  CHECK(formula_of<TanhGrad>()->shapes == Formula::Shapes::same);
  CHECK(formula_of<Square>()->shapes == Formula::Shapes::broadcast);
}

TEST_CASE("each way through an expression is a choice of its formula", "[op]") {
  const Formula* const clipped = formula_of<Clipped>();
  REQUIRE(clipped != nullptr);
  CHECK(value_of(*clipped, {3}) == 1);
  CHECK(value_of(*clipped, {-3}) == -1);
  CHECK(value_of(*clipped, {0.5}) == 0.5);
  CHECK(clipped->holds_for(DType::float16));
  CHECK(clipped->holds_for(DType::int32));
  CHECK(!clipped->holds_for(DType::int8));  // computed in int where the expression does not say otherwise
  CHECK(formula_of<Relu>()->holds_for(DType::int8));
}

TEST_CASE("a derivative has the formula of its expression on dual numbers", "[op]") {
  const Formula* const slope = formula_of<Derivative<Cube, 0>>();
  REQUIRE(slope != nullptr);
  CHECK(slope->num_arguments == 2);
  CHECK(value_of(*slope, {2, 10}) == 120);
  CHECK(Derivative<Cube, 0>::chains);
  const Formula* const curvature = formula_of<Derivative<Derivative<Cube, 0>, 0>>();
  REQUIRE(curvature != nullptr);
  CHECK(value_of(*curvature, {2, 10, 1}) == 120);
}

TEST_CASE("a predicate's formula gives a truth", "[op]") {
  const Formula* const inside = formula_of<IsInside>();
  REQUIRE(inside != nullptr);
  CHECK(inside->gives_truth);
  CHECK(value_of(*inside, {0.5}) == 1);
  CHECK(value_of(*inside, {1.5}) == 0);
  CHECK(value_of(*inside, {-1}) == 0);
}

TEST_CASE("a loop whose end an argument decides has no formula", "[op]") { CHECK(formula_of<Halvings>() == nullptr); }

TEST_CASE("symbols outside of a recording are nobody's", "[op]") {
  const Symbol x(2.0), y;
  CHECK_FALSE(x < y);
  static_cast<void>(x + y);
}

namespace {

/// Has a constant that a recorded number cannot hold.
struct AddsMuch : ElementwiseOp<"AddsMuch", FloatTypes> {
  template <class T>
  static T apply(T x) {
    return x + T(std::uint64_t{1} << 63);
  }
};

}  // namespace

TEST_CASE("an unsigned constant beyond what is signed has no formula", "[op]") {
  CHECK(formula_of<AddsMuch>() == nullptr);
}
