// Two ops that the library does not have: an elementwise one, which is one expression, and a general one with its own
// shape inference, gradient and kernel. Both are differentiated and run like any other.

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstdio>

namespace df = dflow;

/// x sigmoid(x) (Ramachandran et al. 2017, arXiv:1710.05941). Gradient and kernel follow from the expression.
struct Swish : df::ElementwiseOp<"Swish", df::FloatTypes> {
  template <class T>
  DFLOW_FN static T apply(T x) {
    return x / (T(1) + exp(-x));
  }
};

/// Each row divided by its length: x [rows, columns] gives [rows, columns].
struct RowNorm : df::Op<"RowNorm", df::TypeList<float, double>> {
  struct Attrs {
    float epsilon = 1e-6f;
  };
  static df::PartialShape infer(const Attrs&, df::PartialShape x) { return x; }

  /// dx = (dy - y (y . dy)) / length, and 1 / length is y / x wherever x is not 0: here from x itself.
  template <class T>
  static df::Output<T> gradient(const df::NodeView<RowNorm, T>& node, df::Output<T> dy) {
    const df::Output<T> x = node.input(), y = node.output();
    const auto squares = df::reduce_sum(df::square(x), {1}, {.keep_dims = true});
    const auto projection = df::reduce_sum(y * dy, {1}, {.keep_dims = true});
    return (dy - y * projection) * df::rsqrt(squares + static_cast<T>(node.attrs().epsilon));
  }
};

template <class T>
struct dflow::Kernel<RowNorm, dflow::Cpu, T> {
  RowNorm::Attrs attrs;

  void operator()(df::KernelContext& context, const df::Tensor<T>& x, df::Tensor<T>& y) const {
    if (x.rank() != 2) context.fail("x must be a matrix, got shape " + x.shape().to_string());
    const std::int64_t columns = x.dim(1);
    context.pool().parallel_for(x.dim(0), 2.0 * static_cast<double>(columns),
                                [&](std::int64_t begin, std::int64_t end) {
                                  for (std::int64_t row = begin; row < end; ++row) {
                                    const T* from = x.data() + row * columns;
                                    T squares = static_cast<T>(attrs.epsilon);
                                    for (std::int64_t i = 0; i < columns; ++i) squares += from[i] * from[i];
                                    const T scale = T(1) / std::sqrt(squares);
                                    for (std::int64_t i = 0; i < columns; ++i)
                                      y.data()[row * columns + i] = from[i] * scale;
                                  }
                                });
  }
};

int main() {
  df::Graph graph;
  auto x = df::placeholder<double>(graph, {df::dynamic, 3});
  auto y = df::apply<RowNorm>(df::apply<Swish>(x), {.epsilon = 1e-9f});
  auto slope = df::gradients(df::reduce_sum(y * y * y), x);

  constexpr auto ops = df::standard_ops + df::ops<Swish, RowNorm>;
  df::Session session(graph, {.ops = ops});
  df::Tensor<double> at({2, 3}, {1, -2, 3, 0.5, 0.25, -0.125});
  auto [value, derivative] = session.run({{x, at}}, y, slope);
  std::printf("y     = %s\ndy^3  = %s\n", value.to_string().c_str(), derivative.to_string().c_str());

  // The derivative by central differences, along the first element.
  const auto sum_of_cubes = [&](double shift) {
    df::Tensor<double> moved = at.copy();
    moved(0, 0) += shift;
    return session.run({{x, moved}}, df::reduce_sum(y * y * y)).scalar();
  };
  const double expected = (sum_of_cubes(1e-5) - sum_of_cubes(-1e-5)) / 2e-5;
  std::printf("d/dx00 = %.8f, by differences %.8f\n", derivative(0, 0), expected);
  return std::abs(derivative(0, 0) - expected) < 1e-6 ? 0 : 1;
}
