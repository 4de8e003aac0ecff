#pragma once

#include <dflow/ops/parsing/feature_shapes.ipp>
#include <dflow/ops/parsing/parse_sequence_example.hpp>

namespace dflow {

void ParseSingleSequenceExample::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<ParseSingleSequenceExample>();
  static_cast<void>(context.with_rank(0, 0));
  static_cast<void>(context.with_rank(1, 1));
  detail::require_count(context, attrs.context_sparse_types.size(), attrs.Ncontext_sparse, "context_sparse_types");
  detail::require_count(context, attrs.Tcontext_dense.size(), attrs.Ncontext_dense, "Tcontext_dense");
  detail::require_count(context, attrs.feature_list_sparse_types.size(), attrs.Nfeature_list_sparse,
                        "feature_list_sparse_types");
  detail::require_count(context, attrs.feature_list_dense_types.size(), attrs.Nfeature_list_dense,
                        "feature_list_dense_types");
  const int first_default = 2 + static_cast<int>(attrs.Ncontext_sparse + attrs.Ncontext_dense +
                                                 attrs.Nfeature_list_sparse + attrs.Nfeature_list_dense);
  for (int i = 2; i < first_default; ++i) static_cast<void>(context.with_rank(i, 0));
  detail::infer_features(
      context, {attrs.context_sparse_types, attrs.Tcontext_dense, attrs.context_dense_shapes, first_default, 0},
      Shape{}, 1);
  for (const PartialShape& shape : attrs.feature_list_dense_shapes) {
    if (!shape.is_fully_defined()) {
      context.fail(str_cat("the shape of a list's step must be known, it is ", shape.to_string()));
    }
  }
  const int first_list = static_cast<int>(3 * attrs.Ncontext_sparse + attrs.Ncontext_dense);
  detail::infer_features(context,
                         {attrs.feature_list_sparse_types, attrs.feature_list_dense_types,
                          attrs.feature_list_dense_shapes, -1, first_list},
                         PartialShape{dynamic}, 2);
}

BuiltNode detail::build_parse_single_sequence_example(const Output<std::string>& serialized, FeaturesSpec context,
                                                      FeatureListsSpec lists, const At& at) {
  using Op = ParseSingleSequenceExample;
  std::vector<AnyOutput> inputs{serialized};
  GraphStore& graph = graph_of(inputs, Op::name, at);
  Op::Attrs attrs{.Ncontext_sparse = static_cast<std::int64_t>(context.sparse.size()),
                  .Ncontext_dense = static_cast<std::int64_t>(context.dense.size()),
                  .Nfeature_list_sparse = static_cast<std::int64_t>(lists.sparse.size()),
                  .Nfeature_list_dense = static_cast<std::int64_t>(lists.dense.size()),
                  .context_sparse_types = dtypes_of_features(context.sparse),
                  .Tcontext_dense = dtypes_of_features(context.dense),
                  .context_dense_shapes = shapes_of_features(context.dense),
                  .feature_list_sparse_types = dtypes_of_features(lists.sparse)};
  std::vector<std::string> may_be_missing;
  for (const DenseFeatureList& list : lists.dense) {
    attrs.feature_list_dense_types.push_back(list.dtype);
    attrs.feature_list_dense_shapes.emplace_back(list.shape);
    if (list.allow_missing) may_be_missing.push_back(list.name);
  }
  const auto count = static_cast<std::int64_t>(may_be_missing.size());
  const At here{.where = at.where};
  inputs.push_back(any_constant(graph, Tensor<std::string>(Shape{count}, may_be_missing), here));
  append_keys(graph, context.sparse, inputs, at);
  append_keys(graph, context.dense, inputs, at);
  append_keys(graph, lists.sparse, inputs, at);
  append_keys(graph, lists.dense, inputs, at);
  append_defaults(graph, context.dense, inputs, at);
  inputs.push_back(any_constant(graph, Tensor<std::string>(Shape{0}), here));
  return build<Op>(std::span<const AnyOutput>(inputs), std::move(attrs), at);
}

}  // namespace dflow
