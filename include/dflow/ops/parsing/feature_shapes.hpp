#pragma once

#include <dflow/core/partial_shape.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/infer_context.hpp>
#include <dflow/io/records/example_parser.hpp>

#include <span>
#include <vector>

namespace dflow::detail {

/// A group of the features of a node that parses: its attributes, and its place among the node's inputs and outputs.
struct FeatureGroup {
  std::span<const DType> sparse_types;
  std::span<const DType> dense_types;
  std::span<const PartialShape> dense_shapes;
  int first_default = 0;  ///< input; below 0: there are no defaults
  int first_output = 0;   ///< indices, values and shapes of the sparse features, then the dense features
};

/// Checks a group and sets the shapes of its outputs: the shape of a dense feature has `outer` in front, a sparse
/// feature has `sparse_rank` dimensions.
void infer_features(InferContext& context, const FeatureGroup& group, const PartialShape& outer, int sparse_rank);

/// Fails unless an attribute lists `wanted` features; `count` is how many it lists, `what` its name.
void require_count(const InferContext& context, std::size_t count, std::int64_t wanted, std::string_view what);

/// Appends an edge for the default of each feature. It has no elements if the feature has no default.
void append_defaults(GraphStore& graph, std::vector<DenseFeature>& features, std::vector<AnyOutput>& inputs,
                     const At& at);

/// Scalars that hold the features' names.
template <class Feature>
void append_keys(GraphStore& graph, const std::vector<Feature>& features, std::vector<AnyOutput>& inputs, const At& at);

std::vector<DType> dtypes_of_features(const std::vector<DenseFeature>& features);
std::vector<DType> dtypes_of_features(const std::vector<SparseFeature>& features);
std::vector<PartialShape> shapes_of_features(const std::vector<DenseFeature>& features);

}  // namespace dflow::detail
