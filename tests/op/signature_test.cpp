#include <dflow/op/signature.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/graph/graph_def_json.hpp>
#include <dflow/graph/op_args.hpp>
#include <dflow/op/import.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <stdexcept>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// Adds `offset` to every scalar of both lists. Returns the second list, with element types that an attribute lists,
/// and the number of scalars of the first list that were not zero.
struct TwoLists : Op<"TwoLists", NumberTypes> {
  struct Attrs {
    std::int64_t N = 1;
    std::vector<DType> Tcomponents = {};
    FunctionName called{"nothing"};
  };
  using Inputs = In<List<T, "N">, T, TypedList<"Tcomponents">>;
  using Outputs = Out<TypedList<"Tcomponents">, std::int64_t, List<T, "N">>;
  static void infer(InferContext& context) {
    for (int i = 0; i < context.num_inputs(); ++i) static_cast<void>(context.with_rank(i, 0));
    for (int o = 0; o < context.num_outputs(); ++o) context.set_output(o, Shape{});
  }
};

/// A list of known length and an open one.
struct OpenAndCounted : Op<"OpenAndCounted", FloatTypes, IntTypes> {
  struct Attrs {
    std::int64_t count = 2;
  };
  using Inputs = In<List<T>, bool, List<U, "count">>;
  using Outputs = Out<>;
  static void infer(InferContext&) {}
};

/// An op that passes its input through, of any element types.
struct PassThrough : Op<"PassThrough"> {
  struct Attrs {
    std::vector<DType> Tin;
  };
  using Inputs = In<AnyList>;
  using Outputs = Out<TypedList<"Tin">>;
  static void infer(InferContext&) {}
};

enum class Throws { nothing, error, runtime_error, number };
[[maybe_unused]] std::array<std::string_view, 4> attr_enum_names(Throws) {
  return {"nothing", "error", "runtime_error", "number"};
}

/// An op with a shape function that throws as its attribute says.
struct Thrower : Op<"Thrower", FloatTypes> {
  struct Attrs {
    Throws what = Throws::nothing;
  };
  static PartialShape infer(const Attrs& attrs, PartialShape x) {
    if (attrs.what == Throws::error) throw Error(Status::out_of_range("too far"));
    if (attrs.what == Throws::runtime_error) throw std::runtime_error("a word of its own");
    if (attrs.what == Throws::number) throw 42;
    return x;
  }
};

constexpr auto signature_ops = standard_ops + ops<TwoLists, OpenAndCounted, PassThrough, Thrower>;

struct Scalars {
  Graph graph;
  Output<float> a = constant(graph, 1.5f), b = constant(graph, 0.0f);
  Output<std::int32_t> i = constant(graph, 7);
  Output<bool> flag = constant(graph, true);

  NodeId two_lists() {
    const AnyOutput inputs[] = {a, b, constant(graph, 2.0f), i, a};
    return build<TwoLists>(std::span(inputs), {.N = 2, .Tcomponents = {DType::int32, DType::float32}})
        .operation()
        .node_id();
  }
};

}  // namespace

template <class T>
struct dflow::Kernel<TwoLists, Cpu, T> {
  void operator()(KernelContext& context) const {
    const Node& node = context.node();
    const ArgRange list = input_range(node, 0), typed = input_range(node, 2), copies = output_range(node, 2);
    const T offset = context.input(static_cast<int>(list.size)).template as<T>().scalar();
    std::int64_t num_not_zero = 0;
    for (std::size_t k = 0; k < list.size; ++k) {
      const T value = context.input(static_cast<int>(list.first + k)).template as<T>().scalar();
      num_not_zero += value != T(0) ? 1 : 0;
      context.allocate_output<T>(static_cast<int>(copies.first + k), {})() = value + offset;
    }
    for (std::size_t k = 0; k < typed.size; ++k) {
      context.set_output(static_cast<int>(k), context.input(static_cast<int>(typed.first + k)));
    }
    context.allocate_output<std::int64_t>(static_cast<int>(typed.size), {})() = num_not_zero;
  }
};

template <class T, class U>
struct dflow::Kernel<OpenAndCounted, Cpu, T, U> {
  void operator()(KernelContext&) const {}
};

template <>
struct dflow::Kernel<PassThrough, Cpu> {
  void operator()(KernelContext& context) const {
    for (int i = 0; i < context.num_inputs(); ++i) context.set_output(i, context.input(i));
  }
};

template <class T>
struct dflow::Kernel<Thrower, Cpu, T> {
  void operator()(KernelContext&, const Tensor<T>& x, Tensor<T>& y) const { y.data()[0] = x.data()[0]; }
};

TEST_CASE("an op takes two lists and gives outputs of the element types that an attribute lists", "[signature]") {
  Scalars in;
  const Node& node = in.graph.node(in.two_lists());
  REQUIRE(node.outputs.size() == 5);
  CHECK(node.outputs[0].dtype == DType::int32);
  CHECK(node.outputs[1].dtype == DType::float32);
  CHECK(node.outputs[2].dtype == DType::int64);
  CHECK(node.outputs[3].dtype == DType::float32);
  CHECK(node.types[0] == DType::float32);
  CHECK(input_range(node, 0) == ArgRange{0, 2});
  CHECK(input_range(node, 1) == ArgRange{2, 1});
  CHECK(input_range(node, 2) == ArgRange{3, 2});
  CHECK(output_range(node, 1) == ArgRange{2, 1});
  CHECK(output_range(node, 2) == ArgRange{3, 2});

  const auto edge = [&](int i) { return AnyOutput(in.graph.store(), {in.graph.find("TwoLists").node_id(), i}); };
  Session session(in.graph, {.ops = signature_ops});
  CHECK(session.run(Output<std::int32_t>(edge(0))).scalar() == 7);
  CHECK(session.run(Output<float>(edge(1))).scalar() == 1.5f);
  CHECK(session.run(Output<std::int64_t>(edge(2))).scalar() == 1);
  CHECK(session.run(Output<float>(edge(3))).scalar() == 3.5f);
  CHECK(session.run(Output<float>(edge(4))).scalar() == 2.0f);
}

TEST_CASE("lists of the wrong length or element types are refused", "[signature]") {
  Scalars in;
  const auto make = [&](std::vector<AnyOutput> inputs, TwoLists::Attrs attrs) {
    return status_of([&] { return build<TwoLists>(*in.graph.store(), inputs, attrs).output(0); });
  };
  CHECK(mentions(make({in.a, in.b, in.a}, {.N = 3}), "takes 4 inputs, got 3"));
  CHECK(mentions(make({in.a, in.b, in.a}, {.N = 1}), "takes 2 inputs, got 3"));
  CHECK(mentions(make({in.a, in.b}, {.N = -1}), "attribute 'N' is -1"));
  CHECK(
      mentions(make({in.a, in.b, in.a}, {.N = 1, .Tcomponents = {DType::int32}}), "input 2 must be int32, got float"));
  CHECK(mentions(make({in.a, in.i, in.a}, {.N = 1, .Tcomponents = {DType::float32}}),
                 "input 1 is int32 where T = float"));
  CHECK(mentions(make({in.a, in.b, in.a}, {.N = 1, .Tcomponents = {DType::invalid}}), "no element type"));
  CHECK(in.graph.num_nodes() == 4);
}

TEST_CASE("an open list takes what the others leave", "[signature]") {
  Scalars in;
  const auto make = [&](std::vector<AnyOutput> inputs) {
    return build<OpenAndCounted>(*in.graph.store(), inputs).operation().node_id();
  };
  const Node& node = in.graph.node(make({in.a, in.b, in.a, in.flag, in.i, in.i}));
  CHECK(input_range(node, 0) == ArgRange{0, 3});
  CHECK(input_range(node, 1) == ArgRange{3, 1});
  CHECK(input_range(node, 2) == ArgRange{4, 2});
  CHECK(node.types[1] == DType::int32);
  CHECK(mentions(status_of([&] { return make({in.flag, in.i}); }), "takes at least 3 inputs, got 2"));
  CHECK(mentions(status_of([&] { return make({in.flag, in.i, in.i}); }), "T is not decided"));
  const AnyOutput mixed[] = {in.a, in.i, in.flag};
  const auto pass = build<PassThrough>(std::span(mixed), {.Tin = {DType::float32, DType::int32, DType::boolean}});
  Session session(in.graph, {.ops = signature_ops});
  CHECK(session.run(Output<std::int32_t>(pass.output(1))).scalar() == 7);
  CHECK(session.run(Output<bool>(pass.output(2))).scalar());
}

TEST_CASE("lists and functions survive a GraphDef", "[signature]") {
  Scalars in;
  in.two_lists();
  const AnyOutput inputs[] = {in.a, in.b};
  build<TwoLists>(std::span(inputs), {.called = {"body"}}, {.name = "calls"});
  const GraphDef def = to_graph_def(in.graph);
  const OpTable table = signature_ops;
  std::vector<GraphDef> written{from_binary(to_binary(def))};
  written.push_back(from_json(to_json(def)));
  for (const GraphDef& saved : written) {
    CHECK(saved == def);
    const Graph back = import_graph(saved, table);
    const Node& node = back.find("TwoLists").node();
    CHECK(node.outputs.size() == 5);
    CHECK(node.outputs[0].dtype == DType::int32);
    CHECK(back.find("calls").node().attrs_as<TwoLists>().called.name == "body");
  }
  GraphDef damaged = def;
  for (NodeDef& node : damaged.nodes) {
    for (auto& [name, value] : node.attrs) {
      if (name == "Tcomponents") value = std::vector<DType>(1000, DType::int32);
    }
  }
  CHECK(mentions(status_of([&] { return import_graph(damaged, table).num_nodes(); }), "takes 1003 inputs, got 5"));
  CHECK(mentions(
      status_of([&] {
        return import_graph(damaged, table, {.prefix = {}, .input_map = {}, .max_list_outputs = 100}).num_nodes();
      }),
      "more than 100 outputs"));
}

TEST_CASE("whatever a shape function throws is an Error with op, node and line", "[signature]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const std::vector<std::pair<Throws, Code>> cases{
      {Throws::error, Code::out_of_range}, {Throws::runtime_error, Code::internal}, {Throws::number, Code::unknown}};
  for (const auto& [what, code] : cases) {
    const auto line = __LINE__ + 1;
    const Status status = status_of([&] { return apply<Thrower>(x, {.what = what}, {.name = "thrower"}); });
    CHECK(status.code() == code);
    CHECK(status.op() == "Thrower");
    CHECK(status.node() == "thrower");
    CHECK(status.where().line() == line);
  }
  CHECK(mentions(status_of([&] { return apply<Thrower>(x, {.what = Throws::runtime_error}); }), "a word of its own"));
  CHECK(graph.num_nodes() == 1);
}

TEST_CASE("the fingerprint of a table tells lists apart", "[signature]") {
  CHECK(OpTable(ops<TwoLists>).fingerprint() != OpTable(ops<PassThrough>).fingerprint());
}

namespace {

struct Named : Op<"Same", FloatTypes> {
  static void infer(InferContext&) {}
};
struct Renamed : Op<"Same", FloatTypes> {
  static constexpr std::array<std::string_view, 1> type_names{"dtype"};
  static void infer(InferContext&) {}
};

}  // namespace

TEST_CASE("the fingerprint of a table has the names of type parameters", "[signature]") {
  CHECK(OpTable(ops<Named>).fingerprint() != OpTable(ops<Renamed>).fingerprint());
}

TEST_CASE("a table has its own ops and those of the table before it", "[signature]") {
  const OpTable first(ops<Named>);
  const std::array more{&op_def<PassThrough>, &op_def<TwoLists>};
  const OpTable both(more, &first);
  CHECK(first.size() == 1);
  CHECK(both.size() == 3);
  CHECK(both.find("Same") == first.find("Same"));
}
