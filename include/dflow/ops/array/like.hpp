#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// Zeros (false, empty strings) in the shape of the input.
struct ZerosLike : StandardOp<"ZerosLike", AllTypes> {
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// Ones (true) in the shape of the input.
struct OnesLike : StandardOp<"OnesLike", PlainTypes> {
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The input itself, its buffer shared.
struct Identity : StandardOp<"Identity", AllTypes> {
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The input itself, as a constant to gradients.
struct StopGradient : StandardOp<"StopGradient", AllTypes> {
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

namespace detail {
/// x in the type `to` as the last node of a builder, which has the name of `at`.
AnyOutput cast_or_name(const AnyOutput& x, DType to, const At& at);
}  // namespace detail

/// A tensor of zeros (false, empty strings) with the shape of x.
template <AllowedFor<ZerosLike> T>
Output<T> zeros_like(const Output<T>& x, const At& at = {}) {
  return apply<ZerosLike>(x, {}, at);
}

/// A tensor of ones (true) with the shape of x.
template <AllowedFor<OnesLike> T>
Output<T> ones_like(const Output<T>& x, const At& at = {}) {
  return apply<OnesLike>(x, {}, at);
}

/// x under another name, or on another device; its elements are not copied.
template <AllowedFor<Identity> T>
Output<T> identity(const Output<T>& x, const At& at = {}) {
  return apply<Identity>(x, {}, at);
}

/// x; `gradients` takes it for a constant and does not differentiate through it.
template <AllowedFor<StopGradient> T>
Output<T> stop_gradient(const Output<T>& x, const At& at = {}) {
  return apply<StopGradient>(x, {}, at);
}

}  // namespace dflow
