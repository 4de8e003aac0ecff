#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// `on_value` at the positions that indices name along a new dimension of size `depth`, `off_value` elsewhere.
struct OneHot : StandardOp<"OneHot", AllTypes, TypeList<std::uint8_t, std::int32_t, std::int64_t>> {
  struct Attrs {
    /// The position of the new dimension; -1 is behind all others.
    std::int64_t axis = -1;
  };
  using Inputs = In<U, std::int32_t, T, T>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "TI"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_one_hot(const AnyOutput& indices, std::int32_t depth, AnyTensor on, AnyTensor off, OneHot::Attrs attrs,
                      const At& at);
}  // namespace detail

/// indices: [d0, ..., dn] gives [d0, ..., dn, depth], or the new dimension at `axis`. An element is 1 if its position
/// along this dimension is the index, else 0; an index outside [0, depth) gives zeros only.
///
/// ```cpp
/// auto targets = df::one_hot<float>(labels, 10);   // [batch] to [batch, 10]
/// ```
/// Errors: InvalidArgument if depth is negative or axis outside [-1, rank].
template <AllowedFor<OneHot> T, AllowedForParam<OneHot, 1> I>
  requires contains_v<T, PlainTypes>
Output<T> one_hot(const Output<I>& indices, std::int32_t depth, OneHot::Attrs attrs = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_one_hot(indices, depth, Tensor<T>(T(1)), Tensor<T>(T(0)), attrs, at));
}
/// The same with other values for on and off, which are scalars.
template <class I, class D, class A, class B>
  requires Accepts<OneHot, I, D, A, B>
Output<ElementFor<OneHot, I, D, A, B>> one_hot(const I& indices, const D& depth, const A& on_value, const B& off_value,
                                               OneHot::Attrs attrs = {}, const At& at = {}) {
  return apply<OneHot>(indices, depth, on_value, off_value, attrs, at);
}

}  // namespace dflow
