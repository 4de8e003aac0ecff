#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/broadcast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/ops/reduction/segment.hpp>
#include <dflow/train/metrics.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::metrics {

namespace detail {

using dflow::detail::cast_to;
using dflow::detail::int32_constant;

/// A total of a metric, and the part of it that a batch brings.
struct Total {
  std::string_view name;
  Expr batch;
};
using ValueOf = std::function<Output<double>(std::span<const AnyOutput>)>;

[[noreturn]] void fail(std::string_view metric, std::string_view message, const At& at) {
  throw_error(Status::invalid_argument(str_cat(metric, ": ", message)).with_location(at.where));
}

std::string described(std::string_view role, const AnyOutput& edge) {
  return str_cat(role, " ", dtype_name(edge.dtype()), edge.shape().to_string());
}

void require_dtype(std::string_view metric, std::string_view role, const AnyOutput& edge, std::uint32_t allowed,
                   const At& at) {
  if (!edge.is_valid()) fail(metric, str_cat(role, " are an empty Output"), at);
  if (!in_mask(edge.dtype(), allowed)) {
    fail(metric, str_cat(described(role, edge), " have an element type that it does not take"), at);
  }
}
constexpr std::uint32_t numbers_or_bools = dtype_mask<RealTypes> | dtype_mask<TypeList<bool>>;

Expr all_of(const Expr& x) { return dflow::detail::sum_of_all(x); }
/// x [-1].
Expr flattened(const AnyOutput& x) {
  if (x.shape().has_rank() && x.shape().rank() == 1) return x;
  return AnyOutput(build<Reshape>({x, int32_constant(*x.graph(), std::vector<std::int64_t>{-1})}));
}
/// 1 for true, and for numbers that are not 0.
Expr truth(const AnyOutput& x) { return cast_to(cast_to(x, DType::boolean), DType::float64); }
Expr where(const AnyOutput& condition, const AnyOutput& t, const AnyOutput& e) {
  return AnyOutput(dflow::detail::any_select({condition, t, e}, {}));
}
/// a / b, or 0 where b is not positive.
Expr quotient(const Expr& a, const Expr& b) {
  const AnyOutput is_positive = build<Greater>({b, scalar_like(b, 0.0)});
  return where(is_positive, a / where(is_positive, b, scalar_like(b, 1.0)), scalar_like(b, 0.0));
}

/// labels, of which a step finds that they have the shape of the predictions. Precondition: one element type.
AnyOutput of_one_shape(std::string_view metric, const AnyOutput& labels, const AnyOutput& predictions, const At& at) {
  const PartialShape &a = labels.shape(), &b = predictions.shape();
  if (!a.is_compatible_with(b)) {
    fail(metric,
         str_cat(described("labels", labels), " and ", described("predictions", predictions), " have different shapes"),
         at);
  }
  if (a.is_fully_defined() && b.is_fully_defined()) return labels;
  const AnyOutput yes = dflow::detail::any_constant(*labels.graph(), Tensor<bool>(true), {});
  return build<Select>({yes, labels, predictions});
}

/// The weight of each row, in the shape of `rows`; empty if all weigh 1.
Expr weights_of(std::string_view metric, const AnyOutput& weights, const AnyOutput& rows, const At& at) {
  if (!weights.is_valid()) return {};
  require_dtype(metric, "weights", weights, numbers_or_bools, at);
  const PartialShape &from = weights.shape(), &to = rows.shape();
  bool fits = true;
  if (from.has_rank() && to.has_rank()) {
    fits = from.rank() == 0 || from.rank() == to.rank();
    for (int i = 0; fits && i < from.rank(); ++i) {
      fits = from[i] == 1 || from[i] == dynamic || to[i] == dynamic || from[i] == to[i];
    }
  }
  if (!fits) {
    fail(metric, str_cat(described("weights", weights), " do not fit rows of shape ", to.to_string()), at);
  }
  Expr wide = cast_to(weights, DType::float64);
  if (from.has_rank() && to.has_rank() && from == to && from.is_fully_defined()) return wide;
  wide = AnyOutput(build<BroadcastTo>({wide, AnyOutput(build<ShapeOf>({rows}))}));
  if ((from.has_rank() && from.rank() == 0) || (from.has_rank() && to.has_rank())) return wide;
  const AnyOutput rank = build<RankOf>({weights});
  const AnyOutput fitting = build<LogicalOr>({AnyOutput(build<Equal>({rank, int32_constant(*rows.graph(), 0)})),
                                              AnyOutput(build<Equal>({rank, AnyOutput(build<RankOf>({rows}))}))});
  const std::string text = str_cat(metric, ": the weights have neither the rank of the rows nor rank 0");
  const AnyOutput words = dflow::detail::any_constant(*rows.graph(), Tensor<std::string>(text), {});
  const Operation check = assert_that(Output<bool>::unchecked(fitting), {words, AnyOutput(build<ShapeOf>({weights}))});
  const ScopeGuard after = enter_control_dependencies(*rows.graph(), {&check, 1}, at.where);
  return AnyOutput(build<Identity>({wide}));
}
Expr times(const Expr& x, const Expr& weights) { return weights.is_valid() ? x * weights : x; }
/// The sum of the weights, or the number of rows.
Expr count_of(const AnyOutput& rows, const Expr& weights) {
  return weights.is_valid() ? all_of(weights) : Expr(cast_to(AnyOutput(build<SizeOf>({rows})), DType::float64));
}

/// Builds a metric: variables for its totals, and what reads and changes them. `edge` is one of its inputs.
StreamingMetric streaming(std::string_view name, const AnyOutput& edge, FunctionRef<std::vector<Total>()> batch_totals,
                          ValueOf value_of, const At& at) {
  if (!edge.is_valid()) fail(name, "an input is an empty Output", at);
  GraphStore& graph = *edge.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? name : at.name, at.where);
  StreamingMetric metric;
  std::vector<Operation> updates, resets;
  std::vector<AnyOutput> reads, updated;
  for (const Total& total : batch_totals()) {
    if (!total.batch.shape().is_fully_defined())
      fail(name, str_cat("the shape of '", total.name, "' is not known"), at);
    const AnyOutput zero =
        dflow::detail::any_constant(graph, Tensor<double>::zeros(total.batch.shape().to_shape()), {});
    // A function that places variables elsewhere, on a parameter server, has put the constant into this task.
    const std::string device = zero.node().device;
    const ScopeGuard own_task = device.empty() ? graph.enter(graph.scope()) : enter_device(graph, device, at.where);
    const AnyVariable variable = AnyVariable::make(graph, zero, {.name = total.name, .local = true});
    updates.push_back(variable.assign_add(total.batch));
    resets.push_back(variable.initializer());
    reads.push_back(variable.read_edge());
    metric.totals.push_back(variable);
  }
  metric.update = dflow::detail::no_op_after(graph, updates, {.name = "update"});
  metric.reset = dflow::detail::no_op_after(graph, resets, {.name = "reset"});
  metric.value = value_of(reads);
  {
    const ScopeGuard after = enter_control_dependencies(graph, {&metric.update, 1}, at.where);
    for (const AnyVariable& variable : metric.totals) updated.push_back(variable.read());
  }
  metric.updated = value_of(updated);
  metric.value_of = std::move(value_of);
  return metric;
}

Output<double> typed(const Expr& value) { return Output<double>::unchecked(value); }
/// The value of a metric with two totals: a share, or a mean.
Output<double> first_by_second(std::span<const AnyOutput> totals) { return typed(quotient(totals[0], totals[1])); }
Output<double> first_by_sum(std::span<const AnyOutput> totals) {
  return typed(quotient(totals[0], Expr(totals[0]) + Expr(totals[1])));
}

/// The mean of `of()`, double.
StreamingMetric streaming_mean(std::string_view name, const AnyOutput& edge, FunctionRef<Expr()> of,
                               const MetricOptions& options, ValueOf value_of, const At& at) {
  const auto batch = [&] {
    const Expr rows = of();
    const Expr weights = weights_of(name, options.weights, rows, at);
    return std::vector<Total>{{"total", all_of(times(rows, weights))}, {"count", count_of(rows, weights)}};
  };
  return streaming(name, edge, batch, std::move(value_of), at);
}

StreamingMetric squared_error(std::string_view name, const AnyOutput& labels, const AnyOutput& predictions,
                              const MetricOptions& options, ValueOf value_of, const At& at) {
  require_dtype(name, "labels", labels, numbers_or_bools, at);
  require_dtype(name, "predictions", predictions, numbers_or_bools, at);
  const auto rows = [&]() -> Expr {
    const AnyOutput predicted = cast_to(predictions, DType::float64);
    const AnyOutput wanted = of_one_shape(name, cast_to(labels, DType::float64), predicted, at);
    return AnyOutput(build<SquaredDifference>({wanted, predicted}));
  };
  return streaming_mean(name, labels, rows, options, std::move(value_of), at);
}

/// The share of rows where both are true, among those where `of_labels ? labels : predictions` is true.
StreamingMetric share_of_true(std::string_view name, bool of_labels, const AnyOutput& labels,
                              const AnyOutput& predictions, const MetricOptions& options, const At& at) {
  require_dtype(name, "labels", labels, numbers_or_bools, at);
  require_dtype(name, "predictions", predictions, numbers_or_bools, at);
  const auto batch = [&] {
    const Expr predicted = truth(predictions);
    const Expr wanted = of_one_shape(name, truth(labels), predicted, at);
    const Expr weights = weights_of(name, options.weights, predicted, at);
    const Expr both = wanted * predicted, missed = (of_labels ? wanted : predicted) - both;
    return std::vector<Total>{{"true_positives", all_of(times(both, weights))},
                              {of_labels ? "false_negatives" : "false_positives", all_of(times(missed, weights))}};
  };
  return streaming(name, labels, batch, first_by_sum, at);
}

/// Part [begin, begin + size) of a vector.
Expr part(const Expr& x, std::int64_t begin, std::int64_t size) {
  return dflow::detail::any_slice(x, {begin}, {size}, {});
}
/// Element i is the sum of the elements i to n - 1 of x [n].
Expr sums_from_behind(Expr x, std::int64_t n) {
  for (std::int64_t step = 1; step < n; step *= 2) {
    x = x + Expr(dflow::detail::any_pad(part(x, step, n - step), {{0, step}}, {}));
  }
  return x;
}

std::vector<float> thresholds_of(std::int64_t n) {
  std::vector<float> thresholds;
  for (std::int64_t i = 0; i < n; ++i) {
    const double even = static_cast<double>(i) / static_cast<double>(n - 1);
    thresholds.push_back(static_cast<float>(i == 0 ? -1e-7 : i == n - 1 ? 1 + 1e-7 : even));
  }
  thresholds.resize(std::max<std::size_t>(3, thresholds.size()), std::numeric_limits<float>::infinity());
  return thresholds;
}

/// How many of n thresholds each score is above: float [rows] to int32 [rows]. Thresholds are even, so only the three
/// beside a score are compared with it.
AnyOutput thresholds_below(const Expr& scores, std::int64_t n) {
  GraphStore& graph = *scores.graph();
  const std::vector<float> values = thresholds_of(n);
  const auto size = static_cast<std::int64_t>(values.size());
  const AnyOutput thresholds = dflow::detail::any_constant(graph, Tensor<float>({size}, values), {});
  const Expr near = cast_to(scores * static_cast<double>(n - 1), DType::int32);
  const Expr not_below = AnyOutput(build<Maximum>({near - 1.0, scalar_like(near, 0.0)}));
  const Expr first = AnyOutput(build<Minimum>({not_below, scalar_like(near, static_cast<double>(size - 3))}));
  Expr count = first;
  for (const double i : {0.0, 1.0, 2.0}) {
    const AnyOutput threshold = build<Gather>({thresholds, first + i});
    count = count + Expr(cast_to(AnyOutput(build<Less>({threshold, scores})), DType::int32));
  }
  return count;
}

/// The area under the curve of the sums by bucket: of true rows and of others, both [n + 1].
Output<double> area(std::span<const AnyOutput> totals, std::int64_t n, Curve curve) {
  constexpr double epsilon = 1e-6;
  const Expr true_positives = sums_from_behind(part(totals[0], 1, n), n);
  const Expr false_positives = sums_from_behind(part(totals[1], 1, n), n);
  const Expr recall = (true_positives + epsilon) / (all_of(totals[0]) + epsilon);
  const bool is_roc = curve == Curve::roc;
  const Expr x = is_roc ? false_positives / (all_of(totals[1]) + epsilon) : recall;
  const Expr y = is_roc ? recall : (true_positives + epsilon) / (true_positives + false_positives + epsilon);
  const Expr width = part(x, 0, n - 1) - part(x, 1, n - 1), height = part(y, 0, n - 1) + part(y, 1, n - 1);
  return typed(all_of(width * height * 0.5));
}

/// Confusion matrix of a batch: [n, n].
Expr confusion(std::string_view name, const AnyOutput& labels, const AnyOutput& predictions, std::int64_t n,
               const MetricOptions& options, const At& at) {
  const auto classes = [&](const AnyOutput& given) {
    return dflow::detail::any_assert_within(cast_to(given, DType::int64), 0, static_cast<double>(n - 1), given,
                                            str_cat("[0, ", n, ")"), name, at);
  };
  const AnyOutput predicted = classes(predictions);
  const Expr wanted = of_one_shape(name, classes(labels), predicted, at);
  Expr weights = weights_of(name, options.weights, predicted, at);
  if (!weights.is_valid()) weights = ones_like(cast_to(predicted, DType::float64));
  GraphStore& graph = *labels.graph();
  const Expr cells = flattened(wanted * static_cast<double>(n) + Expr(predicted));
  const AnyOutput sums =
      build<UnsortedSegmentSum>({flattened(weights), cells, int32_constant(graph, static_cast<std::int32_t>(n * n))});
  return AnyOutput(build<Reshape>({sums, int32_constant(graph, std::vector<std::int64_t>{n, n})}));
}

StreamingMetric of_confusion(std::string_view name, const AnyOutput& labels, const AnyOutput& predictions,
                             std::int64_t n, const MetricOptions& options, ValueOf value_of, const At& at) {
  require_dtype(name, "labels", labels, dtype_mask<IntTypes>, at);
  require_dtype(name, "predictions", predictions, dtype_mask<IntTypes>, at);
  constexpr std::int64_t most = 46340;  // its square is an int32
  if (n < 1 || n > most) fail(name, str_cat(n, " classes are not from 1 to ", most), at);
  const auto batch = [&] {
    return std::vector<Total>{{"confusion_matrix", confusion(name, labels, predictions, n, options, at)}};
  };
  return streaming(name, labels, batch, std::move(value_of), at);
}

Output<double> iou(const Expr& matrix, std::int64_t n) {
  GraphStore& graph = *matrix.graph();
  std::vector<std::int64_t> diagonal;
  for (std::int64_t i = 0; i < n; ++i) diagonal.push_back(i * (n + 1));
  const Expr both = AnyOutput(build<Gather>({flattened(matrix), int32_constant(graph, diagonal)}));
  const Expr rows = AnyOutput(build<Sum>({matrix, int32_constant(graph, 1)}));
  const Expr columns = AnyOutput(build<Sum>({matrix, int32_constant(graph, 0)}));
  const Expr either = rows + columns - both;
  const AnyOutput has_rows = build<Greater>({either, scalar_like(either, 0.0)});
  return typed(quotient(all_of(quotient(both, either)), all_of(cast_to(has_rows, DType::float64))));
}

/// [rows, labels]: whether each label is among the k classes with the largest scores of its row. scores [rows,
/// classes], labels int64 [rows, labels].
Expr is_in_top(const AnyOutput& scores, const Expr& labels, std::int64_t k) {
  GraphStore& graph = *scores.graph();
  const AnyOutput shape = build<ShapeOf>({scores});
  const auto extent = [&](std::int64_t i) {
    return Expr(AnyOutput(build<Gather>({shape, int32_constant(graph, static_cast<std::int32_t>(i))})));
  };
  const auto range = [&](const Expr& n) {
    return Expr(
        cast_to(AnyOutput(build<Range>({int32_constant(graph, 0), n, int32_constant(graph, 1)})), DType::int64));
  };
  const auto behind = [&](const AnyOutput& x) {
    return Expr(AnyOutput(build<ExpandDims>({x, int32_constant(graph, -1)})));
  };
  const Expr num_classes = cast_to(extent(1), DType::int64);
  const AnyOutput is_class = build<LogicalAnd>(
      {AnyOutput(build<LessEqual>({scalar_like(labels, 0.0), labels})), AnyOutput(build<Less>({labels, num_classes}))});
  const Expr index = behind(range(extent(0))) * num_classes + where(is_class, labels, zeros_like(labels));
  const AnyOutput own = build<Gather>({flattened(scores), index});
  const AnyOutput each = build<ExpandDims>({scores, int32_constant(graph, 1)}), beside = behind(own);
  const AnyOutput is_before = build<Less>({range(extent(1)), behind(labels)});
  const AnyOutput is_ahead =
      build<LogicalOr>({AnyOutput(build<Greater>({each, beside})),
                        AnyOutput(build<LogicalAnd>({AnyOutput(build<Equal>({each, beside})), is_before}))});
  const Expr place = AnyOutput(build<Sum>({cast_to(is_ahead, DType::int64), int32_constant(graph, 2)}));
  const AnyOutput is_number = build<Equal>({own, own});
  const AnyOutput is_high = build<Less>({place, scalar_like(place, static_cast<double>(k))});
  const AnyOutput is_hit = build<LogicalAnd>({AnyOutput(build<LogicalAnd>({is_class, is_number})), is_high});
  return cast_to(is_hit, DType::float64);
}

}  // namespace detail

Output<double> merged(std::span<const StreamingMetric> metrics, const At& at) {
  if (metrics.empty()) detail::fail("merged", "there are no metrics", at);
  const StreamingMetric& first = metrics.front();
  if (!first.value.is_valid()) detail::fail("merged", "metric 0 is empty", at);
  GraphStore& graph = *first.value.graph();
  const Composite place(graph, at.where);
  const ScopeGuard names = enter_name_scope(graph, at.name.empty() ? "merged" : at.name, at.where);
  std::vector<AnyOutput> totals;
  for (std::size_t i = 0; i < first.totals.size(); ++i) {
    std::vector<AnyOutput> of_tasks;
    for (const StreamingMetric& metric : metrics) {
      if (metric.totals.size() != first.totals.size() || metric.totals[i].shape() != first.totals[i].shape()) {
        detail::fail("merged", str_cat("metric ", of_tasks.size(), " has other totals than metric 0"), at);
      }
      of_tasks.push_back(metric.totals[i].read_edge());
    }
    totals.push_back(build<AddN>(of_tasks));
  }
  return first.value_of(totals);
}

StreamingMetric mean(const AnyOutput& values, const MetricOptions& options, const At& at) {
  detail::require_dtype("mean", "values", values, detail::numbers_or_bools, at);
  const auto rows = [&]() -> Expr { return detail::cast_to(values, DType::float64); };
  return detail::streaming_mean("mean", values, rows, options, detail::first_by_second, at);
}

StreamingMetric accuracy(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options,
                         const At& at) {
  detail::require_dtype("accuracy", "labels", labels, dtype_mask<AllTypes>, at);
  detail::require_dtype("accuracy", "predictions", predictions, dtype_mask<AllTypes>, at);
  const bool are_integers =
      in_mask(labels.dtype(), dtype_mask<IntTypes>) && in_mask(predictions.dtype(), dtype_mask<IntTypes>);
  if (!are_integers && labels.dtype() != predictions.dtype()) {
    detail::fail("accuracy",
                 str_cat(detail::described("labels", labels), " and ", detail::described("predictions", predictions),
                         " have different element types"),
                 at);
  }
  const auto rows = [&]() -> Expr {
    const auto comparable = [&](const AnyOutput& x) { return are_integers ? detail::cast_to(x, DType::int64) : x; };
    const AnyOutput predicted = comparable(predictions);
    const AnyOutput wanted = detail::of_one_shape("accuracy", comparable(labels), predicted, at);
    return detail::cast_to(AnyOutput(build<Equal>({wanted, predicted})), DType::float64);
  };
  return detail::streaming_mean("accuracy", labels, rows, options, detail::first_by_second, at);
}

StreamingMetric mean_squared_error(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options,
                                   const At& at) {
  return detail::squared_error("mean_squared_error", labels, predictions, options, detail::first_by_second, at);
}
StreamingMetric root_mean_squared_error(const AnyOutput& labels, const AnyOutput& predictions,
                                        const MetricOptions& options, const At& at) {
  const auto root = [](std::span<const AnyOutput> totals) {
    return detail::typed(AnyOutput(build<Sqrt>({detail::first_by_second(totals)})));
  };
  return detail::squared_error("root_mean_squared_error", labels, predictions, options, root, at);
}

StreamingMetric precision(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options,
                          const At& at) {
  return detail::share_of_true("precision", false, labels, predictions, options, at);
}
StreamingMetric recall(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options,
                       const At& at) {
  return detail::share_of_true("recall", true, labels, predictions, options, at);
}

StreamingMetric auc(const AnyOutput& labels, const AnyOutput& scores, const AucOptions& options, const At& at) {
  detail::require_dtype("auc", "labels", labels, detail::numbers_or_bools, at);
  detail::require_dtype("auc", "scores", scores, dtype_mask<FloatTypes>, at);
  const std::int64_t n = options.num_thresholds;
  constexpr std::int64_t most = 1 << 20;  // then floats tell neighbours apart
  if (n < 2 || n > most) detail::fail("auc", str_cat(n, " thresholds are not from 2 to ", most), at);
  const auto batch = [&] {
    const AnyOutput checked = dflow::detail::any_assert_within(scores, 0, 1, scores, "[0, 1]", "auc", at);
    const Expr wanted =
        detail::of_one_shape("auc", detail::truth(labels), detail::cast_to(checked, DType::float64), at);
    const Expr weights = detail::weights_of("auc", options.weights, wanted, at);
    const AnyOutput buckets = detail::thresholds_below(detail::flattened(detail::cast_to(checked, DType::float32)), n);
    const auto sums = [&](const Expr& rows) -> Expr {
      const AnyOutput size = detail::int32_constant(*labels.graph(), static_cast<std::int32_t>(n + 1));
      return AnyOutput(build<UnsortedSegmentSum>({detail::flattened(detail::times(rows, weights)), buckets, size}));
    };
    return std::vector<detail::Total>{{"positives", sums(wanted)}, {"negatives", sums(1.0 - wanted)}};
  };
  const auto value_of = [n, curve = options.curve](std::span<const AnyOutput> totals) {
    return detail::area(totals, n, curve);
  };
  return detail::streaming("auc", labels, batch, value_of, at);
}

StreamingMetric recall_at_k(const AnyOutput& labels, const AnyOutput& scores, std::int64_t k,
                            const MetricOptions& options, const At& at) {
  constexpr std::string_view name = "recall_at_k";
  detail::require_dtype(name, "labels", labels, dtype_mask<IntTypes>, at);
  detail::require_dtype(name, "scores", scores, dtype_mask<RealTypes>, at);
  if (k < 1) detail::fail(name, str_cat("k is ", k), at);
  const PartialShape &of_labels = labels.shape(), &of_scores = scores.shape();
  bool fits = of_labels.has_rank() && of_scores.has_rank() && of_scores.rank() > 0;
  const int rank = fits ? of_scores.rank() - 1 : 0;
  const bool has_many = fits && of_labels.rank() == rank + 1;
  fits = fits && (has_many || of_labels.rank() == rank) &&
         of_labels.subshape(0, rank).is_compatible_with(of_scores.subshape(0, rank));
  if (!fits) {
    detail::fail(name,
                 str_cat(detail::described("labels", labels), " and ", detail::described("scores", scores),
                         " are not [...rows] or [...rows, labels], and [...rows, classes]"),
                 at);
  }
  const auto batch = [&] {
    GraphStore& graph = *labels.graph();
    const AnyOutput shape = build<ShapeOf>({scores});
    const auto extents = [&](const AnyOutput& of, std::int64_t begin, std::int64_t size) {
      return dflow::detail::any_slice(of, {begin}, {size}, {});
    };
    const AnyOutput count = build<Prod>({extents(shape, 0, rank), detail::int32_constant(graph, 0)});
    const auto matrix = [&](const AnyOutput& x, const AnyOutput& columns) {
      const AnyOutput to =
          build<Concat>({detail::int32_constant(graph, 0), detail::flattened(count), detail::flattened(columns)});
      return AnyOutput(build<Reshape>({x, to}));
    };
    const AnyOutput width =
        has_many ? extents(AnyOutput(build<ShapeOf>({labels})), rank, 1) : detail::int32_constant(graph, 1);
    const Expr wanted = detail::cast_to(matrix(labels, width), DType::int64);
    const Expr hits = detail::is_in_top(matrix(scores, extents(shape, rank, 1)), wanted, k);
    const Expr of_row = AnyOutput(build<Sum>({hits, detail::int32_constant(graph, 1)}));
    const Expr missed = Expr(detail::cast_to(width, DType::float64)) - of_row;
    Expr weights;
    if (options.weights.is_valid()) {
      const AnyOutput rows = build<Reshape>({of_row, extents(shape, 0, rank)});
      const AnyOutput known = build<EnsureShape>({rows}, {of_scores.subshape(0, rank)});
      weights = detail::flattened(detail::weights_of(name, options.weights, known, at));
    }
    return std::vector<detail::Total>{{"true_positives", detail::all_of(detail::times(of_row, weights))},
                                      {"false_negatives", detail::all_of(detail::times(missed, weights))}};
  };
  return detail::streaming(name, labels, batch, detail::first_by_sum, at);
}

StreamingMetric confusion_matrix(const AnyOutput& labels, const AnyOutput& predictions, std::int64_t num_classes,
                                 const MetricOptions& options, const At& at) {
  const auto matrix = [](std::span<const AnyOutput> totals) { return detail::typed(totals[0]); };
  return detail::of_confusion("confusion_matrix", labels, predictions, num_classes, options, matrix, at);
}
StreamingMetric mean_iou(const AnyOutput& labels, const AnyOutput& predictions, std::int64_t num_classes,
                         const MetricOptions& options, const At& at) {
  const auto value = [num_classes](std::span<const AnyOutput> totals) { return detail::iou(totals[0], num_classes); };
  return detail::of_confusion("mean_iou", labels, predictions, num_classes, options, value, at);
}

}  // namespace dflow::metrics
