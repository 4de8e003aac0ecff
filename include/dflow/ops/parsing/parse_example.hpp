#pragma once

#include <dflow/io/records/example_parser.hpp>
#include <dflow/ops/parsing/parsing_op.hpp>
#include <dflow/ops/sparse_output.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow {

/// The features of a batch of Examples. Inputs: serialized [batch], names [batch] or [0] for messages, a key per
/// feature, and a default per dense feature; a default without elements makes the feature required. A sparse feature
/// gives indices [values, 2], values [values] and shape [2]. A dense feature gives [batch, its shape].
struct ParseExample : ParsingOp<"ParseExample"> {
  struct Attrs {
    std::int64_t Nsparse = 0;
    std::int64_t Ndense = 0;
    std::vector<DType> sparse_types = {};
    std::vector<DType> Tdense = {};
    std::vector<PartialShape> dense_shapes = {};
  };
  using Inputs =
      In<std::string, std::string, List<std::string, "Nsparse">, List<std::string, "Ndense">, TypedList<"Tdense">>;
  using Outputs =
      Out<List<std::int64_t, "Nsparse">, TypedList<"sparse_types">, List<std::int64_t, "Nsparse">, TypedList<"Tdense">>;
  static void infer(InferContext& context);
};

/// The same for one Example, serialized [], without the batch dimension: a sparse feature gives indices [values, 1] and
/// shape [1].
struct ParseSingleExample : ParsingOp<"ParseSingleExample"> {
  struct Attrs {
    std::int64_t num_sparse = 0;
    std::vector<std::string> sparse_keys = {};
    std::vector<std::string> dense_keys = {};
    std::vector<DType> sparse_types = {};
    std::vector<DType> Tdense = {};
    std::vector<PartialShape> dense_shapes = {};
  };
  using Inputs = In<std::string, TypedList<"Tdense">>;
  using Outputs = Out<List<std::int64_t, "num_sparse">, TypedList<"sparse_types">, List<std::int64_t, "num_sparse">,
                      TypedList<"Tdense">>;
  static void infer(InferContext& context);
};

/// A feature with the same number of values in each Example. Its output is a dense tensor. If the first dimension of
/// its shape is `dynamic`, examples are padded to the longest, with the default or 0. Any other feature is required if
/// it has no default.
template <FeatureElement T>
struct FixedLenFeature {
  std::string key;
  PartialShape shape = Shape{};  ///< of one Example's values
  /// A tensor of `shape`, or one element that stands for all.
  std::optional<Tensor<T>> default_value = {};
};

/// A feature with any number of values. Its output is a sparse tensor.
template <FeatureElement T>
struct VarLenFeature {
  std::string key;
};

namespace detail {

template <class Feature>
struct FeatureOutput;
template <class T>
struct FeatureOutput<FixedLenFeature<T>> {
  using type = Output<T>;
};
template <class T>
struct FeatureOutput<VarLenFeature<T>> {
  using type = SparseOutput<T>;
};

template <class T>
void add_to_spec(const FixedLenFeature<T>& feature, FeaturesSpec& spec) {
  spec.dense.push_back({feature.key, dtype_of<T>, feature.shape, feature.default_value});
}
template <class T>
void add_to_spec(const VarLenFeature<T>& feature, FeaturesSpec& spec) {
  spec.sparse.push_back({feature.key, dtype_of<T>});
}

template <class... Features>
FeaturesSpec spec_of(const std::tuple<Features...>& features) {
  FeaturesSpec spec;
  std::apply([&](const auto&... feature) { (add_to_spec(feature, spec), ...); }, features);
  return spec;
}

/// Hands out the outputs of a node that parses, in the order of its features. The outputs of the `sparse` sparse
/// features begin at `first`; the outputs of dense features follow.
class FeatureOutputs {
 public:
  FeatureOutputs(const BuiltNode& node, std::size_t sparse, int first = 0)
      : node_(node), num_sparse_(static_cast<int>(sparse)), sparse_(first), dense_(first + 3 * num_sparse_) {}

  template <class T>
  Output<T> take(const FixedLenFeature<T>&) {
    return Output<T>::unchecked(node_.output(dense_++));
  }
  template <class T>
  SparseOutput<T> take(const VarLenFeature<T>&) {
    const int i = sparse_++;
    return {Output<std::int64_t>::unchecked(node_.output(i)), Output<T>::unchecked(node_.output(i + num_sparse_)),
            Output<std::int64_t>::unchecked(node_.output(i + 2 * num_sparse_))};
  }
  template <class... Features>
  auto take_all(const std::tuple<Features...>& features) {
    // Braces are evaluated from left to right.
    return std::apply(
        [&](const auto&... feature) {
          return std::tuple<typename FeatureOutput<std::remove_cvref_t<decltype(feature)>>::type...>{take(feature)...};
        },
        features);
  }

 private:
  BuiltNode node_;
  int num_sparse_, sparse_, dense_;
};

BuiltNode build_parse_example(const Output<std::string>& serialized, FeaturesSpec spec, const At& at);
BuiltNode build_parse_single_example(const Output<std::string>& serialized, FeaturesSpec spec, const At& at);

}  // namespace detail

/// serialized: [batch]. Gives a tuple with an output for each feature: an `Output` [batch, its shape], or a
/// `SparseOutput` of dense shape [batch, longest].
///
/// ```cpp
/// auto [pixels, label, words] = df::parse_example(
///     records, std::tuple{df::FixedLenFeature<float>{"pixels", {28, 28, 1}},
///     df::FixedLenFeature<std::int64_t>{"label"},
///                         df::VarLenFeature<std::string>{"words"}});
/// ```
/// Errors: InvalidArgument for a default or a shape that does not fit. In the step, the errors of `parse_examples`,
/// which name example and feature: InvalidArgument for a feature that is missing or has another type or length,
/// DataLoss for bytes that are no Example.
template <class... Features>
auto parse_example(const Output<std::string>& serialized, const std::tuple<Features...>& features, const At& at = {}) {
  FeaturesSpec spec = detail::spec_of(features);
  const std::size_t sparse = spec.sparse.size();
  return detail::FeatureOutputs(detail::build_parse_example(serialized, std::move(spec), at), sparse)
      .take_all(features);
}

/// The same for one Example, serialized []: an `Output` of a feature's shape, a `SparseOutput` of dense shape [values].
template <class... Features>
auto parse_single_example(const Output<std::string>& serialized, const std::tuple<Features...>& features,
                          const At& at = {}) {
  FeaturesSpec spec = detail::spec_of(features);
  const std::size_t sparse = spec.sparse.size();
  return detail::FeatureOutputs(detail::build_parse_single_example(serialized, std::move(spec), at), sparse)
      .take_all(features);
}

}  // namespace dflow
