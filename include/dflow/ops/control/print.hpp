#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

/// Passes its first input on, and writes the others to the standard error stream.
struct Print : StandardOp<"Print", AllTypes> {
  struct Attrs {
    std::string message = {};
    std::int64_t first_n = -1;   ///< number of times; below 0: always
    std::int64_t summarize = 3;  ///< elements of each tensor; below 0: all
    std::vector<DType> U = {};   ///< of the written inputs, as in TensorFlow's graphs, or none
  };
  using Inputs = In<T, AnyList>;
  static constexpr bool is_stateful = true;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_print(const AnyOutput& value, std::span<const AnyOutput> data, Print::Attrs attrs, const At& at);
}  // namespace detail

/// value, unchanged. When a node reads the result, the tensors `data` are written in one line, as TensorFlow's `Print`
/// does: `loss: [0.25][[1 2][3...]...]`. The gradient is the gradient of the identity.
///
/// ```cpp
/// auto y = df::print(x, {loss, step}, "loss: ", {.first_n = 10});
/// ```
/// The steps of a session count together. Lines of kernels that run at the same time are not mixed.
template <AllowedFor<Print> T>
Output<T> print(const Output<T>& value, std::initializer_list<AnyOutput> data, std::string message = {},
                Print::Attrs attrs = {}, const At& at = {}) {
  attrs.message = std::move(message);
  return Output<T>::unchecked(detail::any_print(value, std::span(data.begin(), data.size()), std::move(attrs), at));
}

}  // namespace dflow
