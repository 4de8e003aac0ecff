#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/nn/pool2d.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// Attributes of MaxPoolWithArgmax. `ksize` (the window) and `strides` apply to the input's dimensions: [1, rows,
/// columns, 1].
struct MaxPoolArgmaxAttrs {
  std::vector<std::int64_t> ksize{1, 1, 1, 1};
  std::vector<std::int64_t> strides{1, 1, 1, 1};
  Padding padding = Padding::valid;
  bool include_batch_in_index = false;  ///< indices count from the first image, not from the element's own
};

/// The largest element of each window, and its index.
struct MaxPoolWithArgmax : StandardOp<"MaxPoolWithArgmax", RealTypes, IndexTypes> {
  using Attrs = MaxPoolArgmaxAttrs;
  using Inputs = In<T>;
  using Outputs = Out<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Targmax"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The outputs of `max_pool_with_argmax`, both [batch, out_rows, out_columns, channels].
template <Element T, Element I>
struct MaxPoolArgmaxResult {
  Output<T> output;
  Output<I> argmax;
};

namespace detail {
/// The windows alone.
Pool2DAttrs windows_of(const MaxPoolArgmaxAttrs& attrs);
AnyOutput any_max_pool_grad_with_argmax(const AnyOutput& x, const AnyOutput& grad, const AnyOutput& argmax,
                                        bool include_batch_in_index, const At& at);
}  // namespace detail

/// As `max_pool`, with the index of each maximum. The index of x[b, i, j, c] is (i * in_columns + j) * channels + c.
/// With `include_batch_in_index` the index is larger by b * in_rows * in_columns * channels. The first of equal maxima
/// counts, and a NaN counts as a maximum.
///
/// ```cpp
/// auto [y, places] = df::max_pool_with_argmax(x, {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}});
/// ```
/// Errors: as max_pool; in the step, if an index does not fit in I.
template <Element I = std::int64_t, class T>
  requires contains_v<T, RealTypes> && contains_v<I, IndexTypes>
MaxPoolArgmaxResult<T, I> max_pool_with_argmax(const Output<T>& x, MaxPoolArgmaxAttrs attrs, const At& at = {}) {
  const BuiltNode node = build<MaxPoolWithArgmax>({x}, std::move(attrs), at, type_args<T, I>());
  return {Output<T>::unchecked(node.output(0)), Output<I>::unchecked(node.output(1))};
}

/// TensorFlow's MaxPoolGradWithArgmax: in the shape of x, the sums of the elements of grad whose windows had their
/// maximum there, by the indices of max_pool_with_argmax. grad and argmax have one shape. It is a composition with
/// gradients by grad of any order.
///
/// Errors: InvalidArgument unless x has rank 4 and grad and argmax have one shape, or if x has 2^31 elements or more;
/// in the step if an index is outside of its image.
template <class T, class I>
  requires contains_v<T, FloatTypes> && contains_v<I, IndexTypes>
Output<T> max_pool_grad_with_argmax(const Output<T>& x, const std::type_identity_t<Output<T>>& grad,
                                    const Output<I>& argmax, bool include_batch_in_index = false, const At& at = {}) {
  return Output<T>::unchecked(detail::any_max_pool_grad_with_argmax(x, grad, argmax, include_batch_in_index, at));
}

}  // namespace dflow
