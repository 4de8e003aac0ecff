#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/parsing/feature_shapes.ipp>
#include <dflow/ops/parsing/parse_example.hpp>

namespace dflow {

void ParseExample::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<ParseExample>();
  PartialShape batch = context.with_rank(0, 1);
  const PartialShape names = context.with_rank(1, 1);
  if (names[0] != 0) batch = context.merge(batch, names);
  detail::require_count(context, attrs.sparse_types.size(), attrs.Nsparse, "sparse_types");
  detail::require_count(context, attrs.Tdense.size(), attrs.Ndense, "Tdense");
  const int first_default = 2 + static_cast<int>(attrs.Nsparse + attrs.Ndense);
  for (int i = 2; i < first_default; ++i) static_cast<void>(context.with_rank(i, 0));
  detail::infer_features(context, {attrs.sparse_types, attrs.Tdense, attrs.dense_shapes, first_default, 0}, batch, 2);
}

void ParseSingleExample::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<ParseSingleExample>();
  static_cast<void>(context.with_rank(0, 0));
  detail::require_count(context, attrs.sparse_types.size(), attrs.num_sparse, "sparse_types");
  detail::require_count(context, attrs.sparse_keys.size(), attrs.num_sparse, "sparse_keys");
  detail::require_count(context, attrs.dense_keys.size(), static_cast<std::int64_t>(attrs.Tdense.size()), "dense_keys");
  detail::infer_features(context, {attrs.sparse_types, attrs.Tdense, attrs.dense_shapes, 1, 0}, Shape{}, 1);
}

namespace detail {

BuiltNode build_parse_example(const Output<std::string>& serialized, FeaturesSpec spec, const At& at) {
  std::vector<AnyOutput> inputs{serialized};
  GraphStore& graph = graph_of(inputs, ParseExample::name, at);
  inputs.push_back(any_constant(graph, Tensor<std::string>(Shape{0}), {.where = at.where}));
  append_keys(graph, spec.sparse, inputs, at);
  append_keys(graph, spec.dense, inputs, at);
  append_defaults(graph, spec.dense, inputs, at);
  return build<ParseExample>(std::span<const AnyOutput>(inputs),
                             {.Nsparse = static_cast<std::int64_t>(spec.sparse.size()),
                              .Ndense = static_cast<std::int64_t>(spec.dense.size()),
                              .sparse_types = dtypes_of_features(spec.sparse),
                              .Tdense = dtypes_of_features(spec.dense),
                              .dense_shapes = shapes_of_features(spec.dense)},
                             at);
}

BuiltNode build_parse_single_example(const Output<std::string>& serialized, FeaturesSpec spec, const At& at) {
  std::vector<AnyOutput> inputs{serialized};
  GraphStore& graph = graph_of(inputs, ParseSingleExample::name, at);
  append_defaults(graph, spec.dense, inputs, at);
  ParseSingleExample::Attrs attrs{.num_sparse = static_cast<std::int64_t>(spec.sparse.size()),
                                  .sparse_types = dtypes_of_features(spec.sparse),
                                  .Tdense = dtypes_of_features(spec.dense),
                                  .dense_shapes = shapes_of_features(spec.dense)};
  for (SparseFeature& feature : spec.sparse) attrs.sparse_keys.push_back(std::move(feature.name));
  for (DenseFeature& feature : spec.dense) attrs.dense_keys.push_back(std::move(feature.name));
  return build<ParseSingleExample>(std::span<const AnyOutput>(inputs), std::move(attrs), at);
}

}  // namespace detail

}  // namespace dflow
