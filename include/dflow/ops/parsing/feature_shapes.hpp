#pragma once

#include <dflow/core/partial_shape.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/infer_context.hpp>
#include <dflow/io/records/example_parser.hpp>

#include <span>
#include <vector>

namespace dflow::detail {

/// What a node that parses says of a group of its features, and where among its inputs and outputs it stands.
struct FeatureGroup {
  std::span<const DType> sparse_types;
  std::span<const DType> dense_types;
  std::span<const PartialShape> dense_shapes;
  int first_default = 0;  ///< input; below 0: there are no defaults
  int first_output = 0;   ///< indices, values and shapes of the sparse ones, then the dense ones
};

/// Checks a group, and gives its outputs their shapes: those of a dense feature have `outer` in front, sparse ones have
/// `sparse_rank` dimensions.
void infer_features(InferContext& context, const FeatureGroup& group, const PartialShape& outer, int sparse_rank);

/// Fails unless there are `wanted` of what an attribute lists.
void require_count(const InferContext& context, std::size_t count, std::int64_t wanted, std::string_view what);

/// The edges of the defaults of a specification: without elements where there is none.
void append_defaults(GraphStore& graph, std::vector<DenseFeature>& features, std::vector<AnyOutput>& inputs,
                     const At& at);

/// Scalars that hold the features' names.
template <class Feature>
void append_keys(GraphStore& graph, const std::vector<Feature>& features, std::vector<AnyOutput>& inputs, const At& at);

std::vector<DType> dtypes_of_features(const std::vector<DenseFeature>& features);
std::vector<DType> dtypes_of_features(const std::vector<SparseFeature>& features);
std::vector<PartialShape> shapes_of_features(const std::vector<DenseFeature>& features);

}  // namespace dflow::detail
