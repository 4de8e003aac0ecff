#include <dflow/base/position_table.hpp>

#include "catch.hpp"

#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

using dflow::PositionTable;

TEST_CASE("a table of positions finds what a hash table of the standard library finds", "[base]") {
  for (const std::uint64_t num_values : {3u, 1000u, 30000u}) {
    std::mt19937_64 rng(num_values);
    PositionTable table;
    std::vector<std::uint64_t> list;
    std::unordered_map<std::uint64_t, std::int32_t> expected;
    // Hashes of few bits collide, hashes of many bits spread.
    for (const std::uint64_t mask : {0xfull << 32, ~0ull}) {
      table = PositionTable();
      list.clear();
      expected.clear();
      const int count = mask == ~0ull ? 40000 : 500;
      for (int i = 0; i < count; ++i) {
        const std::uint64_t value = rng() % num_values;
        const std::uint64_t hash = dflow::mix_hash(0, value) & mask;
        const auto is_same = [&](std::int32_t at) { return list[static_cast<std::size_t>(at)] == value; };
        const auto [found, is_new] = expected.try_emplace(value, static_cast<std::int32_t>(list.size()));
        if (table.find(hash, is_same) != (is_new ? -1 : found->second)) FAIL("value " << value);
        const auto end = static_cast<std::int32_t>(list.size());
        if (table.find_or_insert(hash, end, is_same) != (is_new ? -1 : found->second)) FAIL("value " << value);
        if (is_new) list.push_back(value);
      }
      CHECK(table.size() == list.size());
    }
  }
}
