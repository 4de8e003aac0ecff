#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dflow {

/// A collective computation of several devices, its members. Every member gets the same bits as the result.
enum class CollectiveKind : std::uint8_t {
  sum,        ///< of all members' values
  product,    ///< the same
  gather,     ///< the values, which have one shape, one after the other
  broadcast,  ///< the first member's value
};

constexpr std::array<std::string_view, 4> attr_enum_names(CollectiveKind) {
  return {"sum", "product", "gather", "broadcast"};
}

}  // namespace dflow
