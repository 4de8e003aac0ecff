#pragma once

// An op of a program's own with its kernel for the CPU: docs/adding-an-op.md.

#include <dflow/dflow.hpp>

#include <cstdint>

namespace df = dflow;

// [weighted_rows]
/// Each row multiplied by its weight: x [rows, columns], weights [rows].
struct WeightedRows : df::Op<"WeightedRows", df::TypeList<float, double>> {
  struct Attrs {
    float scale = 1.0f;
  };
  using Inputs = df::In<T, T>;

  static df::PartialShape infer(const Attrs&, df::PartialShape x, const df::PartialShape& weights) {
    if (x.has_rank() && x.rank() != 2) df::throw_error(df::Status::invalid_argument("x must be a matrix"));
    return x.has_rank() && weights.has_rank() ? x.with_dim(0, x.merged_with({weights[0], df::dynamic})[0]) : x;
  }

  static void gradient(df::GradientContext& context) {
    const auto& attrs = context.attrs<WeightedRows>();
    const df::Expr x = context.input(0), weights = context.input(1), dy = context.dy();
    const df::Expr column = df::constant(context.graph(), df::Tensor<std::int32_t>(1));
    context.set_dx(0, df::build<WeightedRows>({dy, weights}, attrs));
    context.set_dx(1, df::build<df::Sum>({dy * x * attrs.scale, column}));
  }
};
// [weighted_rows]

// [weighted_rows_kernel]
template <class T>
struct dflow::Kernel<WeightedRows, dflow::Cpu, T> {
  static constexpr bool splits = true;  // among the pool's threads, by itself
  WeightedRows::Attrs attrs;

  void operator()(df::KernelContext& context, const df::Tensor<T>& x, const df::Tensor<T>& weights,
                  df::Tensor<T>& y) const {
    if (weights.rank() != 1 || weights.dim(0) != x.dim(0)) context.fail("there must be one weight per row");
    const std::int64_t columns = x.dim(1);
    context.pool().parallel_for(x.dim(0), static_cast<double>(columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const T factor = weights(row) * static_cast<T>(attrs.scale);
        for (std::int64_t i = 0; i < columns; ++i) y(row, i) = x(row, i) * factor;
      }
    });
  }
};
// [weighted_rows_kernel]
