#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

/// An op that gives the bytes of a Summary, a scalar. No gradient goes through it.
template <FixedString Name, class... AllowedTypes>
struct SummaryOp : StandardOp<Name, AllowedTypes...> {
  static constexpr bool gradient_stops = true;
  using Outputs = Out<std::string>;
};

}  // namespace dflow
