#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/records/example_parser.hpp>
#include <dflow/io/records/example_wire.hpp>

#include <algorithm>
#include <concepts>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

/// The values of one feature in all rows, one row after the other.
template <class T>
struct FeatureColumn {
  using value_type = T;
  std::vector<T> values;
  std::vector<std::int64_t> lengths;  ///< of each row

  void append(const RawFeature& feature) {
    const std::size_t before = values.size();
    append_values(feature, values);
    lengths.push_back(static_cast<std::int64_t>(values.size() - before));
  }
  /// Appends all elements of `row`. A row with fewer than `count` elements has one, which is repeated.
  void append(const AnyTensor& row, std::int64_t count) {
    const std::span<const T> elements = Tensor<T>::of(row).span();
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(elements[row.num_elements() == 1 ? 0 : static_cast<std::size_t>(i)]);
    }
    lengths.push_back(count);
  }
  std::int64_t longest() const { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }
};

using AnyFeatureColumn = std::variant<FeatureColumn<std::string>, FeatureColumn<float>, FeatureColumn<std::int64_t>>;

AnyFeatureColumn feature_column(const std::string& feature, DType dtype) {
  if (dtype == DType::string) return FeatureColumn<std::string>();
  if (dtype == DType::float32) return FeatureColumn<float>();
  if (dtype == DType::int64) return FeatureColumn<std::int64_t>();
  throw_error(Status::invalid_argument(str_cat("feature '", feature, "': ", dtype_name(dtype),
                                               " is no type of features, only float, int64 and string are")));
}

template <class T>
Tensor<T> moved_to_tensor(std::vector<T>& values, const Shape& shape) {
  Tensor<T> tensor(shape);
  std::move(values.begin(), values.end(), tensor.begin());
  return tensor;
}

/// Rows of different lengths side by side, each filled up to `longest`.
template <class T>
Tensor<T> padded_tensor(FeatureColumn<T>& column, std::int64_t longest, const Shape& shape, const T& padding) {
  // Short rows beside a long one must not take unlimited memory.
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
  if (num_bytes(dtype_of<T>, shape).value_or(most_bytes + 1) > most_bytes) {
    throw_error(
        Status::resource_exhausted(str_cat("padded to shape ", shape.to_string(), " it takes more than 4 GiB")));
  }
  Tensor<T> tensor(shape);
  auto from = column.values.begin();
  T* to = tensor.data();
  for (const std::int64_t length : column.lengths) {
    T* const end = to + longest;
    to = std::move(from, from + length, to);
    from += length;
    to = std::fill_n(to, end - to, padding);
  }
  return tensor;
}

/// With rows in front, or of the only row.
template <class T>
SparseValues sparse_values(FeatureColumn<T>& column, bool has_rows) {
  const auto count = static_cast<std::int64_t>(column.values.size());
  const auto rows = static_cast<std::int64_t>(column.lengths.size());
  SparseValues result;
  result.indices = Tensor<std::int64_t>(Shape{count, has_rows ? 2 : 1});
  std::int64_t* index = result.indices.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < column.lengths[static_cast<std::size_t>(row)]; ++i) {
      if (has_rows) *index++ = row;
      *index++ = i;
    }
  }
  result.dense_shape = has_rows ? Tensor<std::int64_t>(Shape{2}, {rows, column.longest()})
                                : Tensor<std::int64_t>(Shape{1}, {column.longest()});
  result.values = moved_to_tensor(column.values, Shape{count});
  return result;
}

SparseValues sparse_values(AnyFeatureColumn& column, bool has_rows) {
  return std::visit([&](auto& typed) { return sparse_values(typed, has_rows); }, column);
}

void check_feature_type(const RawFeature& feature, DType wanted) {
  if (feature.dtype != wanted) {
    throw_error(Status::invalid_argument(
        str_cat("its values are ", dtype_name(feature.dtype), ", expected is ", dtype_name(wanted))));
  }
}

/// Appends a row of as many values as `shape` has elements.
void append_exactly(AnyFeatureColumn& column, const RawFeature& feature, const Shape& shape) {
  const std::int64_t count = std::visit(
      [&](auto& typed) {
        typed.append(feature);
        return typed.lengths.back();
      },
      column);
  if (count != shape.num_elements()) {
    throw_error(Status::invalid_argument(str_cat("it has ", count, " values, its shape is ", shape.to_string())));
  }
}

/// One dense feature of all examples.
class DenseColumn {
 public:
  explicit DenseColumn(const DenseFeature& feature)
      : feature_(&feature), column_(feature_column(feature.name, feature.dtype)) {
    const PartialShape& shape = feature.shape;
    is_padded_ = shape.rank() > 0 && shape.dim(0) == dynamic;
    if (is_padded_ ? !shape.erased(0).is_fully_defined() : !shape.is_fully_defined()) {
      fail(str_cat("only the first dimension of its shape may be unknown, it is ", shape.to_string()));
    }
    shape_ = is_padded_ ? shape.erased(0).to_shape() : shape.to_shape();
    if (is_padded_ && shape_.num_elements() == 0)
      fail(str_cat("steps of shape ", shape_.to_string(), " have no values"));
    if (!feature.default_value) return;
    const AnyTensor& value = *feature.default_value;
    if (value.dtype() != feature.dtype)
      fail(str_cat("its default is ", dtype_name(value.dtype()), ", it is ", dtype_name(feature.dtype)));
    if (value.num_elements() != 1 && (is_padded_ || value.shape() != shape_)) {
      fail(str_cat("its default of shape ", value.shape().to_string(), " does not fit ", shape.to_string()));
    }
  }

  void append(const RawFeature& feature) {
    if (feature.dtype == DType::invalid) return append_missing();
    check_feature_type(feature, feature_->dtype);
    if (!is_padded_) return append_exactly(column_, feature, shape_);
    std::visit(
        [&](auto& column) {
          column.append(feature);
          if (column.lengths.back() % shape_.num_elements() == 0) return;
          throw_error(Status::invalid_argument(str_cat("it has ", column.lengths.back(),
                                                       " values, no multiple of those of a step of shape ",
                                                       shape_.to_string())));
        },
        column_);
  }

  /// [rows, shape...], or of one row [shape...].
  AnyTensor finish(bool has_rows) {
    return std::visit(
        [&](auto& column) -> AnyTensor {
          using T = typename std::remove_reference_t<decltype(column)>::value_type;
          const Shape rows = has_rows ? Shape{static_cast<std::int64_t>(column.lengths.size())} : Shape();
          if (!is_padded_) return moved_to_tensor(column.values, rows.concatenated(shape_));
          const std::int64_t longest = column.longest();
          const Shape steps = Shape{longest / shape_.num_elements()}.concatenated(shape_);
          const T padding = feature_->default_value ? *Tensor<T>::of(*feature_->default_value).data() : T();
          return padded_tensor(column, longest, rows.concatenated(steps), padding);
        },
        column_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_error(Status::invalid_argument(str_cat("feature '", feature_->name, "': ", what)));
  }

  void append_missing() {
    std::visit(
        [&](auto& column) {
          if (is_padded_) return column.lengths.push_back(0);
          if (!feature_->default_value) throw_error(Status::invalid_argument("it is required, and missing"));
          column.append(*feature_->default_value, shape_.num_elements());
        },
        column_);
  }

  const DenseFeature* feature_;
  AnyFeatureColumn column_;
  Shape shape_;  ///< of a row, or of one step if it is padded
  bool is_padded_ = false;
};

/// Adds `what(i)` to the errors of `f`: errors of the bytes and errors of their meaning.
template <class F, class What>
void with_context(F f, What what) {
  try {
    f();
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(what()));
  }
}

/// Gathers the features of a specification, row by row.
class FeaturesParser {
 public:
  explicit FeaturesParser(const FeaturesSpec& spec) : spec_(&spec) {
    for (const DenseFeature& feature : spec.dense) {
      places_.emplace_back(feature.name, places_.size());
      dense_.emplace_back(feature);
    }
    for (const SparseFeature& feature : spec.sparse) {
      places_.emplace_back(feature.name, places_.size());
      sparse_.push_back(feature_column(feature.name, feature.dtype));
    }
    std::sort(places_.begin(), places_.end());
  }

  /// The features that a record has in its field 1.
  void append(std::string_view record) {
    found_.assign(places_.size(), RawFeature());
    each_feature(record, 1, [&](std::string_view name, const RawFeature& feature) {
      auto place = std::lower_bound(places_.begin(), places_.end(), std::pair(name, std::size_t{0}));
      for (; place != places_.end() && place->first == name; ++place) found_[place->second] = feature;
    });
    for (std::size_t i = 0; i < dense_.size(); ++i) {
      with_context([&] { dense_[i].append(found_[i]); }, [&] { return context_of(spec_->dense[i].name); });
    }
    for (std::size_t i = 0; i < sparse_.size(); ++i) {
      const RawFeature& feature = found_[dense_.size() + i];
      with_context(
          [&] {
            if (feature.dtype != DType::invalid) check_feature_type(feature, spec_->sparse[i].dtype);
            std::visit([&](auto& column) { column.append(feature); }, sparse_[i]);
          },
          [&] { return context_of(spec_->sparse[i].name); });
    }
  }

  ParsedFeatures finish(bool has_rows) {
    ParsedFeatures result;
    for (std::size_t i = 0; i < dense_.size(); ++i) {
      with_context([&] { result.dense.push_back(dense_[i].finish(has_rows)); },
                   [&] { return context_of(spec_->dense[i].name); });
    }
    for (AnyFeatureColumn& column : sparse_) result.sparse.push_back(sparse_values(column, has_rows));
    return result;
  }

 private:
  static std::string context_of(const std::string& feature) { return str_cat("feature '", feature, "': "); }

  const FeaturesSpec* spec_;
  std::vector<std::pair<std::string_view, std::size_t>> places_;  ///< dense features, then sparse ones, sorted by name
  std::vector<RawFeature> found_;
  std::vector<DenseColumn> dense_;
  std::vector<AnyFeatureColumn> sparse_;
};

template <class Text>
ParsedFeatures parse_batch(std::span<const Text> serialized, const FeaturesSpec& spec,
                           std::span<const std::string> names = {}) {
  FeaturesParser parser(spec);
  for (std::size_t i = 0; i < serialized.size(); ++i) {
    with_context(
        [&] { parser.append(serialized[i]); },
        [&] { return names.empty() ? str_cat("example ", i, ": ") : str_cat("example ", i, " ('", names[i], "'): "); });
  }
  return parser.finish(true);
}

/// The lists of a sequence example by the positions of `names`; an empty reader and false for a missing list.
std::vector<std::pair<ProtoReader, bool>> find_lists(std::string_view record,
                                                     const std::vector<std::string_view>& names) {
  std::vector<std::pair<ProtoReader, bool>> found(names.size(), {ProtoReader(std::string_view()), false});
  each_feature_list(record, [&](std::string_view name, const ProtoReader& list) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) found[i] = {list, true};
    }
  });
  return found;
}

/// Calls `append(RawFeature)` with each step of a list; errors name the list and the step.
template <class Append>
std::int64_t each_step(const std::string& name, ProtoReader list, Append append) {
  std::int64_t step = 0;
  with_context(
      [&] {
        while (list.next()) {
          if (list.number() != 1) continue;
          append(look_at_feature(list.message()));
          ++step;
        }
      },
      [&] { return str_cat("feature list '", name, "', step ", step, ": "); });
  return step;
}

AnyTensor parse_dense_list(const DenseFeatureList& spec, const ProtoReader& list, bool is_there) {
  if (!is_there && !spec.allow_missing) {
    throw_error(Status::invalid_argument(str_cat("feature list '", spec.name, "' is required, and missing")));
  }
  AnyFeatureColumn column = feature_column(spec.name, spec.dtype);
  const std::int64_t steps = each_step(spec.name, list, [&](const RawFeature& feature) {
    check_feature_type(feature, spec.dtype);
    append_exactly(column, feature, spec.shape);
  });
  return std::visit(
      [&](auto& typed) -> AnyTensor { return moved_to_tensor(typed.values, Shape{steps}.concatenated(spec.shape)); },
      column);
}

SparseValues parse_sparse_list(const SparseFeature& spec, const ProtoReader& list) {
  AnyFeatureColumn column = feature_column(spec.name, spec.dtype);
  each_step(spec.name, list, [&](const RawFeature& feature) {
    if (feature.dtype != DType::invalid) check_feature_type(feature, spec.dtype);
    std::visit([&](auto& typed) { typed.append(feature); }, column);
  });
  return sparse_values(column, true);
}

}  // namespace detail

ParsedFeatures parse_examples(std::span<const std::string> serialized, const FeaturesSpec& spec) {
  return detail::parse_batch(serialized, spec);
}

ParsedFeatures parse_examples(std::span<const std::string> serialized, const FeaturesSpec& spec,
                              std::span<const std::string> names) {
  if (!names.empty() && names.size() != serialized.size()) {
    throw_error(
        Status::invalid_argument(str_cat("there are ", names.size(), " names for ", serialized.size(), " examples")));
  }
  return detail::parse_batch(serialized, spec, names);
}

ParsedFeatures parse_examples(std::span<const std::string_view> serialized, const FeaturesSpec& spec) {
  return detail::parse_batch(serialized, spec);
}

ParsedFeatures parse_examples(const AnyTensor& serialized, const FeaturesSpec& spec) {
  if (serialized.dtype() != DType::string || serialized.rank() != 1) {
    throw_error(Status::invalid_argument(str_cat("examples are a vector of strings, not ",
                                                 dtype_name(serialized.dtype()), serialized.shape().to_string())));
  }
  return parse_examples(Tensor<std::string>::of(serialized).span(), spec);
}

ParsedFeatures parse_single_example(std::string_view serialized, const FeaturesSpec& spec) {
  detail::FeaturesParser parser(spec);
  parser.append(serialized);
  return parser.finish(false);
}

ParsedSequence parse_single_sequence_example(std::string_view serialized, const FeaturesSpec& context,
                                             const FeatureListsSpec& lists) {
  ParsedSequence result{parse_single_example(serialized, context), {}};
  std::vector<std::string_view> names;
  names.reserve(lists.dense.size() + lists.sparse.size());
  for (const DenseFeatureList& list : lists.dense) names.emplace_back(list.name);
  for (const SparseFeature& list : lists.sparse) names.emplace_back(list.name);
  const auto found = detail::find_lists(serialized, names);
  for (std::size_t i = 0; i < lists.dense.size(); ++i) {
    result.lists.dense.push_back(detail::parse_dense_list(lists.dense[i], found[i].first, found[i].second));
  }
  for (std::size_t i = 0; i < lists.sparse.size(); ++i) {
    result.lists.sparse.push_back(detail::parse_sparse_list(lists.sparse[i], found[lists.dense.size() + i].first));
  }
  return result;
}

}  // namespace dflow
