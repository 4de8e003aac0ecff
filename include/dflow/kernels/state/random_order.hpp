#pragma once

#include <dflow/kernels/state/node_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace dflow::detail {

/// A random order of 0, 1, ..., as RandomShuffle says. Precondition: 2 to 2^32 - 1 numbers.
inline void make_random_order(const NodeStream& node, std::span<std::int64_t> numbers) {
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  const std::size_t drawn = numbers.size() - 1;
  PhiloxStream stream = node.reserve_groups((drawn + 3) / 4);
  PhiloxWords words{};
  for (std::size_t i = 0; i < drawn; ++i) {
    if (i % 4 == 0) words = stream.next();
    const std::uint32_t word = words[static_cast<int>(i % 4)];
    std::swap(numbers[i], numbers[i + word % static_cast<std::uint32_t>(numbers.size() - i)]);
  }
}

}  // namespace dflow::detail
