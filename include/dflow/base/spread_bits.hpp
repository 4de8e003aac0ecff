#pragma once

#include <cstdint>

namespace dflow {

/// The step that SplitMix64 (Steele, Lea, Flood 2014) adds for each number.
inline constexpr std::uint64_t spread_step = 0x9e3779b97f4a7c15u;

/// Its finaliser: a bijection that spreads every bit, so that neighbouring numbers have nothing in common.
constexpr std::uint64_t spread_bits(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace dflow
