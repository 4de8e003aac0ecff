#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

namespace dflow {

/// The stream of a random op: Philox 4x32-10 keyed by `seed`, its counter's upper half `seed2`. If both are 0, the
/// device draws two seeds. The device keeps the position in the stream beside the variables, under the node's name and
/// seeds.
struct RandomAttrs {
  std::int64_t seed = 0;
  std::int64_t seed2 = 0;
};

/// Numbers from [0, 1), of a given shape.
///
/// For all ops of this file, element i of the k-th run depends on the seeds, k, i and the number of elements of the
/// runs before. Any number of threads gives the same bits. For the same two seeds they are TensorFlow's bits.
struct RandomUniform : StatefulOp<"RandomUniform", FloatTypes, IndexTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<U>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "T"};
  static void infer(InferContext& context);
};

/// Integers from [minval, maxval): shape, minval, maxval. If the size of the range does not divide 2^32 (int32) or 2^64
/// (int64), the lower numbers are more likely, by one part in 2^32 / (maxval - minval) at most.
struct RandomUniformInt : StatefulOp<"RandomUniformInt", IndexTypes, IndexTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<U, T, T>;
  static constexpr std::array<std::string_view, 2> type_names{"Tout", "T"};
  static void infer(InferContext& context);
};

/// Numbers with mean 0 and standard deviation 1 (Box and Muller 1958).
struct RandomStandardNormal : StatefulOp<"RandomStandardNormal", FloatTypes, IndexTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<U>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "T"};
  static void infer(InferContext& context);
};

/// Normal numbers; a number beyond two standard deviations is drawn again.
struct TruncatedNormal : StatefulOp<"TruncatedNormal", FloatTypes, IndexTypes> {
  using Attrs = RandomAttrs;
  using Inputs = In<U>;
  static constexpr std::array<std::string_view, 2> type_names{"dtype", "T"};
  static void infer(InferContext& context);
};

/// Numbers are at least `minval` and below `maxval`, however the element type rounds them. If the two are equal, every
/// number is `minval`. Errors: InvalidArgument for `minval` above `maxval`, and for a range that is not finite.
struct UniformOptions {
  double minval = 0;
  double maxval = 1;
  std::uint64_t seed = 0;  ///< 0: from the graph's seed, or another seed on each device
};

template <class T>
struct UniformIntOptions {
  T minval = 0;
  T maxval = 0;
  std::uint64_t seed = 0;  ///< as in UniformOptions
};

struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  std::uint64_t seed = 0;  ///< as in UniformOptions
};

namespace detail {
AnyOutput any_random_uniform(GraphStore& graph, DType dtype, const IndexList& shape, const UniformOptions& options,
                             const At& at);
AnyOutput any_random_uniform_int(GraphStore& graph, const IndexList& shape, AnyTensor minval, AnyTensor maxval,
                                 std::uint64_t seed, const At& at);
AnyOutput any_random_normal(GraphStore& graph, DType dtype, const IndexList& shape, const NormalOptions& options,
                            const At& at);
AnyOutput any_truncated_normal(GraphStore& graph, DType dtype, const IndexList& shape, const NormalOptions& options,
                               const At& at);
}  // namespace detail

/// A tensor of the given shape, drawn anew in each step from [minval, maxval).
///
/// ```cpp
/// auto noise = df::random_uniform<float>(graph, {128, 784}, {.minval = -1, .maxval = 1});
/// ```
/// Errors: InvalidArgument if a dimension is negative, or maxval is less than minval.
template <AllowedFor<RandomUniform> T>
Output<T> random_uniform(Graph& graph, const IndexList& shape, const UniformOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_uniform(*graph.store(), dtype_of<T>, shape, options, at));
}

/// A tensor of the given shape, drawn anew in each step from the integers of [minval, maxval).
///
/// Errors: InvalidArgument if a dimension is negative, or maxval is not greater than minval.
template <AllowedFor<RandomUniformInt> T>
Output<T> random_uniform_int(Graph& graph, const IndexList& shape, const UniformIntOptions<T>& options,
                             const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_uniform_int(*graph.store(), shape, Tensor<T>(options.minval),
                                                             Tensor<T>(options.maxval), options.seed, at));
}

/// A tensor of the given shape, drawn anew in each step from the normal distribution.
///
/// Errors: InvalidArgument if a dimension or the standard deviation is negative.
template <AllowedFor<RandomStandardNormal> T>
Output<T> random_normal(Graph& graph, const IndexList& shape, const NormalOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_random_normal(*graph.store(), dtype_of<T>, shape, options, at));
}

/// As `random_normal`, but a number further than 2 `stddev` from `mean` is drawn again.
///
/// ```cpp
/// df::Variable<float> w(graph, df::truncated_normal<float>(graph, {784, 10}, {.stddev = 0.1f}));
/// ```
template <AllowedFor<TruncatedNormal> T>
Output<T> truncated_normal(Graph& graph, const IndexList& shape, const NormalOptions& options = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_truncated_normal(*graph.store(), dtype_of<T>, shape, options, at));
}

}  // namespace dflow
