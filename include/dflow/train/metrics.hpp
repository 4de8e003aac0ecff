#pragma once

#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/reduction/reduce.hpp>

namespace dflow {

/// The share of rows whose largest logit is that of their label: logits [batch, classes], labels [batch] gives a
/// scalar.
///
/// Errors: InvalidArgument unless logits is a matrix and labels a vector.
template <AllowedFor<ArgMax> T, AllowedForParam<Cast, 0> Label>
  requires is_integer_element<Label>
Output<float> accuracy(const Output<T>& logits, const Output<Label>& labels, const At& at = {}) {
  const At here{.where = at.where};
  const Output<std::int64_t> predicted = argmax(logits, 1, here);
  return reduce_mean(cast<float>(equal(predicted, cast<std::int64_t>(labels, here), here), here), {}, {}, at);
}

}  // namespace dflow
