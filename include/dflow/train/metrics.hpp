#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/variable.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

namespace dflow {

namespace detail {
/// Checks the known part of the shapes. Errors: InvalidArgument.
inline void require_label_per_row(const AnyOutput& logits, const AnyOutput& labels, const At& at) {
  if (!logits.is_valid() || !labels.is_valid()) return;  // the ops below report it
  const PartialShape &rows = logits.shape(), &of = labels.shape();
  if (!rows.has_rank()) return;
  if (rows.rank() > 0 && rows.subshape(0, rows.rank() - 1).is_compatible_with(of)) return;
  throw_error(Status::invalid_argument(str_cat("accuracy: logits of shape ", rows.to_string(), " and labels of shape ",
                                               of.to_string(), ", wanted [...batch, classes] and [...batch]"))
                  .with_location(at.where));
}
}  // namespace detail

/// The share of rows with the largest logit at the row's label: logits [...batch, classes], labels [...batch] gives a
/// scalar. A row of NaN has label 0, as in TensorFlow.
///
/// Errors: InvalidArgument unless the known shapes are rows of logits and one label for each row. If only a step
/// knows the shapes, the step fails for other shapes.
template <AllowedFor<ArgMax> T, detail::ArgumentOf<IntTypes> Labels>
Output<float> accuracy(const Output<T>& logits, const Labels& given, const At& at = {}) {
  const At here{.where = at.where};
  using Label = typename detail::ElementAmong<Labels, IntTypes>::type;
  const auto labels = Output<Label>::unchecked(detail::edge_beside<IntTypes>(logits, given, at));
  detail::require_label_per_row(logits, labels, at);
  const Output<std::int64_t> predicted = argmax(logits, -1, here);
  Output<std::int64_t> wanted = cast<std::int64_t>(labels, here);
  if (!predicted.shape().is_fully_defined() || !wanted.shape().is_fully_defined()) {
    // A step with other shapes is refused, which broadcasting would take: Select wants one shape of both.
    wanted = apply<Select>(true, wanted, predicted, {}, here);
  }
  return reduce_mean(cast<float>(equal(predicted, wanted, here), here), {}, {}, at);
}

/// Metrics over a stream of batches: TensorFlow's `tf.metrics`. Each keeps totals in variables of this task.
namespace metrics {

/// A metric over all batches since its reset.
///
/// ```cpp
/// auto auc = df::metrics::auc(labels, scores);
/// session.run(auc.reset);
/// for (const auto& [x, y] : batches) session.run({{images, x}, {labels, y}}, auc.update);
/// double area = session.run(auc.value).scalar();
/// ```
/// Totals are doubles, so counts up to 2^53 are exact. They are local variables (`VariableOptions::local`): not
/// trained, not saved, and on the task in whose device scope the metric was built, also under `train::replica_device`.
/// `train::fit` resets a metric at the beginning of each epoch and of each validation.
///
/// Thread safety: a value type. If steps update a metric side by side, no batch is lost, but a `value` beside them may
/// have a batch in some totals only.
/// Errors: FailedPrecondition in a step before `reset` or `initialize_local_variables`.
struct StreamingMetric {
  Output<double> value;    ///< of the totals as they are; 0 if there are no rows yet
  Output<double> updated;  ///< updates, and is the value with the batch of this step
  Operation update;        ///< adds the batch of this step
  Operation reset;         ///< sets the totals to 0
  /// The totals. Totals of several tasks add up, by `merged`, `all_reduce` or in the caller's program.
  std::vector<AnyVariable> totals;
  /// Builds the value of other totals, double edges in the order of `totals`.
  std::function<Output<double>(std::span<const AnyOutput> totals)> value_of;
};

/// The value over the batches of several metrics that one function has made, for example one on each task.
///
/// ```cpp
/// auto everywhere = df::metrics::merged({of_task[0], of_task[1], of_task[2]});
/// ```
/// Errors: InvalidArgument if there are none, and if the totals have different shapes.
Output<double> merged(std::span<const StreamingMetric> metrics, const At& at = {});
inline Output<double> merged(std::initializer_list<StreamingMetric> metrics, const At& at = {}) {
  return merged(std::span<const StreamingMetric>(metrics.begin(), metrics.size()), at);
}

struct MetricOptions {
  /// Real numbers: a scalar, or the rank of the rows with each dimension equal or 1. A row of weight 0 does not count.
  AnyOutput weights = {};
};

// In the functions below labels and predictions have one shape, any rank, and each pair of elements is a row, unless
// the function says something else. An edge may have any element type that the function names.
//
// Errors: InvalidArgument for other element types, and for shapes that do not fit; in the step, if it alone knows them.

/// The mean of real numbers or bools.
StreamingMetric mean(const AnyOutput& values, const MetricOptions& options = {}, const At& at = {});
/// The share of rows whose label is the prediction. labels and predictions: integers, or elements of one type. For
/// logits give `argmax(logits, -1)`.
StreamingMetric accuracy(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options = {},
                         const At& at = {});
/// The mean of (label - prediction)^2, of real numbers, and its square root.
StreamingMetric mean_squared_error(const AnyOutput& labels, const AnyOutput& predictions,
                                   const MetricOptions& options = {}, const At& at = {});
StreamingMetric root_mean_squared_error(const AnyOutput& labels, const AnyOutput& predictions,
                                        const MetricOptions& options = {}, const At& at = {});
/// The share of true labels among the rows with a true prediction, and of true predictions among the rows with a true
/// label. labels and predictions: bools, or numbers of which 0 is false.
StreamingMetric precision(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options = {},
                          const At& at = {});
StreamingMetric recall(const AnyOutput& labels, const AnyOutput& predictions, const MetricOptions& options = {},
                       const At& at = {});

/// x and y of the curve whose area `auc` measures.
enum class Curve : std::uint8_t {
  roc,  ///< share of false labels above a threshold, share of true labels above it
  pr,   ///< recall, precision
};
struct AucOptions {
  /// 0 and 1, each moved outward by 1e-7, and others evenly between: from 2 to 2^20.
  std::int64_t num_thresholds = 200;
  Curve curve = Curve::roc;
  AnyOutput weights = {};
};
/// The area under a curve through the thresholds, by the trapezoidal rule, with TensorFlow's 1e-6 in each quotient.
/// labels: bools, or numbers of which 0 is false. scores: floats in [0, 1], compared as float.
///
/// Errors: also InvalidArgument in the step for a score outside [0, 1] or NaN, with its position.
StreamingMetric auc(const AnyOutput& labels, const AnyOutput& scores, const AucOptions& options = {},
                    const At& at = {});

/// The share of labels that are among the k classes with the largest scores of their row. With one label for each row
/// it is the top-k accuracy. Of equal scores the lower class is the larger, as in `tf.nn.top_k`.
///
/// labels: integers [...rows], or [...rows, labels]; a label that is no class is a miss. scores: real numbers
/// [...rows, classes], of known rank. weights: of rows. A label that a row has twice counts twice.
StreamingMetric recall_at_k(const AnyOutput& labels, const AnyOutput& scores, std::int64_t k,
                            const MetricOptions& options = {}, const At& at = {});

/// How many rows with label i have prediction j: [num_classes, num_classes].
///
/// labels, predictions: integers in [0, num_classes). Errors: also InvalidArgument in the step for others, with the
/// position of the first.
StreamingMetric confusion_matrix(const AnyOutput& labels, const AnyOutput& predictions, std::int64_t num_classes,
                                 const MetricOptions& options = {}, const At& at = {});
/// The mean over the classes of intersection / union, where a class is the set of the rows that have it. A class
/// without rows does not count. Otherwise as `confusion_matrix`.
StreamingMetric mean_iou(const AnyOutput& labels, const AnyOutput& predictions, std::int64_t num_classes,
                         const MetricOptions& options = {}, const At& at = {});

}  // namespace metrics

}  // namespace dflow
