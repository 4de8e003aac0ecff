#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/parsing/feature_shapes.hpp>
#include <dflow/ops/parsing/parsing_op.hpp>

#include <string>
#include <utility>

namespace dflow::detail {

void require_count(const InferContext& context, std::size_t count, std::int64_t wanted, std::string_view what) {
  if (static_cast<std::int64_t>(count) == wanted) return;
  context.fail(str_cat(what, " lists ", count, ", and there are ", wanted, " features"));
}

/// A default has the feature's shape, or one element; none, where the feature is required.
void check_feature_default(const InferContext& context, int input, const PartialShape& shape) {
  const PartialShape& value = context.input(input);
  const std::optional<std::int64_t> count = value.num_elements();
  const bool is_padded = shape.rank() > 0 && shape[0] == dynamic;
  if (!count || *count == 0 || *count == 1) return;
  if (is_padded || !value.is_compatible_with(shape)) {
    context.fail(
        str_cat("input ", input, ", a default of shape ", value.to_string(), ", does not fit ", shape.to_string()));
  }
}

void infer_features(InferContext& context, const FeatureGroup& group, const PartialShape& outer, int sparse_rank) {
  require_count(context, group.dense_shapes.size(), static_cast<std::int64_t>(group.dense_types.size()),
                "dense_shapes");
  const auto check_type = [&](DType dtype) {
    if (!in_mask(dtype, dtype_mask<FeatureTypes>)) {
      context.fail(str_cat("features are float, int64 or string, not ", dtype_name(dtype)));
    }
  };
  int output = group.first_output;
  const auto sparse = static_cast<int>(group.sparse_types.size());
  for (int i = 0; i < sparse; ++i, ++output) {
    check_type(group.sparse_types[static_cast<std::size_t>(i)]);
    context.set_output(output, PartialShape{dynamic, sparse_rank});
    context.set_output(output + sparse, PartialShape{dynamic});
    context.set_output(output + 2 * sparse, Shape{sparse_rank});
  }
  output += 2 * sparse;
  for (std::size_t i = 0; i < group.dense_types.size(); ++i, ++output) {
    check_type(group.dense_types[i]);
    const PartialShape& shape = group.dense_shapes[i];
    if (!shape.has_rank()) context.fail("the shape of a dense feature has a rank");
    for (int d = 1; d < shape.rank(); ++d) {
      if (shape[d] == dynamic) {
        context.fail(
            str_cat("only the first dimension of a feature's shape may be unknown, it is ", shape.to_string()));
      }
    }
    if (shape.rank() + outer.rank() > max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
    if (group.first_default >= 0) check_feature_default(context, group.first_default + static_cast<int>(i), shape);
    context.set_output(output, outer.concatenated(shape));
  }
}

void append_defaults(GraphStore& graph, std::vector<DenseFeature>& features, std::vector<AnyOutput>& inputs,
                     const At& at) {
  for (DenseFeature& feature : features) {
    AnyTensor value = feature.default_value ? *std::move(feature.default_value) : AnyTensor(feature.dtype, Shape{0});
    inputs.push_back(any_constant(graph, std::move(value), {.where = at.where}));
  }
}

template <class Feature>
void append_keys(GraphStore& graph, const std::vector<Feature>& features, std::vector<AnyOutput>& inputs,
                 const At& at) {
  for (const Feature& feature : features) {
    inputs.push_back(any_constant(graph, Tensor<std::string>(feature.name), {.where = at.where}));
  }
}

template <class Features>
std::vector<DType> dtypes_in(const Features& features) {
  std::vector<DType> dtypes;
  dtypes.reserve(features.size());
  for (const auto& feature : features) dtypes.push_back(feature.dtype);
  return dtypes;
}

std::vector<DType> dtypes_of_features(const std::vector<DenseFeature>& features) { return dtypes_in(features); }
std::vector<DType> dtypes_of_features(const std::vector<SparseFeature>& features) { return dtypes_in(features); }

std::vector<PartialShape> shapes_of_features(const std::vector<DenseFeature>& features) {
  std::vector<PartialShape> shapes;
  shapes.reserve(features.size());
  for (const DenseFeature& feature : features) shapes.push_back(feature.shape);
  return shapes;
}

}  // namespace dflow::detail
