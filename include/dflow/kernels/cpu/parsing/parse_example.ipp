#pragma once

#include <dflow/io/records/example_json.hpp>
#include <dflow/io/records/example_parser.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/parsing/parse_example.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// Reads a node's inputs one after the other.
class FeatureInputs {
 public:
  FeatureInputs(const KernelContext& context, int first) : context_(context), next_(first) {}

  std::string key() { return *context_.input<std::string>(next_++).data(); }
  /// None where the tensor has no elements.
  std::optional<AnyTensor> default_value() {
    const AnyTensor& value = context_.input(next_++);
    return value.num_elements() == 0 ? std::nullopt : std::optional(value);
  }

 private:
  const KernelContext& context_;
  int next_;
};

/// Sets the outputs of a group of features from `first` on; returns how many they are.
int set_features(KernelContext& context, ParsedFeatures&& features, int first) {
  const auto sparse = static_cast<int>(features.sparse.size());
  for (int i = 0; i < sparse; ++i) {
    SparseValues& values = features.sparse[static_cast<std::size_t>(i)];
    context.set_output(first + i, std::move(values.indices));
    context.set_output(first + sparse + i, std::move(values.values));
    context.set_output(first + 2 * sparse + i, std::move(values.dense_shape));
  }
  int output = first + 3 * sparse;
  for (AnyTensor& value : features.dense) context.set_output(output++, std::move(value));
  return output - first;
}

}  // namespace detail

void Kernel<DecodeJsonExample, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                                Tensor<std::string>& examples) const {
  context.pool().parallel_for(texts.num_elements(), 5000, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      try {
        examples.data()[i] = serialize(example_from_json(texts.data()[i]));
      } catch (const Error& error) {
        throw_error(error.status().with_prefix(str_cat("text", detail::index_to_string(i, texts.shape()), ": ")));
      }
    }
  });
}

void Kernel<ParseExample, Cpu>::operator()(KernelContext& context) const {
  detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  FeaturesSpec spec;
  detail::FeatureInputs inputs(context, 2);
  for (const DType dtype : attrs.sparse_types) spec.sparse.push_back({inputs.key(), dtype});
  for (std::size_t i = 0; i < attrs.Tdense.size(); ++i) {
    spec.dense.push_back({inputs.key(), attrs.Tdense[i], attrs.dense_shapes[i], {}});
  }
  for (DenseFeature& feature : spec.dense) feature.default_value = inputs.default_value();
  const std::span<const std::string> names = context.input<std::string>(1).span();
  detail::set_features(context, parse_examples(context.input<std::string>(0).span(), spec, names), 0);
}

void Kernel<ParseSingleExample, Cpu>::operator()(KernelContext& context) const {
  detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  FeaturesSpec spec;
  detail::FeatureInputs inputs(context, 1);
  for (std::size_t i = 0; i < attrs.sparse_keys.size(); ++i) {
    spec.sparse.push_back({attrs.sparse_keys[i], attrs.sparse_types[i]});
  }
  for (std::size_t i = 0; i < attrs.dense_keys.size(); ++i) {
    spec.dense.push_back({attrs.dense_keys[i], attrs.Tdense[i], attrs.dense_shapes[i], inputs.default_value()});
  }
  detail::set_features(context, parse_single_example(*context.input<std::string>(0).data(), spec), 0);
}

void Kernel<ParseSingleSequenceExample, Cpu>::operator()(KernelContext& context) const {
  detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  const std::span<const std::string> may_be_missing = context.input<std::string>(1).span();
  FeaturesSpec spec;
  FeatureListsSpec lists;
  detail::FeatureInputs inputs(context, 2);
  for (const DType dtype : attrs.context_sparse_types) spec.sparse.push_back({inputs.key(), dtype});
  for (std::size_t i = 0; i < attrs.Tcontext_dense.size(); ++i) {
    spec.dense.push_back({inputs.key(), attrs.Tcontext_dense[i], attrs.context_dense_shapes[i], {}});
  }
  for (const DType dtype : attrs.feature_list_sparse_types) lists.sparse.push_back({inputs.key(), dtype});
  for (std::size_t i = 0; i < attrs.feature_list_dense_types.size(); ++i) {
    std::string key = inputs.key();
    const bool allow_missing = std::find(may_be_missing.begin(), may_be_missing.end(), key) != may_be_missing.end();
    lists.dense.push_back({std::move(key), attrs.feature_list_dense_types[i],
                           attrs.feature_list_dense_shapes[i].to_shape(), allow_missing});
  }
  for (DenseFeature& feature : spec.dense) feature.default_value = inputs.default_value();
  const Tensor<std::string>& name = context.input<std::string>(context.num_inputs() - 1);
  try {
    ParsedSequence parsed = parse_single_sequence_example(*context.input<std::string>(0).data(), spec, lists);
    const int of_context = detail::set_features(context, std::move(parsed.context), 0);
    detail::set_features(context, std::move(parsed.lists), of_context);
  } catch (const Error& error) {
    if (name.num_elements() != 1 || name.data()->empty()) throw;
    throw_error(error.status().with_prefix(str_cat("example '", *name.data(), "': ")));
  }
}

}  // namespace dflow
