#pragma once

#include <dflow/op/build.hpp>

#include <initializer_list>
#include <vector>

namespace dflow {

/// The sum of any number of tensors of one shape.
struct AddN : StandardOp<"AddN", NumberTypes> {
  using Inputs = In<List<T>>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// values: one or more tensors of one shape. The sum has the same shape; nothing is broadcast.
///
/// Errors: InvalidArgument if there are no values or their shapes differ.
template <AllowedFor<AddN> T>
Output<T> add_n(const std::vector<Output<T>>& values, const At& at = {}) {
  const std::vector<AnyOutput> edges(values.begin(), values.end());
  return Output<T>::unchecked(build<AddN>(std::span<const AnyOutput>(edges), {}, at));
}
template <AllowedFor<AddN> T>
Output<T> add_n(std::initializer_list<Output<T>> values, const At& at = {}) {
  return add_n(std::vector<Output<T>>(values), at);
}

}  // namespace dflow
