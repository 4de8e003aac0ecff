#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_wire.hpp>

#include <algorithm>
#include <bit>

namespace dflow {

DType Feature::dtype() const noexcept {
  constexpr DType dtypes[] = {DType::invalid, DType::string, DType::float32, DType::int64};
  return dtypes[values_.index()];
}

void Feature::fail_type(DType wanted) const {
  throw_error(Status::invalid_argument(str_cat("the feature holds ",
                                               dtype() == DType::invalid ? "nothing" : dtype_name(dtype()), ", not ",
                                               dtype_name(wanted))));
}

bool Feature::equals(const Feature& other) const noexcept {
  const auto* floats = std::get_if<std::vector<float>>(&values_);
  const auto* others = std::get_if<std::vector<float>>(&other.values_);
  if (floats == nullptr || others == nullptr) return values_ == other.values_;
  return std::equal(floats->begin(), floats->end(), others->begin(), others->end(), [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  });
}

namespace detail {

template <class T>
Feature feature_of(const RawFeature& raw) {
  std::vector<T> values;
  append_values(raw, values);
  return Feature(std::move(values));
}

Feature to_feature(const RawFeature& raw) {
  if (raw.dtype == DType::string) return feature_of<std::string>(raw);
  if (raw.dtype == DType::float32) return feature_of<float>(raw);
  if (raw.dtype == DType::int64) return feature_of<std::int64_t>(raw);
  return {};
}

FeatureMap parse_features(std::string_view record) {
  FeatureMap features;
  each_feature(record, 1, [&](std::string_view name, const RawFeature& raw) {
    features.insert_or_assign(std::string(name), to_feature(raw));
  });
  return features;
}

void write_feature(ProtoWriter& out, const Feature& feature) {
  switch (feature.dtype()) {
    case DType::string:
      return out.message(1, [&](ProtoWriter& list) {
        for (const std::string& text : feature.texts()) list.bytes(1, text);
      });
    case DType::float32:
      return out.message(2, [&](ProtoWriter& list) {
        if (!feature.floats().empty()) list.packed(1, feature.floats());
      });
    case DType::int64:
      return out.message(3, [&](ProtoWriter& list) {
        if (!feature.integers().empty()) list.packed(1, feature.integers());
      });
    default:
      return;
  }
}

/// A map in field 1, each of its values written by `write_value(out, value)`.
template <class Map, class Write>
void write_map(ProtoWriter& out, const Map& map, Write write_value) {
  for (const auto& [name, value] : map) {
    out.message(1, [&](ProtoWriter& entry) {
      entry.bytes(1, name);
      entry.message(2, [&](ProtoWriter& inner) { write_value(inner, value); });
    });
  }
}

}  // namespace detail

Example parse_example(std::string_view bytes) { return {detail::parse_features(bytes)}; }

SequenceExample parse_sequence_example(std::string_view bytes) {
  SequenceExample example{detail::parse_features(bytes), {}};
  detail::each_feature_list(bytes, [&](std::string_view name, ProtoReader list) {
    std::vector<Feature> features;
    while (list.next()) {
      if (list.number() == 1) features.push_back(detail::to_feature(detail::look_at_feature(list.message())));
    }
    example.feature_lists.insert_or_assign(std::string(name), std::move(features));
  });
  return example;
}

std::string serialize(const Example& example) {
  std::string bytes;
  if (example.features.empty()) return bytes;
  ProtoWriter(bytes).message(
      1, [&](ProtoWriter& out) { detail::write_map(out, example.features, detail::write_feature); });
  return bytes;
}

std::string serialize(const SequenceExample& example) {
  std::string bytes;
  ProtoWriter out(bytes);
  if (!example.context.empty()) {
    out.message(1, [&](ProtoWriter& context) { detail::write_map(context, example.context, detail::write_feature); });
  }
  if (example.feature_lists.empty()) return bytes;
  out.message(2, [&](ProtoWriter& lists) {
    detail::write_map(lists, example.feature_lists, [](ProtoWriter& list, const std::vector<Feature>& features) {
      for (const Feature& feature : features) {
        list.message(1, [&](ProtoWriter& inner) { detail::write_feature(inner, feature); });
      }
    });
  });
  return bytes;
}

}  // namespace dflow
