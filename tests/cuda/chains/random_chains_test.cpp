// Random graphs of elementwise nodes, and of some that are none, with chains and without: the same bits.
#include "cuda/chains/chain_beside.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <iostream>
#include <random>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// Grows a graph on a GPU by nodes of any kind that fit.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    add_placeholders<float>(3);
    add_placeholders<Half>(2);
    add_placeholders<std::int32_t>(2);
    const auto on = graph.device("/gpu:0");
    for (int i = 0; i < 40; ++i) grow();
    for (int i = 0; i < 4; ++i) fetches.push_back(edges_[edges_.size() - 1 - random_() % 20]);
    // Feeds an edge in the middle of a possible chain, with any value.
    if (random_() % 3 == 0) feed_one();
  }

  Graph graph;
  std::vector<Feed> feeds;
  std::vector<AnyOutput> fetches;

 private:
  static constexpr std::array<DType, 5> types{DType::float32, DType::float16, DType::int32, DType::boolean,
                                              DType::float64};

  template <class T>
  void add_placeholders(int count) {
    const std::array<Shape, 6> shapes{Shape{3, 4, 5}, Shape{3, 4, 5}, Shape{4, 5}, Shape{3, 1, 5}, Shape{5}, Shape{}};
    for (int i = 0; i < count; ++i) {
      const Shape& shape = shapes[i == 0 ? 0 : random_() % shapes.size()];
      const bool is_known = random_() % 3 != 0;
      const auto edge = placeholder<T>(graph, is_known ? PartialShape(shape) : PartialShape::unknown(shape.rank()));
      edges_.push_back(edge);
      feeds.emplace_back(edge, random_numbers<T>(shape, static_cast<unsigned>(random_())));
    }
  }

  /// One of the newer edges of a type, or none.
  AnyOutput pick(DType dtype) {
    for (int tries = 0; tries < 20; ++tries) {
      const AnyOutput& edge = edges_[edges_.size() - 1 - random_() % std::min<std::size_t>(edges_.size(), 24)];
      if (edge.dtype() == dtype) return edge;
    }
    for (const AnyOutput& edge : edges_) {
      if (edge.dtype() == dtype) return edge;
    }
    return {};
  }

  template <class Op>
  AnyOutput node(std::initializer_list<AnyOutput> inputs) {
    return AnyOutput(build<Op>(inputs));
  }

  AnyOutput of_floats(DType dtype) {
    const AnyOutput a = pick(dtype), b = pick(dtype);
    if (a.graph() == nullptr) return {};
    switch (random_() % 22) {
      case 0:
        return node<Exp>({a});
      case 1:
        return node<Tanh>({a});
      case 2:
        return node<Sigmoid>({a});
      case 3:
        return node<Sqrt>({a});
      case 4:
        return node<Neg>({a});
      case 5:
        return node<Abs>({a});
      case 6:
        return node<Relu>({a});
      case 7:
        return node<Elu>({a});
      case 8:
        return node<Softplus>({a});
      case 9:
        return node<Erf>({a});
      case 10:
        return node<Square>({a});
      case 11:
        return node<Add>({a, b});
      case 12:
        return node<Sub>({a, b});
      case 13:
        return node<Mul>({a, b});
      case 14:
        return node<Div>({a, b});
      case 15:
        return node<Maximum>({a, b});
      case 16:
        return node<SquaredDifference>({a, b});
      case 17:
        return node<Less>({a, b});
      case 18:
        return node<IsFinite>({a});
      case 19:
        return node<TanhGrad>({a, a});
      case 20:
        return node<AddN>({a, a, a});
      default:
        return node<Pow>({a, b});
    }
  }

  AnyOutput of_integers() {
    const AnyOutput a = pick(DType::int32), b = pick(DType::int32);
    switch (random_() % 6) {
      case 0:
        return node<Add>({a, b});
      case 1:
        return node<Mul>({a, b});
      case 2:
        return node<Minimum>({a, b});
      case 3:
        return node<Abs>({a});
      case 4:
        return node<Greater>({a, b});
      default:
        return node<Sign>({a});
    }
  }

  AnyOutput of_truths() {
    const AnyOutput a = pick(DType::boolean), b = pick(DType::boolean);
    if (a.graph() == nullptr) return {};
    switch (random_() % 3) {
      case 0:
        return node<LogicalAnd>({a, b});
      case 1:
        return node<LogicalNot>({a});
      default: {
        const AnyOutput x = pick(DType::float32);
        const bool fits = x.shape() == a.shape() && x.shape().is_fully_defined();
        return fits ? node<Select>({a, x, node<Neg>({x})}) : AnyOutput();
      }
    }
  }

  /// A node that no chain goes through.
  AnyOutput between() {
    const AnyOutput x = pick(DType::float32);
    if (x.shape().rank() < 1) return {};
    return random_() % 2 == 0 ? AnyOutput(reduce_sum(Output<float>(x), {-1}, {.keep_dims = true}))
                              : AnyOutput(softmax(Output<float>(x)));
  }

  AnyOutput converted() {
    const AnyOutput x = pick(types[random_() % 3]);
    if (x.graph() == nullptr) return {};
    NodeRequest request;
    request.op = &op_def<Cast>;
    request.inputs = {&x, 1};
    request.types.push_back(x.dtype());
    request.types.push_back(types[random_() % types.size()]);
    return AnyOutput(graph.store(), {append_node(*graph.store(), request), 0});
  }

  void grow() {
    AnyOutput grown;
    try {
      const unsigned kind = random_() % 10;
      grown = kind < 5    ? of_floats(types[random_() % 2])
              : kind == 5 ? of_integers()
              : kind == 6 ? of_truths()
              : kind == 7 ? between()
              : kind == 8 ? converted()
                          : of_floats(DType::float32);
    } catch (const Error&) {  // shapes that do not broadcast together
      return;
    }
    if (grown.graph() != nullptr) edges_.push_back(grown);
  }

  void feed_one() {
    for (int tries = 0; tries < 50; ++tries) {
      const AnyOutput& edge = edges_[random_() % edges_.size()];
      if (edge.dtype() != DType::float32 || edge.node().op->role == OpRole::placeholder) continue;
      if (!edge.shape().is_fully_defined()) continue;
      feeds.emplace_back(edge, random_numbers<float>(edge.shape().to_shape(), 3));
      return;
    }
  }

  std::mt19937 random_;
  std::vector<AnyOutput> edges_;
};

}  // namespace

TEST_CASE("random graphs have the same bits with chains and without", "[cuda]") {
  constexpr unsigned count = is_sanitized ? 15 : 40;
  std::uint64_t made = 0, apart = 0, failed = 0, launches = 0, before = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    INFO("seed " << seed);
    const RandomGraph random(seed);
    const auto beside = run_beside(random.graph, random.feeds, random.fetches, {}, seed);
    made += beside.chains.made;
    apart += beside.chains.runs_apart;
    failed += beside.status.ok() ? 0 : 1;
    for (const auto& [name, number] : beside.launches) launches += number;
    for (const auto& [name, number] : beside.launches_before) before += number;
    CHECK(beside.chains.refused == 0);
  }
  std::cout << "count: " << count << " random graphs with " << made << " chains, " << apart << " run member by member; "
            << launches << " launches instead of " << before << "; " << failed << " that fail either way\n";
  CHECK(made > count * 3 / 2);
  CHECK(failed < count / 2);
  CHECK(launches < before);
}
