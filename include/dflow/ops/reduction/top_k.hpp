#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <tuple>

namespace dflow {

/// The largest elements of each row and their positions: input [...rows, n], k, a scalar -> values [...rows, k],
/// indices [...rows, k].
struct TopKV2 : StandardOp<"TopKV2", RealTypes> {
  struct Attrs {
    bool sorted = true;  ///< the largest element first; else the elements are in the order of their positions
  };
  using Inputs = In<T, std::int32_t>;
  using Outputs = Out<T, std::int32_t>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// Tells for each row whether less than k classes have a larger prediction than the target class: predictions [batch,
/// classes], targets [batch] -> [batch].
struct InTopK : StandardOp<"InTopK", FloatTypes, IndexTypes> {
  struct Attrs {
    std::int64_t k = 1;
  };
  using Inputs = In<T, U>;
  using Outputs = Out<bool>;
  static constexpr std::array<std::string_view, 2> type_names{"Tpredictions", "T"};
  static constexpr bool gradient_stops = true;
  static void infer(InferContext& context);
};

/// The result of `top_k`.
template <class T>
struct TopK {
  Output<T> values;              ///< [...rows, k]
  Output<std::int32_t> indices;  ///< [...rows, k], positions along the last axis
};

/// The k largest elements of each row of input [...rows, n], with k in [0, n], an int32 scalar: numbers [...rows, k]
/// and their positions. Of equal elements the one with the lower position is the larger. NaN is larger than all
/// numbers. The gradient goes to the elements that were taken.
///
/// ```cpp
/// auto [scores, classes] = df::top_k(df::softmax(logits), 5);
/// ```
/// Errors: InvalidArgument for a scalar input, for a negative k and for a k above n.
template <class A, class K>
  requires Accepts<TopKV2, A, K>
TopK<ElementFor<TopKV2, A, K>> top_k(const A& input, const K& k, TopKV2::Attrs attrs = {}, const At& at = {}) {
  const auto [values, indices] = apply<TopKV2>(input, k, attrs, at);
  return {values, indices};
}

/// predictions [batch, classes], targets [batch], int32 or int64 -> [batch], true where the target is among the k
/// classes with the largest predictions. Classes with the prediction of the target do not count as larger, so all
/// classes that share the last place are among the first k. False for a target outside [0, classes), and in rows with a
/// prediction that is not finite. k may be larger than the number of classes.
///
/// Errors: InvalidArgument if the shapes do not fit, and for a negative k.
template <class A, class B>
  requires Accepts<InTopK, A, B>
Output<bool> in_top_k(const A& predictions, const B& targets, std::int64_t k, const At& at = {}) {
  return apply<InTopK>(predictions, targets, {.k = k}, at);
}

}  // namespace dflow
