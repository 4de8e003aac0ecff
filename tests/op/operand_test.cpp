#include <dflow/op/operand.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// a + b * c: an op of a user, without a builder of its own.
struct OperandSum : df::ElementwiseOp<"OperandSum", df::TypeList<float, std::int32_t>> {
  template <class T>
  DFLOW_FN static T apply(T a, T b, T c) {
    return a + b * c;
  }
};

template <class A, class B>
concept CanBeEqual = requires(A a, B b) { df::equal(a, b); };
template <class A, class B>
concept CanGather = requires(A a, B b) { df::gather(a, b); };
template <class A, class B>
concept CanMultiply = requires(A a, B b) { df::matmul(a, b); };
template <class C, class A, class B>
concept CanSelect = requires(C c, A a, B b) { df::select(c, a, b); };
template <class V>
concept CanAssign = requires(df::Variable<float> w, V v) { w.assign(v); };

template <df::Element T>
std::vector<T> elements_of(const df::Tensor<T>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

const df::AnyTensor& operand_constant(const df::AnyOutput& y, std::size_t input, const df::Graph& graph) {
  const df::Node& source = graph.node(y.node().inputs[input].node);
  REQUIRE(source.op->name == "Const");
  return source.attrs_as<df::Const>().value;
}

}  // namespace

TEST_CASE("a text, a number or a tensor stands where a builder takes an edge", "[operand]") {
  df::Graph graph;
  const auto x = df::constant<float>(graph, {{1, 2}, {3, 4}});
  const auto texts = df::constant<std::string>(graph, {"<=50K", ">50K"});
  const auto n = df::constant(graph, std::int32_t{3});
  const auto large = df::constant<bool>(graph, {{false, true}, {true, false}});
  const df::Tensor<float> m({2, 2}, {0, 1, 1, 0});
  df::Session session(graph);

  CHECK(elements_of(session.run(df::equal(texts, ">50K"))) == std::vector<bool>{false, true});
  CHECK(elements_of(session.run(df::not_equal(std::string(">50K"), texts))) == std::vector<bool>{true, false});
  CHECK(elements_of(session.run(df::gather(x, 1))) == std::vector<float>{3, 4});
  CHECK(elements_of(session.run(df::gather(m, n - 2))) == std::vector<float>{1, 0});
  CHECK(elements_of(session.run(df::gather(x, std::size_t{1}))) == std::vector<float>{3, 4});
  CHECK(elements_of(session.run(df::gather(x, 1u))) == std::vector<float>{3, 4});
  CHECK(elements_of(session.run(df::embedding_lookup(x, std::size_t{1}))) == std::vector<float>{3, 4});
  CHECK(elements_of(session.run(df::range(0, n, 1))) == std::vector<std::int32_t>{0, 1, 2});
  CHECK(elements_of(session.run(df::select(large, x, 0.0f))) == std::vector<float>{0, 2, 3, 0});
  CHECK(elements_of(session.run(df::select(large, 0, x))) == std::vector<float>{1, 0, 0, 4});
  CHECK(elements_of(session.run(df::select(true, x, m))) == std::vector<float>{1, 2, 3, 4});
  CHECK(elements_of(session.run(df::matmul(x, m))) == std::vector<float>{2, 1, 4, 3});
  CHECK(elements_of(session.run(df::matmul(m, x, {.transpose_b = true}))) == std::vector<float>{2, 4, 1, 3});
  CHECK(elements_of(session.run(x * m)) == std::vector<float>{0, 2, 3, 0});
  CHECK(elements_of(session.run(m - x)) == std::vector<float>{-1, -1, -2, -4});
  CHECK(elements_of(session.run(df::bias_add(x, df::Tensor<float>({2}, {10, 20})))) ==
        std::vector<float>{11, 22, 13, 24});
  CHECK(elements_of(session.run(df::logical_and(large, true))) == std::vector<bool>{false, true, true, false});
  CHECK(elements_of(session.run(df::expand_dims(n, 0))) == std::vector<std::int32_t>{3});
  CHECK(elements_of(session.run(df::one_hot(n, 4, 2.5f, -1.0f))) == std::vector<float>{-1, -1, -1, 2.5f});
  CHECK(elements_of(session.run(df::substr(texts, 0, n - 1))) == std::vector<std::string>{"<=", ">5"});
  CHECK(elements_of(session.run(df::string_split(texts, "5").values)) ==
        std::vector<std::string>{"<=", "0K", ">", "0K"});
  CHECK(elements_of(session.run(df::softmax_cross_entropy(x * 0.0f, m))) ==
        elements_of(session.run(df::sparse_softmax_cross_entropy(x * 0.0f, df::Tensor<std::int64_t>({2}, {1, 0})))));
  CHECK(session.run(df::accuracy(x, df::Tensor<std::int32_t>({2}, {1, 0}))).scalar() == 0.5f);
}

TEST_CASE("an op without a builder takes tensors and literals as well", "[operand]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2});
  df::Session session(graph, {.ops = df::standard_ops + df::ops<OperandSum>});
  const auto y = df::apply<OperandSum>(1, x, df::Tensor<float>({2}, {10, 20}));
  static_assert(std::same_as<decltype(y), const df::Output<float>>);
  CHECK(elements_of(session.run({{x, df::Tensor<float>({2}, {1, 2})}}, y)) == std::vector<float>{11, 41});
}

TEST_CASE("what the edges do not decide is the type of the first tensor, then that of the first literal", "[operand]") {
  df::Graph graph;
  const auto condition = df::placeholder<bool>(graph, {2});
  const auto by_tensor = df::select(condition, 1, df::Tensor<double>({2}, {3, 4}));
  static_assert(std::same_as<decltype(by_tensor), const df::Output<double>>);
  const auto by_literal = df::select(condition, 1.5f, 2);
  static_assert(std::same_as<decltype(by_literal), const df::Output<float>>);
  static_assert(std::same_as<decltype(df::select(condition, 1u, 2)), df::Output<std::uint32_t>>);
  df::Session session(graph);
  const df::Tensor<bool> no_yes({2}, {false, true});
  CHECK(elements_of(session.run({{condition, no_yes}}, by_tensor)) == std::vector<double>{3, 1});
  CHECK(elements_of(session.run({{condition, no_yes}}, by_literal)) == std::vector<float>{2, 1.5f});
  static_assert(std::same_as<decltype(df::select(condition, "yes", "no")), df::Output<std::string>>);
  const auto params = df::placeholder<float>(graph, {5});
  CHECK(operand_constant(df::gather(params, 1), 1, graph).dtype() == df::DType::int32);
  CHECK(operand_constant(df::gather(params, 1LL), 1, graph).dtype() == df::DType::int64);
  CHECK(operand_constant(df::gather(params, std::int64_t{1}), 1, graph).dtype() == df::DType::int64);
}

TEST_CASE("a scalar that is selected stands for all elements, of known shape or not", "[operand]") {
  df::Graph graph;
  const auto open = df::placeholder<float>(graph);
  const auto rows = df::placeholder<float>(graph, {df::dynamic, 2});
  const auto scalar = df::placeholder<float>(graph, {});
  const auto chosen = df::select(open > 1.0f, open, 0.0f);
  const auto by_row = df::select(df::equal(df::gather(df::transpose(rows), 0), 1.0f), scalar, rows);
  const auto dscalar = df::gradients(df::reduce_sum(by_row), {scalar});
  df::Session session(graph);
  CHECK(elements_of(session.run({{open, df::Tensor<float>({2, 1}, {1, 2})}}, chosen)) == std::vector<float>{0, 2});
  CHECK(session.run({{open, 3.0f}}, chosen).scalar() == 3);
  const df::Tensor<float> given({3, 2}, {1, 2, 3, 4, 1, 6});
  CHECK(elements_of(session.run({{rows, given}, {scalar, 7.0f}}, by_row)) == std::vector<float>{7, 7, 3, 4, 7, 7});
  CHECK(session.run({{rows, given}, {scalar, 7.0f}}, dscalar[0]).scalar() == 4);
}

TEST_CASE("objects of a graph take tensors and literals", "[operand]") {
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>::zeros({3}), {.name = "w"});
  df::Variable<std::string> name(graph, "none", {.name = "name"});
  df::MutableHashTable<std::string, std::int64_t> table(graph);
  df::FifoQueue<float, std::int32_t> queue(graph);
  df::StagingArea<float> area(graph);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));

  session.run(w.assign(df::Tensor<float>({3}, {1, 2, 3})));
  session.run(w.assign_add(df::Tensor<float>({3}, {1, 1, 1})));
  session.run(w.scatter_add(0, 4));
  session.run(w.scatter_add(std::size_t{0}, 6));
  session.run(w.scatter_update(df::Tensor<std::int32_t>({1}, {2}), df::Tensor<float>({1}, {-1})));
  CHECK(elements_of(session.run(w.read())) == std::vector<float>{12, 3, -1});
  session.run(name.assign("x"));
  CHECK(session.run(name.read()).scalar() == "x");

  session.run(table.insert(df::Tensor<std::string>({2}, {"a", "b"}), df::Tensor<std::int64_t>({2}, {1, 2})));
  CHECK(session.run(table.find("b", -1)).scalar() == 2);
  CHECK(session.run(table.find("c", -1)).scalar() == -1);

  session.run(queue.enqueue(2.5, 7));
  const auto [real, whole] = queue.dequeue();
  const auto [reals, wholes] = session.run(real, whole);
  CHECK(reals.scalar() == 2.5f);
  CHECK(wholes.scalar() == 7);
  session.run(area.stage(3));
  CHECK(session.run(area.unstage()).scalar() == 3);

  const df::TensorArray<float> array(graph, 2);
  CHECK(elements_of(session.run(array.write(0, 1).write(1, w.read() * 0.0f + 4.0f).size())) ==
        std::vector<std::int32_t>{2});
  CHECK(session.run(array.write(0, 5).write(1, 6).read(1)).scalar() == 6);
}

TEST_CASE("a value that cannot stand for the edge does not compile", "[operand]") {
  STATIC_REQUIRE(CanBeEqual<df::Output<std::string>, const char*>);
  STATIC_REQUIRE(CanBeEqual<df::Variable<float>, double>);
  STATIC_REQUIRE(CanBeEqual<df::Output<float>, unsigned long long>);
  STATIC_REQUIRE(CanBeEqual<df::Output<double>, long double>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<float>, df::Output<int>>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<float>, df::Tensor<int>>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<int>, double>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<bool>, int>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<float>, const char*>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<std::string>, int>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<std::string>, char>);
  STATIC_REQUIRE_FALSE(CanBeEqual<df::Output<float>, df::AnyOutput>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, float>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, bool>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, df::Tensor<std::uint64_t>>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, df::Output<std::uint64_t>>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, df::Tensor<float>>);
  STATIC_REQUIRE_FALSE(CanGather<df::Output<float>, std::vector<int>>);
  STATIC_REQUIRE_FALSE(df::EdgeTensorNumberOrText<std::vector<int>>);
  STATIC_REQUIRE(df::EdgeTensorNumberOrText<df::Variable<float>>);
  STATIC_REQUIRE(df::EdgeTensorNumberOrText<const char*>);
  STATIC_REQUIRE_FALSE(CanMultiply<df::Tensor<float>, df::Tensor<float>>);
  STATIC_REQUIRE_FALSE(CanMultiply<df::Output<bool>, df::Output<bool>>);
  STATIC_REQUIRE_FALSE(CanSelect<df::Output<bool>, int, float>);
  STATIC_REQUIRE_FALSE(CanSelect<df::Output<float>, float, float>);
  STATIC_REQUIRE(CanAssign<df::Tensor<float>>);
  STATIC_REQUIRE(CanAssign<int>);
  STATIC_REQUIRE_FALSE(CanAssign<df::Tensor<double>>);
  STATIC_REQUIRE_FALSE(CanAssign<bool>);
}

TEST_CASE("a number that the element type cannot hold is an error with its line", "[operand]") {
  df::Graph graph;
  const auto bytes = df::placeholder<std::uint8_t>(graph, {2});
  const auto i = df::placeholder<std::int32_t>(graph, {2});
  const df::Status status = status_of([&] { return df::equal(bytes, 300); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.message() == "the number 300 is out of the range of uint8");
  CHECK(status.where().line() == __LINE__ - 3);
  CHECK(std::string(status.where().file_name()) == __FILE__);
  CHECK(mentions(status_of([&] { return bytes + -1; }), "the number -1 is"));
  CHECK(mentions(status_of([&] { return i + 18446744073709551615u; }), "the number 18446744073709551615 is"));
  CHECK(status_of([&] { return i < 3'000'000'000; }).code() == df::Code::invalid_argument);
  CHECK(mentions(status_of([&] { return df::gather(i, ~std::uint64_t{0}); }), "is out of the range of int64"));
  const auto f = df::placeholder<float>(graph, {2});
  const auto h = df::placeholder<df::Half>(graph, {2});
  const auto c = df::placeholder<std::complex<float>>(graph, {2});
  CHECK(mentions(status_of([&] { return f * 1e300; }), "the number 1e+300 is out of the range of float"));
  CHECK(mentions(status_of([&] { return h - 65'536; }), "the number 65536 is out of the range of half"));
  CHECK(mentions(status_of([&] { return c + 1e39; }), "out of the range of complex64"));
  CHECK_NOTHROW(f < std::numeric_limits<double>::infinity());
  CHECK_NOTHROW(f * 3e38);
  CHECK_NOTHROW(f + 1e-300);
  CHECK(operand_constant(df::equal(bytes, 255), 1, graph).as<std::uint8_t>().scalar() == 255);
}

TEST_CASE("a constant beside an edge has the line of its builder, and one beside no edge is the builder's error",
          "[operand]") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2});
  const auto y = df::maximum(x, df::Tensor<float>({2}, {0, 1}), {.name = "y"});
  CHECK(graph.node(y.node().inputs[1].node).where.line() == __LINE__ - 1);
  CHECK(y.name() == "y");
  const df::Status status = status_of([] { return df::maximum(df::Output<float>(), 1.0f); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.op() == "Maximum");
  CHECK(status_of([&] { return df::maximum(x, df::Tensor<float>()); }).op() == "Const");
}

TEST_CASE("an edge of a graph that is gone is named as such beside one that is empty", "[operand]") {
  df::AnyOutput gone;
  {
    df::Graph graph;
    gone = df::placeholder<float>(graph, {2});
  }
  for (const std::vector<df::AnyOutput>& inputs : {std::vector{gone, df::AnyOutput()}, {df::AnyOutput(), gone}}) {
    const df::Status status = status_of([&] { return df::build<df::Add>(inputs); });
    CHECK(status.message() == "Add: an input belongs to a graph that is gone");
  }
  CHECK(status_of([] {
          return df::build<df::Add>({df::AnyOutput(), df::AnyOutput()});
        }).message() == "Add: all inputs are empty");
}
