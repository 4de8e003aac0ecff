#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/state/typed_variable.hpp>

#include <cstdint>

namespace dflow {

/// Counts a variable that is a scalar up by one, as long as it is below `limit`, and gives what it was: handle -> [].
/// Any number of steps may count at once; each gets a number of its own.
struct CountUpTo : StatefulOp<"CountUpTo", IndexTypes> {
  struct Attrs {
    std::int64_t limit = 0;
    /// A variable without a value begins at 0; else that is FailedPrecondition.
    bool begins_at_zero = false;
  };
  using Inputs = In<ResourceHandle>;
  static void infer(InferContext& context);
};

struct CountOptions {
  /// Begin at 0 where the variable has no value yet.
  bool begins_at_zero = false;
};

namespace detail {
AnyOutput any_count_up_to(const AnyVariable& variable, const CountUpTo::Attrs& attrs, const At& at);
}  // namespace detail

/// The variable's value, which is one more afterwards: of steps that run one after the other n, n + 1, ..., limit - 1.
///
/// Errors: InvalidArgument unless the variable is a scalar; in the step OutOfRange once it has reached the limit, which
/// it does not exceed, and FailedPrecondition where it has no value.
template <AllowedFor<CountUpTo> T>
Output<T> count_up_to(const Variable<T>& variable, std::int64_t limit, const CountOptions& options = {},
                      const At& at = {}) {
  return Output<T>::unchecked(detail::any_count_up_to(variable.any_variable(), {limit, options.begins_at_zero}, at));
}

}  // namespace dflow
