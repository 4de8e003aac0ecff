#pragma once

#include <dflow/core/sum_type.hpp>
#include <dflow/op/build.hpp>

namespace dflow {

/// Converts between element types.
struct Cast : StandardOp<"Cast", PlainTypes, PlainTypes> {
  using Inputs = In<T>;
  using Outputs = Out<U>;
  static constexpr std::array<std::string_view, 2> type_names{"SrcT", "DstT"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// x with its elements converted to `To`. A float becomes an integer by dropping its fraction. A float outside the
/// range of the integer type becomes the nearest integer in range; a NaN becomes 0. A complex number becomes its real
/// part. A cast to bool tells whether the number differs from 0. Casting to the type that x already has returns x.
///
/// ```cpp
/// auto y = df::cast<float>(labels);
/// ```
template <Element To, AllowedFor<Cast> T>
  requires AllowedForParam<To, Cast, 1>
Output<To> cast(const Output<T>& x, const At& at = {}) {
  if constexpr (std::same_as<To, T>) {
    return x;
  } else {
    return Output<To>::unchecked(build<Cast>({x}, {}, at, type_args<T, To>()).output(0));
  }
}

namespace detail {
/// The same for edges with an element type known only at run time.
AnyOutput cast_to(const AnyOutput& x, DType to, const At& at = {});

/// x in the type of sums of its elements: as float if its elements have 16 bits. Squares and factors of 16-bit floats
/// may be beyond their range, too.
AnyOutput widened(const AnyOutput& x);
}  // namespace detail

}  // namespace dflow
