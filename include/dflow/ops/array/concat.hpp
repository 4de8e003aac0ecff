#pragma once

#include <dflow/op/build.hpp>

#include <initializer_list>
#include <span>
#include <vector>

namespace dflow {

/// The values one after the other along dimension `concat_dim`.
struct Concat : StandardOp<"Concat", AllTypes> {
  using Inputs = In<std::int32_t, List<T>>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The position at which each tensor of these shapes begins in their concatenation.
struct ConcatOffset : StandardOp<"ConcatOffset", TypeList<std::int32_t>> {
  struct Attrs {
    std::int64_t count = 1;
  };
  using Inputs = In<std::int32_t, List<T>>;
  using Outputs = Out<List<T>>;
  static constexpr bool gradient_stops = true;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.count; }
  static void infer(InferContext& context);
};

/// The value cut into `num_split` equal parts along dimension `split_dim`.
struct Split : StandardOp<"Split", AllTypes> {
  struct Attrs {
    std::int64_t num_split = 1;
  };
  using Inputs = In<std::int32_t, T>;
  using Outputs = Out<List<T>>;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.num_split; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The values side by side along a new dimension.
struct Pack : StandardOp<"Pack", AllTypes> {
  struct Attrs {
    std::int64_t axis = 0;
  };
  using Inputs = In<List<T>>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The slices of the value along one dimension, which they lose.
struct Unpack : StandardOp<"Unpack", AllTypes> {
  struct Attrs {
    std::int64_t num = 0;
    std::int64_t axis = 0;
  };
  using Outputs = Out<List<T>>;
  static std::int64_t output_list_size(const Attrs& attrs) { return attrs.num; }
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

namespace detail {
AnyOutput any_concat(std::int32_t axis, std::span<const AnyOutput> values, const At& at = {});
std::vector<AnyOutput> any_split(std::int32_t axis, std::int64_t count, const AnyOutput& x, const At& at = {});
std::vector<AnyOutput> any_unpack(const AnyOutput& x, std::int64_t num, std::int64_t axis, const At& at = {});
/// The first `count` outputs of a node.
std::vector<AnyOutput> outputs_of(const BuiltNode& node, std::int64_t count);
/// The edges of the gradients of all outputs.
std::vector<AnyOutput> all_dy(const GradientContext& context);

template <class T>
std::vector<Output<T>> typed(const std::vector<AnyOutput>& edges) {
  std::vector<Output<T>> outputs;
  outputs.reserve(edges.size());
  for (const AnyOutput& edge : edges) outputs.push_back(Output<T>::unchecked(edge));
  return outputs;
}
}  // namespace detail

/// [2, 3] and [4, 3] along axis 0 give [6, 3].
///
/// Errors: InvalidArgument if there are no values, axis is outside [-rank, rank), or the values differ in rank or in
/// another dimension.
template <AllowedFor<Concat> T>
Output<T> concat(std::int32_t axis, const std::vector<Output<T>>& values, const At& at = {}) {
  return Output<T>::unchecked(detail::any_concat(axis, std::vector<AnyOutput>(values.begin(), values.end()), at));
}
template <AllowedFor<Concat> T>
Output<T> concat(std::int32_t axis, std::initializer_list<Output<T>> values, const At& at = {}) {
  return concat(axis, std::vector<Output<T>>(values), at);
}
/// The same with the axis last, as TensorFlow has it since 1.0.
template <AllowedFor<Concat> T>
Output<T> concat(const std::vector<Output<T>>& values, std::int32_t axis, const At& at = {}) {
  return concat(axis, values, at);
}
template <AllowedFor<Concat> T>
Output<T> concat(std::initializer_list<Output<T>> values, std::int32_t axis, const At& at = {}) {
  return concat(axis, std::vector<Output<T>>(values), at);
}

/// x: [n * count, ...] gives `count` tensors [n, ...], cut along `axis`; along the first dimension they share x's
/// memory.
///
/// Errors: InvalidArgument if count is below 1 or does not divide the dimension, or axis is outside [-rank, rank).
template <AllowedFor<Split> T>
std::vector<Output<T>> split(std::int32_t axis, std::int64_t count, const Output<T>& x, const At& at = {}) {
  return detail::typed<T>(detail::any_split(axis, count, x, at));
}
/// The same with the axis last, as TensorFlow has it since 1.0.
template <AllowedFor<Split> T>
std::vector<Output<T>> split(const Output<T>& x, std::int64_t count, std::int32_t axis, const At& at = {}) {
  return split(axis, count, x, at);
}

/// n tensors [d0, ...] give [n, d0, ...]; with an axis, the new dimension goes there.
///
/// Errors: InvalidArgument if there are no values, their shapes differ, or axis is outside [-rank-1, rank].
template <AllowedFor<Pack> T>
Output<T> pack(const std::vector<Output<T>>& values, Pack::Attrs attrs = {}, const At& at = {}) {
  const std::vector<AnyOutput> edges(values.begin(), values.end());
  return Output<T>::unchecked(build<Pack>(std::span<const AnyOutput>(edges), attrs, at));
}
template <AllowedFor<Pack> T>
Output<T> pack(std::initializer_list<Output<T>> values, Pack::Attrs attrs = {}, const At& at = {}) {
  return pack(std::vector<Output<T>>(values), attrs, at);
}

/// x: [num, ...] gives `num` tensors [...]; with an axis, along that dimension.
///
/// Errors: InvalidArgument if the dimension is not num, or axis is outside [-rank, rank).
template <AllowedFor<Unpack> T>
std::vector<Output<T>> unpack(const Output<T>& x, std::int64_t num, std::int64_t axis = 0, const At& at = {}) {
  return detail::typed<T>(detail::any_unpack(x, num, axis, at));
}

}  // namespace dflow
