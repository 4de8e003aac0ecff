#pragma once

/// Public: Examples read into tensors, outside of a graph.

#include <dflow/base/config.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

/// A feature with the same number of values in each example: TensorFlow's FixedLenFeature. If its leading dimension is
/// `dynamic`, it is TensorFlow's FixedLenSequenceFeature, padded to the longest of the batch.
struct DenseFeature {
  std::string name;
  DType dtype = DType::float32;  ///< float32, int64 or string
  PartialShape shape;            ///< of one example's values; only the first dimension may be `dynamic`
  /// The values for examples without the feature: a tensor of `shape`, or one element for all. For a padded feature it
  /// is one element, the padding, which is otherwise 0 or an empty text. A feature without a default is required,
  /// unless it is padded.
  std::optional<AnyTensor> default_value;
};

/// A feature of any number of values: TensorFlow's VarLenFeature.
struct SparseFeature {
  std::string name;
  DType dtype = DType::float32;  ///< float32, int64 or string
};

struct FeaturesSpec {
  std::vector<DenseFeature> dense;
  std::vector<SparseFeature> sparse;
};

/// The values of a sparse feature, as a SparseTensor has them, in row-major order.
struct SparseValues {
  Tensor<std::int64_t> indices;      ///< [values, rank]
  AnyTensor values;                  ///< [values]
  Tensor<std::int64_t> dense_shape;  ///< [rank]
};

/// The features that a specification names, in its order.
struct ParsedFeatures {
  std::vector<AnyTensor> dense;
  std::vector<SparseValues> sparse;
};

/// Tensors of a batch of serialised Examples: dense features [batch, shape...], sparse ones with rank 2 and dense shape
/// [batch, longest].
///
///     auto [dense, sparse] = parse_examples(records, {.dense = {{"pixels", DType::float32, {28, 28, 1}},
///                                                               {"label", DType::int64, {}}},
///                                                     .sparse = {{"words", DType::string}}});
///     Tensor<float> pixels = dense[0].as<float>();  // [batch, 28, 28, 1]
///
/// Features outside of the specification are not read. Beside the result, memory is as much as the values, and for a
/// padded feature the batch times its longest example, up to 4 GiB.
/// Thread safety: safe.
/// Errors, naming the example's index and the feature: DataLoss for bytes that are no example. InvalidArgument, as in
/// TensorFlow, if a feature without a default is missing, has another type, even with no values, or has another number
/// of values than its shape. The values of a padded feature must be a multiple of one step, which is its shape without
/// the first dimension. InvalidArgument also for a specification with another element type, an unknown shape, or a
/// default that does not fit. ResourceExhausted for a padded feature that would take more than 4 GiB.
ParsedFeatures parse_examples(std::span<const std::string> serialized, const FeaturesSpec& spec);
/// The same with names of the examples, for messages; one name for each example, or none at all.
ParsedFeatures parse_examples(std::span<const std::string> serialized, const FeaturesSpec& spec,
                              std::span<const std::string> names);
ParsedFeatures parse_examples(std::span<const std::string_view> serialized, const FeaturesSpec& spec);
/// The same for records in a string tensor. Errors also: InvalidArgument unless the tensor is a vector of strings.
ParsedFeatures parse_examples(const AnyTensor& serialized, const FeaturesSpec& spec);

/// One Example, without the dimension of the batch: sparse features have indices [values, 1].
/// Errors: as parse_examples.
ParsedFeatures parse_single_example(std::string_view serialized, const FeaturesSpec& spec);

/// A sequence of features that each have a shape.
struct DenseFeatureList {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;                 ///< of each step's values
  bool allow_missing = false;  ///< a missing list has no steps
};

struct FeatureListsSpec {
  std::vector<DenseFeatureList> dense;
  std::vector<SparseFeature> sparse;
};

struct ParsedSequence {
  ParsedFeatures context;  ///< as parse_single_example gives it
  ParsedFeatures lists;    ///< dense [steps, shape...]; sparse of dense shape [steps, longest]
};

/// One SequenceExample.
///
/// Errors: as parse_examples. InvalidArgument also if a step of a dense list lacks its values, or if a list is missing
/// and that is not allowed. The message names the list and the step.
ParsedSequence parse_single_sequence_example(std::string_view serialized, const FeaturesSpec& context,
                                             const FeatureListsSpec& lists);

}  // namespace dflow
