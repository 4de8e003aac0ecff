#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/io/proto/proto_reader.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The wire form of examples, read in place: tensorflow/core/example/{example,feature}.proto.
///   Example{features=1}.  SequenceExample{context=1, feature_lists=2}.  Features{map feature=1}.
///   FeatureLists{map feature_list=1}.  FeatureList{repeated feature=1}.
///   Feature{one of bytes_list=1, float_list=2, int64_list=3}.  Each list is {repeated value=1}.
namespace dflow::detail {

template <class T>
inline constexpr std::uint32_t feature_list_number = std::same_as<T, std::string> ? 1
                                                     : std::same_as<T, float>     ? 2
                                                                                  : 3;

/// A feature with a known type and values that are still unread.
struct RawFeature {
  DType dtype = DType::invalid;           ///< string, float32, int64, or invalid for a feature without a list
  ProtoReader lists{std::string_view()};  ///< before the field of the first list that counts
};

/// Finds the type of a feature. If it has several lists, the lists of the last type count, as protocol buffers merge
/// them.
inline RawFeature look_at_feature(ProtoReader feature) {
  constexpr DType dtypes[] = {DType::string, DType::float32, DType::int64};
  RawFeature found;
  for (ProtoReader before = feature; feature.next(); before = feature) {
    if (feature.number() > 3) continue;
    const DType dtype = dtypes[feature.number() - 1];
    if (dtype != found.dtype) found = {dtype, before};
  }
  return found;
}

/// Appends the values of a feature of T's type.
template <class T>
void append_values(const RawFeature& feature, std::vector<T>& values) {
  for (ProtoReader in = feature.lists; in.next();) {
    if (in.number() != feature_list_number<T>) continue;
    for (ProtoReader list = in.message(); list.next();) {
      if (list.number() != 1) continue;
      if constexpr (std::same_as<T, std::string>) {
        values.emplace_back(list.bytes());
      } else {
        list.append_to(values);
      }
    }
  }
}

/// Calls `take(key, value)` with each entry of the map in field 1; a value that is missing is an empty message.
template <std::invocable<std::string_view, ProtoReader> Take>
void each_map_entry(ProtoReader map, Take take) {
  while (map.next()) {
    if (map.number() != 1) continue;
    std::string_view key;
    ProtoReader value{std::string_view()};
    for (ProtoReader entry = map.message(); entry.next();) {
      if (entry.number() == 1) key = entry.bytes();
      if (entry.number() == 2) value = entry.message();
    }
    take(key, value);
  }
}

/// Calls `take(name, RawFeature)` with each feature of the Features in the fields `number` of a record.
template <std::invocable<std::string_view, const RawFeature&> Take>
void each_feature(std::string_view record, std::uint32_t number, Take take) {
  for (ProtoReader in(record); in.next();) {
    if (in.number() != number) continue;
    each_map_entry(in.message(),
                   [&](std::string_view name, ProtoReader feature) { take(name, look_at_feature(feature)); });
  }
}

/// Calls `take(name, FeatureList)` with each list of a sequence example.
template <std::invocable<std::string_view, ProtoReader> Take>
void each_feature_list(std::string_view record, Take take) {
  for (ProtoReader in(record); in.next();) {
    if (in.number() == 2) each_map_entry(in.message(), take);
  }
}

}  // namespace dflow::detail
