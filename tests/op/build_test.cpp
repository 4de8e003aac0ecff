#include <dflow/op/build.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <concepts>
#include <string>
#include <tuple>

using namespace dflow;

namespace {

/// first, first + 1, ...
struct Ramp : Op<"Ramp", TypeList<float, std::int32_t>> {
  struct Attrs {
    std::int64_t size = 1;
    std::int64_t first = 0;
  };
  using Inputs = In<>;
  static PartialShape infer(const Attrs& attrs) { return {attrs.size}; }
};

struct Mark : Op<"Mark"> {
  using Inputs = In<>;
  using Outputs = Out<>;
  static void infer(InferContext&) {}
};

struct TwoTypes : Op<"TwoTypes", FloatTypes, TypeList<std::int32_t, bool>> {
  using Inputs = In<>;
  using Outputs = Out<U, T, double>;
  static void infer(InferContext& context) {
    for (int i = 0; i < 3; ++i) context.set_output(i, Shape{});
  }
};

struct Same : ElementwiseOp<"Same", TypeList<float, std::int32_t>> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x;
  }
};

/// Its own shape function refuses the input, without a context: `x.merged_with`.
struct OfThree : Op<"OfThree", FloatTypes> {
  static PartialShape infer(const Attrs&, const PartialShape& x) { return x.merged_with({dynamic, 3}); }
};

static_assert(SourceOf<Ramp, float> && SourceOf<Mark> && SourceOf<TwoTypes, double, bool>);
static_assert(!SourceOf<Ramp, double> && !SourceOf<Ramp> && !SourceOf<Ramp, float, float> && !SourceOf<Mark, float>);
static_assert(!SourceOf<TwoTypes, bool, double> && !SourceOf<Same, float>);

}  // namespace

template <class T>
struct dflow::Kernel<Ramp, Cpu, T> {
  Ramp::Attrs attrs;
  void operator()(KernelContext&, Tensor<T>& y) const {
    for (std::int64_t i = 0; i < y.num_elements(); ++i) y(i) = static_cast<T>(attrs.first + i);
  }
};

TEST_CASE("an op without inputs is applied to a graph and its element types", "[build]") {
  Graph graph;
  const auto y = apply<Ramp, float>(graph, {.size = 3, .first = 2}, {.name = "y"});
  const auto n = apply<Ramp, std::int32_t>(graph);
  static_assert(std::same_as<decltype(y), const Output<float>> &&
                std::same_as<decltype(n), const Output<std::int32_t>>);
  CHECK(y.name() == "y");
  CHECK(y.shape() == PartialShape{3});
  CHECK(std::string(n.node().where.file_name()) == __FILE__);
  Session session(graph, {.ops = standard_ops + ops<Ramp>});
  const auto [reals, integers] = session.run(y * 2.0f, n);
  CHECK(reals(2) == 8);
  CHECK(integers(0) == 0);
}

TEST_CASE("what an op without inputs gives is an operation, an output or a tuple", "[build]") {
  Graph graph;
  const Operation mark = apply<Mark>(graph, {}, {.name = "mark"});
  CHECK(mark.name() == "mark");
  const std::tuple<Output<bool>, Output<float>, Output<double>> outputs = apply<TwoTypes, float, bool>(graph);
  CHECK(std::get<0>(outputs).dtype() == DType::boolean);
  CHECK(std::get<1>(outputs).dtype() == DType::float32);
  CHECK(std::get<2>(outputs).name() == "TwoTypes:2");
}

TEST_CASE("a handle that an op without inputs gives is an edge without an element type", "[build]") {
  Graph graph;
  const AnyOutput gradients = apply<ConditionalAccumulator, float>(graph, {.shape = {2}, .shared_name = "sums"});
  CHECK(gradients.dtype() == DType::resource);
  const AnyOutput barrier = apply<TokenBarrier>(graph, {.replicas = 2}, {.name = "meet"});
  CHECK(barrier.name() == "meet");
}

TEST_CASE("a node just built is an expression, that of its first output", "[build]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  const Expr column = build<ExpandDims>({x, constant(graph, std::int32_t{1})});
  const Expr same(build<ExpandDims>({x, constant(graph, std::int32_t{1})}));
  CHECK((column * 2.0).shape() == PartialShape{2, 1});
  CHECK(same.shape() == column.shape());
}

TEST_CASE("what a shape function refuses by itself names op, input shapes and line", "[build]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 5});
  const Status status = status_of([&] { return apply<OfThree>(x, {}, {.name = "three"}); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "shapes [2,5] and [?,3] do not agree (input shapes: [2,5])");
  CHECK(status.op() == "OfThree");
  CHECK(std::string(status.where().file_name()) == __FILE__);
}
