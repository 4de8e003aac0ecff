#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>

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

}  // namespace dflow
