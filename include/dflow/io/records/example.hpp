#pragma once

/// Public: Examples, the records of features that TensorFlow writes.

#include <dflow/base/config.hpp>
#include <dflow/core/dtype.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace dflow {

/// The values of one feature: texts (bytes), floats or 64-bit integers. A default feature has no values and no type,
/// and counts as missing.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument if values of another type are asked for.
class Feature {
 public:
  Feature() = default;
  explicit Feature(std::vector<std::string> texts) : values_(std::move(texts)) {}
  explicit Feature(std::vector<float> floats) : values_(std::move(floats)) {}
  explicit Feature(std::vector<std::int64_t> integers) : values_(std::move(integers)) {}
  static Feature of_text(std::string text) { return of_texts({std::move(text)}); }
  static Feature of_texts(std::vector<std::string> texts) { return Feature(std::move(texts)); }
  static Feature of_floats(std::vector<float> floats) { return Feature(std::move(floats)); }
  static Feature of_integers(std::vector<std::int64_t> integers) { return Feature(std::move(integers)); }

  /// string, float32 or int64; `invalid` if there is no list at all.
  DType dtype() const noexcept;
  std::span<const std::string> texts() const { return list<std::string>(); }
  std::span<const float> floats() const { return list<float>(); }
  std::span<const std::int64_t> integers() const { return list<std::int64_t>(); }

  /// Floats are equal if their bits are.
  friend bool operator==(const Feature& a, const Feature& b) noexcept { return a.equals(b); }

 private:
  template <class T>
  const std::vector<T>& list() const {
    const auto* values = std::get_if<std::vector<T>>(&values_);
    if (values == nullptr) fail_type(dtype_of<T>);
    return *values;
  }
  [[noreturn]] void fail_type(DType wanted) const;
  bool equals(const Feature& other) const noexcept;

  std::variant<std::monostate, std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>> values_;
};

using FeatureMap = std::map<std::string, Feature, std::less<>>;

/// A record of named features (tf.train.Example), as record files hold them.
///
///     Example example;
///     example.features["image"] = Feature::of_text(jpeg);
///     example.features["label"] = Feature::of_integers({7});
///     writer.write(serialize(example));
struct Example {
  FeatureMap features;

  friend bool operator==(const Example&, const Example&) = default;
};

/// A record of features of a whole and, under names, sequences of features (tf.train.SequenceExample).
struct SequenceExample {
  FeatureMap context;
  std::map<std::string, std::vector<Feature>, std::less<>> feature_lists;

  friend bool operator==(const SequenceExample&, const SequenceExample&) = default;
};

/// All of a serialised record, its numbers packed or not. If a name is there twice, the last one counts.
/// `parse_examples` makes tensors of many records at once.
///
/// Errors: DataLoss with the offset.
Example parse_example(std::string_view bytes);
SequenceExample parse_sequence_example(std::string_view bytes);

/// The bytes that TensorFlow's own serialisation in deterministic order gives: names sorted, numbers packed.
std::string serialize(const Example& example);
std::string serialize(const SequenceExample& example);

}  // namespace dflow
