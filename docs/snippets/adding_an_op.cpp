// The snippets of docs/adding-an-op.md and docs/architecture.md: ops as a user of the library, and as the library,
// defines them.

#include "own_kernel/weighted_rows.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace df = dflow;

// How the library declares an op of its own; never linked here.
namespace dflow::sketch {
// [matmul]
struct MatMul : StandardOp<"MatMul", NumberTypes> {  // run-time name, element types of type parameter T
  struct Attrs {
    bool transpose_a = false, transpose_b = false;
  };
  using Inputs = In<T, T>;                 // Outputs defaults to Out<T>
  static void infer(InferContext&);        // shapes, when the node is built
  static void gradient(GradientContext&);  // edges, when it is differentiated
};
// [matmul]
}  // namespace dflow::sketch

// [swish]
struct Swish : df::ElementwiseOp<"Swish", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + exp(-x));
  }
};
// [swish]

// [gap]
/// max(|a - b| - T(1), 0).
struct Gap : df::ElementwiseOp<"Gap", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b) {
    return max(abs(a - b) - T(1), T(0));
  }
};
// [gap]

// [mix]
/// A mixture of a and b: the logistic function of t is the share of a.
struct Mix : df::ElementwiseOp<"Mix", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T a, T b, T t) {
    const T share = T(1) / (T(1) + exp(-t));
    return share * a + (T(1) - share) * b;
  }
};
// [mix]

// [pick]
/// The first records where the condition holds, else the second ones, which have the same types and shapes.
struct PickRecords : df::Op<"PickRecords"> {
  struct Attrs {
    std::vector<df::DType> Tcomponents;
  };
  using Inputs = df::In<bool, df::TypedList<"Tcomponents">, df::TypedList<"Tcomponents">>;
  using Outputs = df::Out<df::TypedList<"Tcomponents">>;
  static void infer(df::InferContext& context) {
    const int count = context.num_outputs();
    for (int i = 0; i < count; ++i) {
      context.set_output(i, context.merge(context.input(1 + i), context.input(1 + count + i)));
    }
  }
};
// [pick]

template <>
struct dflow::Kernel<PickRecords, dflow::Cpu> {
  void operator()(df::KernelContext& context) const {
    const int count = context.num_outputs();
    const int first = context.input(0).as<bool>().scalar() ? 1 : 1 + count;
    for (int i = 0; i < count; ++i) context.set_output(i, context.input(first + i));
  }
};

// [flipped]
/// The rows of a matrix in the opposite order.
struct Flipped : df::Op<"Flipped", df::PlainTypes> {
  static df::PartialShape infer(const Attrs&, const df::PartialShape& x) { return x; }
};

template <>
struct dflow::Kernel<Flipped, dflow::Cpu> {
  void operator()(df::KernelContext&, const df::AnyTensor& x, df::AnyTensor& y) const {
    const std::int64_t rows = x.num_elements() == 0 ? 0 : x.dim(0);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::size_t row = x.bytes() / static_cast<std::size_t>(rows);
      const auto from = static_cast<std::size_t>(rows - 1 - i) * row, to = static_cast<std::size_t>(i) * row;
      std::memcpy(static_cast<std::byte*>(y.raw_data()) + to, static_cast<const std::byte*>(x.raw_data()) + from, row);
    }
  }
};
// [flipped]

namespace {

bool is_close(double a, double b) { return std::abs(a - b) < 1e-6; }

bool has_right_gradients() {
  // [check]
  df::Graph graph;
  auto a = df::placeholder<double>(graph, {2, 3}), t = df::placeholder<double>(graph, {2, 3});
  auto b = df::placeholder<double>(graph, {3});  // broadcast
  auto y = df::apply<Mix>(a, b, t);
  auto dt = df::gradients(df::reduce_sum(df::square(y)), t);

  df::Session session(graph, {.ops = df::standard_ops + df::ops<Mix>});
  df::Tensor<double> at_a({2, 3}, {.1, .2, .3, .4, .5, .6}), at_t({2, 3}, {-1, 0, 1, 2, -2, .5});
  df::Tensor<double> at_b({3}, {1, -1, 2});
  auto first = df::check_gradients(session, y, {{a, at_a}, {b, at_b}, {t, at_t}});
  auto second = df::check_gradients(session, dt, {{a, at_a}, {b, at_b}, {t, at_t}});  // of the gradient
  return first.is_ok() && second.is_ok();
  // [check]
}

int run() {
  if (!has_right_gradients()) return 1;
  // [use]
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {df::dynamic, 2});
  auto weights = df::placeholder<double>(graph, {df::dynamic});
  auto y = df::apply<WeightedRows>(df::apply<Swish>(x), weights, {.scale = 2.0f}, {.name = "y"});
  auto [dx, dw] = df::gradients(df::reduce_sum(y), x, weights);

  constexpr auto ops = df::standard_ops + df::ops<Swish, Gap, WeightedRows>;
  df::Session session(graph, {.ops = ops});
  df::Tensor<double> at({1, 2}, {0, 1}), weight({1}, {3});
  auto [value, slope, by_weight] = session.run({{x, at}, {weights, weight}}, y, dx, dw);
  // [use]
  const double swish = 1 / (1 + std::exp(-1.0));
  if (!is_close(value(0, 1), 6 * swish) || !is_close(slope(0, 0), 3) || !is_close(by_weight(0), 2 * swish)) return 1;
  const auto matrix = df::constant(graph, df::Tensor<std::int32_t>({2, 2}, {1, 2, 3, 4}));
  df::Session flipping(graph, {.ops = df::standard_ops + df::ops<Flipped>});
  if (flipping.run(df::apply<Flipped>(matrix))(0, 1) != 4) return 1;
  auto gap = df::apply<Gap>(df::constant(graph, 5.0f), df::constant(graph, 2.0f));
  if (session.run(gap).scalar() != 2) return 1;
  const df::AnyOutput inputs[] = {df::constant(graph, false), df::constant(graph, 1.0f), df::constant(graph, 2),
                                  df::constant(graph, 3.0f), df::constant(graph, 4)};
  const auto picked =
      df::build<PickRecords>(std::span(inputs), {.Tcomponents = {df::DType::float32, df::DType::int32}});
  df::Session picking(graph, {.ops = df::standard_ops + df::ops<PickRecords>});
  return picking.run(df::Output<std::int32_t>(picked.output(1))).scalar() == 4 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
