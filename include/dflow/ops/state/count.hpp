#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <cstdint>

namespace dflow {

/// Adds one to a scalar variable if its value is below `limit`, and gives its value before: handle -> []. Any number of
/// steps may count at once; each step gets a number of its own.
struct CountUpTo : StatefulOp<"CountUpTo", IndexTypes> {
  struct Attrs {
    std::int64_t limit = 0;
    /// If true, a variable without a value begins at 0. If false, the step fails with FailedPrecondition.
    bool begins_at_zero = false;
  };
  using Inputs = In<ResourceHandle>;
  static void infer(InferContext& context);
};

struct CountOptions {
  /// Begin at 0 if the variable has no value yet.
  bool begins_at_zero = false;
};

namespace detail {
AnyOutput any_count_up_to(const AnyVariable& variable, const CountUpTo::Attrs& attrs, const At& at);
}  // namespace detail

/// The variable's value before one is added to it. Steps that run one after the other get n, n + 1, ..., limit - 1.
///
/// Errors: InvalidArgument unless the variable is a scalar. In the step, OutOfRange once the variable has reached the
/// limit, which it does not exceed, and FailedPrecondition if it has no value.
template <AllowedFor<CountUpTo> T>
Output<T> count_up_to(const Variable<T>& variable, std::int64_t limit, const CountOptions& options = {},
                      const At& at = {}) {
  return Output<T>::unchecked(detail::any_count_up_to(variable.any_variable(), {limit, options.begins_at_zero}, at));
}

}  // namespace dflow
