#include <dflow/passes/fusion/fuse.hpp>

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/cpu/standard_kernels.hpp>
#include <dflow/passes/optimize.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// Half of x.
struct Halve : dflow::ElementwiseOp<"Halve", dflow::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x * T(0.5);
  }
};

/// Half of a product, of two matrices as they lie.
struct HalvedProduct : dflow::Op<"HalvedProduct", dflow::TypeList<float>> {
  using Inputs = dflow::In<T, T>;
  using Fuses = dflow::TypeList<dflow::OpPair<dflow::MatMul, Halve>>;
  static std::optional<Attrs> fuse(const dflow::MatMul::Attrs& product, const Halve::Attrs&) {
    if (product.transpose_a || product.transpose_b) return std::nullopt;
    return Attrs{};
  }
  static dflow::PartialShape infer(const Attrs&, const dflow::PartialShape& a, const dflow::PartialShape& b) {
    return {a[0], b[1]};
  }
};

}  // namespace

template <class T>
struct dflow::Kernel<HalvedProduct, dflow::Cpu, T> {
  void operator()(KernelContext&, const Tensor<T>& a, const Tensor<T>& b, Tensor<T>& c) const {
    for (std::int64_t i = 0; i < c.dim(0); ++i) {
      for (std::int64_t j = 0; j < c.dim(1); ++j) {
        T sum = 0;
        for (std::int64_t k = 0; k < a.dim(1); ++k) sum += a(i, k) * b(k, j);
        c(i, j) = sum / 2;
      }
    }
  }
};

using namespace dflow;

namespace {

/// The ops with kernels for one device.
KernelTables cpu_kernels(const OpSet& ops) {
  const CpuDevice device({.pool = std::make_shared<InlinePool>()});
  return ops.kernels().for_device(device.context(), nullptr);
}

struct Needs {
  std::vector<AnyOutput> feeds, fetches;
  std::vector<Operation> targets;
};

/// The nodes of a step that the pass leaves. All are on a device with `tables` except the node that `elsewhere` names.
StepGraph fused(const Graph& graph, const Needs& needs, const KernelTables& tables, std::string_view elsewhere = {},
                const PassOptions& options = {}) {
  std::vector<Endpoint> feeds, fetches;
  std::vector<NodeId> targets;
  for (const AnyOutput& edge : needs.feeds) feeds.push_back(edge.endpoint());
  for (const AnyOutput& edge : needs.fetches) fetches.push_back(edge.endpoint());
  for (const Operation& operation : needs.targets) targets.push_back(operation.node_id());
  StepGraph step = prune(*graph.store(), feeds, fetches, targets);
  for (StepNode& node : step.nodes) node.placed_on = node->name == elsewhere ? 1 : 0;
  const std::vector<KernelTables> kernels{tables, tables};
  const Fusions fusions(kernels);
  return optimize(std::move(step), options, {.fusions = &fusions});
}

std::vector<std::string_view> ops_of(const StepGraph& graph) {
  std::vector<std::string_view> names;
  for (const StepNode& node : graph.nodes) {
    if (node.op->role != OpRole::placeholder) names.push_back(node.op->name);
  }
  return names;
}

using Ops = std::vector<std::string_view>;

/// relu(x w + b), named "product", "sum" and "y".
template <class T = float>
struct Biased {
  Graph graph;
  Output<T> x = placeholder<T>(graph, {dynamic, 3}), w = placeholder<T>(graph, {3, 2}), b = placeholder<T>(graph, {2});
  Output<T> product = matmul(x, w, {}, {.name = "product"});
  Output<T> sum = bias_add(product, b, {.name = "sum"});
  Output<T> y = relu(sum, {.name = "y"});

  Needs needs(std::vector<AnyOutput> fetches) const { return {{x, w, b}, std::move(fetches), {}}; }
};

template <class T>
std::vector<std::pair<std::string, Output<T> (*)(const Output<T>&)>> activations() {
  return {{"none", [](const Output<T>& x) { return x; }},
          {"relu", [](const Output<T>& x) { return relu(x); }},
          {"relu6", [](const Output<T>& x) { return relu6(x); }},
          {"tanh", [](const Output<T>& x) { return tanh(x); }},
          {"sigmoid", [](const Output<T>& x) { return sigmoid(x); }},
          {"elu", [](const Output<T>& x) { return elu(x); }}};
}

/// Numbers of both signs with zeros of both, an infinity and a NaN.
template <class T>
Tensor<T> numbers(const Shape& shape, unsigned seed, bool has_extremes = false) {
  Tensor<T> values(shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (T& value : values.span()) value = static_cast<T>(normal(random));
  if (!has_extremes) return values;
  const float extremes[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(), std::nanf(""), -1e30f};
  std::size_t i = 0;
  for (T& value : values.span()) {
    if (i < std::size(extremes)) value = static_cast<T>(extremes[i++]);
  }
  return values;
}

bool same_bits(const std::vector<AnyTensor>& a, const std::vector<AnyTensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const AnyTensor& left, const AnyTensor& right) {
    return left.shape() == right.shape() &&
           (left.bytes() == 0 || std::memcmp(left.raw_data(), right.raw_data(), left.bytes()) == 0);
  });
}

}  // namespace

TEST_CASE("a product, its bias and relu are one node with the name of the last", "[passes]") {
  const KernelTables tables = cpu_kernels(standard_ops);
  Biased<> of;
  const StepGraph all = fused(of.graph, of.needs({of.y}), tables);
  REQUIRE(ops_of(all) == Ops{"_FusedMatMul"});
  const StepNode& node = all.nodes.back();
  CHECK(node->name == "product + sum + y");
  CHECK(node->where.line() == of.y.node().where.line());
  CHECK(node->attrs_as<FusedMatMul>().relu);
  CHECK(node.num_inputs == 3);
  CHECK(node->inputs.size() == 3);
  CHECK(node->outputs[0].shape == PartialShape{dynamic, 2});
  const StepGraph sum = fused(of.graph, of.needs({of.sum}), tables);
  REQUIRE(ops_of(sum) == Ops{"_FusedMatMul"});
  CHECK(sum.nodes.back()->name == "product + sum");
  CHECK_FALSE(sum.nodes.back()->attrs_as<FusedMatMul>().relu);

  Graph graph;
  const auto x = placeholder<double>(graph, {1, 8, 8, 2}), w = placeholder<double>(graph, {3, 3, 2, 4});
  const auto b = placeholder<double>(graph, {4});
  const auto y =
      relu(bias_add(conv2d(x, w, {.strides = {1, 2, 2, 1}, .padding = Padding::same, .dilations = {1, 2, 1, 1}}), b));
  const StepGraph conv = fused(graph, {{x, w, b}, {y}, {}}, tables);
  REQUIRE(ops_of(conv) == Ops{"_FusedConv2D"});
  CHECK(conv.nodes.back()->attrs_as<FusedConv2D>().strides == std::vector<std::int64_t>{1, 2, 2, 1});
  CHECK(conv.nodes.back()->attrs_as<FusedConv2D>().padding == Padding::same);
  CHECK(conv.nodes.back()->attrs_as<FusedConv2D>().dilations == std::vector<std::int64_t>{1, 2, 1, 1});
}

TEST_CASE("what else needs the product or the sum keeps it apart", "[passes]") {
  const KernelTables tables = cpu_kernels(standard_ops);
  Biased<> of;
  const Ops apart{"MatMul", "BiasAdd", "Relu"};
  SECTION("a fetch") {
    CHECK(ops_of(fused(of.graph, of.needs({of.y, of.product}), tables)) == Ops{"MatMul", "BiasAdd", "Relu"});
    CHECK(ops_of(fused(of.graph, of.needs({of.y, of.sum}), tables)) == Ops{"_FusedMatMul", "Relu"});
  }
  SECTION("another reader") {
    const auto again = -of.product, more = -of.sum;
    CHECK(ops_of(fused(of.graph, of.needs({of.y, again}), tables)) == Ops{"MatMul", "BiasAdd", "Relu", "Neg"});
    CHECK(ops_of(fused(of.graph, of.needs({of.y, more}), tables)) == Ops{"_FusedMatMul", "Relu", "Neg"});
  }
  SECTION("a control edge") {
    const auto after = of.graph.control_dependencies({of.product.operation()});
    const auto late = no_op(of.graph);
    Needs needs = of.needs({of.y});
    needs.targets.push_back(late);
    CHECK(ops_of(fused(of.graph, needs, tables)) == Ops{"MatMul", "BiasAdd", "Relu", "NoOp"});
  }
  SECTION("a target") {
    Needs needs = of.needs({of.y});
    needs.targets.push_back(of.product.operation());
    CHECK(ops_of(fused(of.graph, needs, tables)) == Ops{"MatMul", "BiasAdd", "Relu"});
  }
  SECTION("a feed") {
    Needs needs = of.needs({of.y});
    needs.feeds.push_back(of.product);
    CHECK(ops_of(fused(of.graph, needs, tables)) == Ops{"MatMul", "BiasAdd", "Relu"});
    needs.feeds.back() = of.sum;
    CHECK(ops_of(fused(of.graph, needs, tables)) == Ops{"BiasAdd", "Relu"});
  }
  SECTION("another device") {
    CHECK(ops_of(fused(of.graph, of.needs({of.y}), tables, "sum")) == apart);
    CHECK(ops_of(fused(of.graph, of.needs({of.y}), tables, "y")) == Ops{"_FusedMatMul", "Relu"});
  }
  SECTION("the option") { CHECK(ops_of(fused(of.graph, of.needs({of.y}), tables, {}, {.fusion = false})) == apart); }
  SECTION("the bias is the product") {
    const auto product = matmul(of.x, of.w);
    const auto row = reshape(matmul(of.x, of.w), {2});
    CHECK(ops_of(fused(of.graph, of.needs({bias_add(product, row)}), tables)).back() == "BiasAdd");
  }
}

TEST_CASE("nothing is fused for which the device has no kernel, or has others that are asked first", "[passes]") {
  const Ops apart{"MatMul", "BiasAdd", "Relu"};
  Biased<> of;
  CHECK(ops_of(fused(of.graph, of.needs({of.y}), cpu_kernels(ops<MatMul, BiasAdd, Relu>))) == apart);
  const Biased<Half> half;
  CHECK(ops_of(fused(half.graph, half.needs({half.y}), cpu_kernels(standard_ops))) == apart);
  const Biased<std::int32_t> integers;
  CHECK(ops_of(fused(integers.graph, integers.needs({integers.y}), cpu_kernels(standard_ops))) == apart);
  const KernelEntry* relu_kernel = cpu_kernels(standard_ops).find("CPU", "Relu");
  REQUIRE(relu_kernel != nullptr);
  CHECK(ops_of(fused(of.graph, of.needs({of.y}),
                     cpu_kernels({standard_ops, {KernelTable(std::string("CPU"), {*relu_kernel})}}))) ==
        Ops{"_FusedMatMul", "Relu"});
}

TEST_CASE("a program's rows over the library's are asked before its fused kernels", "[passes]") {
  static const KernelEntry* const product = standard_cpu_kernels().find("MatMul");
  static const KernelEntry rows[] = {*product};
  const Biased<> of;
  const KernelTables over({KernelTable("CPU", KernelRows{rows, &standard_cpu_kernels()})});
  CHECK(ops_of(fused(of.graph, of.needs({of.y}), over)) == Ops{"MatMul", "BiasAdd", "Relu"});
}

TEST_CASE("a fused node waits for what both waited for, once", "[passes]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {3, 3}), b = placeholder<float>(graph, {3});
  const auto one = no_op(graph), two = no_op(graph), three = no_op(graph);
  Output<float> product, sum;
  {
    const auto after = graph.control_dependencies({one, two});
    product = matmul(x, x);
  }
  {
    const auto after = graph.control_dependencies({two, three});
    sum = bias_add(product, b);
  }
  const StepGraph step = fused(graph, {{x, b}, {sum}, {}}, cpu_kernels(standard_ops));
  const StepNode& node = step.nodes.back();
  CHECK(node.op->name == "_FusedMatMul");
  CHECK(node.num_controls == 3);
}

TEST_CASE("a program's own op fuses two", "[passes]") {
  const auto with_own = standard_ops + ops<Halve, HalvedProduct>;
  Graph graph;
  const auto a = placeholder<float>(graph, {2, 2}), b = placeholder<float>(graph, {2, 2});
  const auto plain = apply<Halve>(matmul(a, b), {}, {.name = "half"});
  const auto turned = apply<Halve>(matmul(a, b, {.transpose_b = true}));
  CHECK(ops_of(fused(graph, {{a, b}, {plain}, {}}, cpu_kernels(with_own))) == Ops{"HalvedProduct"});
  CHECK(ops_of(fused(graph, {{a, b}, {turned}, {}}, cpu_kernels(with_own))) == Ops{"MatMul", "Halve"});
  Session session(graph, {.ops = with_own});
  RunMetadata metadata;
  const Tensor<float> left({2, 2}, {1, 2, 3, 4}), right({2, 2}, {2, 0, 0, 4});
  const auto value = session.run({.trace = true}, &metadata, {{a, left}, {b, right}}, plain);
  CHECK(std::vector<float>(value.begin(), value.end()) == std::vector<float>{1, 4, 3, 8});
  REQUIRE(metadata.stats.nodes.size() == 1);
  CHECK(metadata.stats.nodes[0].op == "HalvedProduct");
  CHECK(metadata.stats.nodes[0].node == "MatMul + half");
}

TEMPLATE_TEST_CASE("values and gradients have the same bits fused and apart", "[passes][ops]", float, double, Half,
                   BFloat16) {
  using T = TestType;
  struct Case {
    std::int64_t m, k, n;
    bool transpose_a, transpose_b;
  };
  const Case cases[] = {{4, 3, 2, false, false}, {1, 7, 5, true, false},     {9, 40, 1, false, true},
                        {5, 0, 3, false, false}, {0, 4, 3, false, false},    {33, 17, 20, true, true},
                        {3, 2, 0, false, false}, {96, 100, 130, false, true}};
  for (const auto& [name, activation] : activations<T>()) {
    for (const Case& c : cases) {
      Graph graph;
      const Shape a_shape = c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k};
      const Shape b_shape = c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n};
      const auto a = placeholder<T>(graph, a_shape), b = placeholder<T>(graph, b_shape);
      const auto bias = placeholder<T>(graph, {c.n});
      const Output<T> sum = bias_add(matmul(a, b, {.transpose_a = c.transpose_a, .transpose_b = c.transpose_b}), bias);
      const Output<T> y = activation(sum);
      const auto [da, db, dbias] = gradients(reduce_sum(y * y), a, b, bias);
      std::vector<std::vector<AnyTensor>> results;
      for (const bool fuses : {false, true}) {
        for (const int threads : {1, 3}) {
          SessionOptions options{.num_threads = threads, .reproducible = true};
          options.passes.fusion = fuses;
          Session session(graph, options);
          const auto [value, to_a, to_b, to_bias] = session.run(
              {{a, numbers<T>(a_shape, 1, name == "relu")}, {b, numbers<T>(b_shape, 2)}, {bias, numbers<T>({c.n}, 3)}},
              y, da, db, dbias);
          results.push_back({value, to_a, to_b, to_bias});
          INFO(name << " m " << c.m << " k " << c.k << " n " << c.n);
          CHECK(same_bits(results.back(), results.front()));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("convolutions have the same bits fused and apart, gradients too", "[passes][ops]", float, double,
                   Half, BFloat16) {
  using T = TestType;
  const std::pair<Shape, Shape> cases[] = {{{2, 9, 9, 3}, {3, 3, 3, 8}},
                                           {{1, 5, 5, 40}, {1, 1, 40, 1}},
                                           {{0, 5, 5, 2}, {3, 3, 2, 2}},
                                           {{2, 5, 5, 0}, {3, 3, 0, 2}},
                                           {{3, 14, 14, 32}, {5, 5, 32, 16}}};
  for (const auto& [name, activation] : activations<T>()) {
    for (const auto& [x_shape, w_shape] : cases) {
      Graph graph;
      const auto x = placeholder<T>(graph, x_shape), w = placeholder<T>(graph, w_shape);
      const auto bias = placeholder<T>(graph, {w_shape[3]});
      const Output<T> y =
          activation(bias_add(conv2d(x, w, {.padding = Padding::same, .dilations = {1, 1, 2, 1}}), bias));
      const auto [dx, dw, dbias] = gradients(reduce_sum(y * y), x, w, bias);
      std::vector<std::vector<AnyTensor>> results;
      for (const bool fuses : {false, true}) {
        SessionOptions options{.num_threads = 2, .reproducible = true};
        options.passes.fusion = fuses;
        Session session(graph, options);
        const auto [value, to_x, to_w, to_bias] =
            session.run({{x, numbers<T>(x_shape, 1)}, {w, numbers<T>(w_shape, 2)}, {bias, numbers<T>({w_shape[3]}, 3)}},
                        y, dx, dw, dbias);
        results.push_back({value, to_x, to_w, to_bias});
      }
      INFO(name << " " << x_shape.to_string() << " " << w_shape.to_string());
      CHECK(same_bits(results[1], results[0]));
    }
  }
}
