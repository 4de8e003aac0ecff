#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// The bytes of the input as elements of another type.
struct Bitcast : StandardOp<"Bitcast", NumberTypes, NumberTypes> {
  using Inputs = In<T>;
  using Outputs = Out<U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "type"};
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The bytes of x as elements of type `To`, in the processor's order of bytes. Elements of the same size keep the
/// shape. If those of x are larger by a factor of k, x: [...] gives [..., k]; if they are smaller, x: [..., k] gives
/// [...]. The elements are not copied, unless they lie where `To` must not.
///
/// ```cpp
/// auto bits = df::bitcast<std::uint32_t>(x);  // of a float
/// ```
/// Errors: InvalidArgument if elements are smaller and the last dimension is not k.
template <Element To, AllowedFor<Bitcast> T>
  requires AllowedForParam<To, Bitcast, 1>
Output<To> bitcast(const Output<T>& x, const At& at = {}) {
  return Output<To>::unchecked(build<Bitcast>({x}, {}, at, type_args<T, To>()).output(0));
}

}  // namespace dflow
