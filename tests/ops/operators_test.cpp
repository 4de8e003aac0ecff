#include <dflow/ops/operators.hpp>

#include <dflow/graph/graph.hpp>

#include "catch.hpp"

#include <complex>
#include <string>

namespace df = dflow;

namespace {

template <class A, class B>
concept CanAdd = requires(A a, B b) { a + b; };
template <class A, class B>
concept CanTakeRemainder = requires(A a, B b) { a % b; };
template <class A, class B>
concept CanCompare = requires(A a, B b) { a < b; };
template <class A>
concept CanNegate = requires(A a) { -a; };
template <class A, class B>
concept CanJoin = requires(A a, B b) { a&& b; };

const df::AnyTensor& constant_on(const df::AnyOutput& y, int input, const df::Graph& graph) {
  const df::Node& source = graph.node(y.node().inputs[static_cast<std::size_t>(input)].node);
  REQUIRE(source.op->name == "Const");
  return source.attrs_as<df::Const>().value;
}

}  // namespace

TEST_CASE("operators between edges build the ops they stand for") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {2, 3});
  const auto b = df::placeholder<float>(graph, {3});
  CHECK((a + b).node().op->name == "Add");
  CHECK((a - b).node().op->name == "Sub");
  CHECK((a * b).node().op->name == "Mul");
  CHECK((a / b).node().op->name == "Div");
  CHECK((a % b).node().op->name == "Mod");
  CHECK((a < b).node().op->name == "Less");
  CHECK((a <= b).node().op->name == "LessEqual");
  CHECK((a > b).node().op->name == "Greater");
  CHECK((a >= b).node().op->name == "GreaterEqual");
  CHECK((-a).node().op->name == "Neg");
  CHECK((a + b).shape() == df::PartialShape{2, 3});
  CHECK((a < b).dtype() == df::DType::boolean);
  CHECK((a < b && b < a).node().op->name == "LogicalAnd");
  CHECK((a < b || b < a).node().op->name == "LogicalOr");
  CHECK((!(a < b)).node().op->name == "LogicalNot");
}

TEST_CASE("a literal becomes a constant of the edge's element type, on either side") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2});
  const auto y = x * 2.0f + 1.0f;
  CHECK(constant_on(y, 1, graph).as<float>().scalar() == 1.0f);
  const auto z = 1.0f - x;
  CHECK(constant_on(z, 0, graph).as<float>().scalar() == 1.0f);
  CHECK(z.node().op->name == "Sub");
  CHECK(constant_on(x * 0.5, 1, graph).as<float>().scalar() == 0.5f);
  CHECK(constant_on(2 / x, 0, graph).as<float>().scalar() == 2.0f);

  const auto i = df::placeholder<std::int64_t>(graph, {});
  CHECK(constant_on(i + 1, 1, graph).as<std::int64_t>().scalar() == 1);
  CHECK(constant_on(10 > i, 0, graph).as<std::int64_t>().scalar() == 10);

  const auto h = df::placeholder<df::Half>(graph, {});
  CHECK(static_cast<float>(constant_on(h * 1.5f, 1, graph).as<df::Half>().scalar()) == 1.5f);
  const auto c = df::placeholder<std::complex<float>>(graph, {});
  CHECK(constant_on(c * 2, 1, graph).as<std::complex<float>>().scalar() == std::complex<float>(2));
  const auto t = df::placeholder<bool>(graph, {});
  CHECK(constant_on(t && true, 1, graph).as<bool>().scalar());
}

TEST_CASE("functions take a literal where the operators do") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2});
  const auto i = df::placeholder<std::int64_t>(graph, {});
  CHECK(constant_on(df::equal(i % 2, 0), 1, graph).as<std::int64_t>().scalar() == 0);
  CHECK(constant_on(df::not_equal(x, 2), 1, graph).as<float>().scalar() == 2.0f);
  CHECK(constant_on(df::maximum(x, 0.5), 1, graph).as<float>().scalar() == 0.5f);
  CHECK(constant_on(df::minimum(i, 3), 1, graph).as<std::int64_t>().scalar() == 3);
  CHECK(constant_on(df::pow(x, 2), 1, graph).as<float>().scalar() == 2.0f);
  CHECK(constant_on(df::pow(2.0f, x), 0, graph).as<float>().scalar() == 2.0f);
  const auto text = df::placeholder<std::string>(graph, {});
  CHECK(constant_on(df::equal(text, std::string("yes")), 1, graph).as<std::string>().scalar() == "yes");
  const auto named = df::maximum(x, 0, {.name = "relu"});
  CHECK(named.node().name == "relu");
  CHECK(constant_on(named, 1, graph).as<float>().scalar() == 0.0f);
}

TEST_CASE("an erased edge has its element type by name") {
  df::Graph graph;
  const df::AnyOutput erased = df::placeholder<float>(graph, {2});
  CHECK(erased.as<float>() == erased);
  CHECK_THROWS_WITH(erased.as<double>(), Catch::Matchers::Contains("float"));
}

TEST_CASE("what does not belong together does not compile") {
  STATIC_REQUIRE(CanAdd<df::Output<float>, df::Output<float>>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<float>, df::Output<double>>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<float>, df::Output<int>>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<float>, std::string>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<int>, float>);
  STATIC_REQUIRE_FALSE(CanAdd<double, df::Output<int>>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<bool>, df::Output<bool>>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<float>, bool>);
  STATIC_REQUIRE_FALSE(CanAdd<df::Output<std::string>, df::Output<std::string>>);
  STATIC_REQUIRE_FALSE(CanTakeRemainder<df::Output<std::complex<float>>, df::Output<std::complex<float>>>);
  STATIC_REQUIRE_FALSE(CanCompare<df::Output<std::complex<float>>, df::Output<std::complex<float>>>);
  STATIC_REQUIRE_FALSE(CanNegate<df::Output<std::uint32_t>>);
  STATIC_REQUIRE_FALSE(CanNegate<df::Output<bool>>);
  STATIC_REQUIRE_FALSE(CanJoin<df::Output<float>, df::Output<float>>);
  STATIC_REQUIRE_FALSE(CanJoin<df::Output<bool>, int>);
}

TEST_CASE("nodes know the line their operator stands on") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2});
  const auto y = df::placeholder<float>(graph, {2});
  const auto sum = x + y;
  CHECK(sum.node().where.line() == __LINE__ - 1);
  const auto scaled = 2.0f * x;
  CHECK(scaled.node().where.line() >= __LINE__ - 2);
  CHECK(std::string(scaled.node().where.file_name()).find("operators_test") != std::string::npos);
}

TEST_CASE("shapes that do not broadcast are rejected with the op and the line") {
  df::Graph graph;
  const auto a = df::placeholder<float>(graph, {2, 3});
  const auto b = df::placeholder<float>(graph, {2});
  try {
    a + b;
    FAIL("no error");
  } catch (const df::Error& error) {
    CHECK(error.status().code() == df::Code::invalid_argument);
    CHECK(std::string(error.what()).find("Add") != std::string::npos);
    CHECK(std::string(error.what()).find("operators_test.cpp") != std::string::npos);
  }
}
