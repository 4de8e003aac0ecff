#pragma once

#include <dflow/op/build.hpp>

namespace dflow {

/// An op that reads records. No gradient goes through it.
template <FixedString Name, class... AllowedTypes>
struct ParsingOp : StandardOp<Name, AllowedTypes...> {
  static constexpr bool gradient_stops = true;
};

/// The element types that features can have.
using FeatureTypes = TypeList<float, std::int64_t, std::string>;

template <class T>
concept FeatureElement = contains_v<T, FeatureTypes>;

}  // namespace dflow
