#pragma once

#include <dflow/ops/parsing/parse_example.hpp>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dflow {

/// The features of one SequenceExample: its "context" (the features of the whole) and its "feature lists" (features by
/// step). Inputs: serialized [], the names of lists that may be missing, a key per feature, defaults of the dense
/// context features, and a name for messages, [] or without elements. The outputs of the context are as in
/// ParseSingleExample. A sparse list gives indices [values, 2], values, and shape [2] = [steps, longest]. A dense list
/// gives [steps, its shape].
struct ParseSingleSequenceExample : ParsingOp<"ParseSingleSequenceExample"> {
  struct Attrs {
    std::int64_t Ncontext_sparse = 0;
    std::int64_t Ncontext_dense = 0;
    std::int64_t Nfeature_list_sparse = 0;
    std::int64_t Nfeature_list_dense = 0;
    std::vector<DType> context_sparse_types = {};
    std::vector<DType> Tcontext_dense = {};
    std::vector<DType> feature_list_dense_types = {};
    std::vector<PartialShape> context_dense_shapes = {};
    std::vector<DType> feature_list_sparse_types = {};
    std::vector<PartialShape> feature_list_dense_shapes = {};
  };
  using Inputs = In<std::string, std::string, List<std::string, "Ncontext_sparse">, List<std::string, "Ncontext_dense">,
                    List<std::string, "Nfeature_list_sparse">, List<std::string, "Nfeature_list_dense">,
                    TypedList<"Tcontext_dense">, std::string>;
  using Outputs = Out<List<std::int64_t, "Ncontext_sparse">, TypedList<"context_sparse_types">,
                      List<std::int64_t, "Ncontext_sparse">, TypedList<"Tcontext_dense">,
                      List<std::int64_t, "Nfeature_list_sparse">, TypedList<"feature_list_sparse_types">,
                      List<std::int64_t, "Nfeature_list_sparse">, TypedList<"feature_list_dense_types">>;
  static void infer(InferContext& context);
};

/// A list that has values of one shape in each step. Its output is a dense tensor [steps, shape].
template <FeatureElement T>
struct FixedLenSequenceFeature {
  std::string key;
  Shape shape = {};            ///< of each step's values
  bool allow_missing = false;  ///< a missing list has no steps
};

namespace detail {

template <class T>
struct FeatureOutput<FixedLenSequenceFeature<T>> {
  using type = Output<T>;
};

template <class T>
void add_to_spec(const FixedLenSequenceFeature<T>& feature, FeatureListsSpec& spec) {
  spec.dense.push_back({feature.key, dtype_of<T>, feature.shape, feature.allow_missing});
}
template <class T>
void add_to_spec(const VarLenFeature<T>& feature, FeatureListsSpec& spec) {
  spec.sparse.push_back({feature.key, dtype_of<T>});
}

/// A dense list is taken like a dense feature.
template <class T>
FixedLenFeature<T> as_feature(const FixedLenSequenceFeature<T>& list) {
  return {list.key, list.shape, {}};
}
template <class T>
const VarLenFeature<T>& as_feature(const VarLenFeature<T>& list) {
  return list;
}

BuiltNode build_parse_single_sequence_example(const Output<std::string>& serialized, FeaturesSpec context,
                                              FeatureListsSpec lists, const At& at);

}  // namespace detail

/// The result of `parse_single_sequence_example`: two tuples, each in the order of the requested features.
template <class Context, class Lists>
struct SequenceOutputs {
  Context context;
  Lists lists;
};

/// serialized: []. The context gives outputs as in `parse_single_example`. Each list gives an `Output` [steps, shape],
/// or a `SparseOutput` of dense shape [steps, longest].
///
/// ```cpp
/// auto [context, lists] = df::parse_single_sequence_example(
///     record, std::tuple{df::FixedLenFeature<std::int64_t>{"label"}},
///     std::tuple{df::FixedLenSequenceFeature<float>{"frames", {13}}, df::VarLenFeature<std::string>{"words"}});
/// auto [frames, words] = lists;
/// ```
/// Errors: as of parse_single_example. For a list, the message names the list and the step.
template <class... Features, class... Lists>
auto parse_single_sequence_example(const Output<std::string>& serialized, const std::tuple<Features...>& context,
                                   const std::tuple<Lists...>& lists, const At& at = {}) {
  FeaturesSpec spec = detail::spec_of(context);
  FeatureListsSpec list_spec;
  std::apply([&](const auto&... list) { (detail::add_to_spec(list, list_spec), ...); }, lists);
  const std::size_t sparse = spec.sparse.size(), sparse_lists = list_spec.sparse.size();
  const auto first_list = static_cast<int>(3 * sparse + spec.dense.size());
  const BuiltNode node =
      detail::build_parse_single_sequence_example(serialized, std::move(spec), std::move(list_spec), at);
  const auto as_features =
      std::apply([](const auto&... list) { return std::make_tuple(detail::as_feature(list)...); }, lists);
  auto of_context = detail::FeatureOutputs(node, sparse).take_all(context);
  auto of_lists = detail::FeatureOutputs(node, sparse_lists, first_list).take_all(as_features);
  return SequenceOutputs<decltype(of_context), decltype(of_lists)>{std::move(of_context), std::move(of_lists)};
}

}  // namespace dflow
