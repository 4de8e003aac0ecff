#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dflow::detail {

/// 2 MiB in 64 parts of 32 KiB; a set bit of `free` is a part that is not in use.
struct HugeChunk {
  static constexpr std::size_t bytes = std::size_t{2} << 20;
  static constexpr std::size_t num_parts = 64;
  static constexpr std::size_t part_bytes = bytes / num_parts;
  static constexpr std::uint64_t all_free = ~std::uint64_t{0};

  std::byte* begin = nullptr;
  std::uint64_t free = all_free;
  /// The list it is in, by its longest free run, and its neighbours there.
  std::size_t listed_run = 0;
  HugeChunk* before = nullptr;
  HugeChunk* after = nullptr;

  static constexpr std::uint64_t run(std::size_t parts, int at) noexcept { return (all_free >> (64 - parts)) << at; }
  /// The first of `parts` free parts in a row, or -1.
  constexpr int find(std::size_t parts) const noexcept {
    std::uint64_t starts = free;
    for (std::size_t have = 1; have < parts;) {
      const std::size_t shift = std::min(have, parts - have);
      starts &= starts >> shift;
      have += shift;
    }
    return starts == 0 ? -1 : std::countr_zero(starts);
  }
  /// How many free parts lie in a row at most.
  constexpr std::size_t longest_run() const noexcept {
    if (free == all_free) return num_parts;
    // starts[k] marks where runs of 2^k parts start; the longest run is put together from the largest down.
    std::array<std::uint64_t, 6> starts{free};
    std::size_t last = 0;
    while (last + 1 < starts.size() && starts[last] != 0) {
      starts[last + 1] = starts[last] & (starts[last] >> (std::size_t{1} << last));
      ++last;
    }
    std::size_t length = 0;
    std::uint64_t longest = all_free;
    for (std::size_t k = last + 1; k-- > 0;) {
      const std::uint64_t longer = longest & (starts[k] >> length);
      if (longer == 0) continue;
      longest = longer;
      length += std::size_t{1} << k;
    }
    return length;
  }
};

static_assert(HugeChunk{nullptr, 0b0111'0110}.find(3) == 4);
static_assert(HugeChunk{nullptr, 0b0111'0110}.find(4) == -1);
static_assert(HugeChunk{}.find(56) == 0);
static_assert(HugeChunk{nullptr, 0b0111'0110}.longest_run() == 3);
static_assert(HugeChunk{nullptr, 0}.longest_run() == 0);
static_assert(HugeChunk{nullptr, HugeChunk::all_free << 1}.longest_run() == 63);
static_assert(HugeChunk{nullptr, HugeChunk::all_free << 32 | 0x7fff'fffe}.longest_run() == 32);

/// Chunks in lists by their longest free run.
class ChunkLists {
 public:
  void insert(HugeChunk& chunk) noexcept {
    const std::size_t run = chunk.listed_run = chunk.longest_run();
    if (run == 0) return;
    chunk.before = nullptr;
    chunk.after = first_[run - 1];
    if (chunk.after != nullptr) chunk.after->before = &chunk;
    first_[run - 1] = &chunk;
    filled_ |= std::uint64_t{1} << (run - 1);
  }
  void remove(HugeChunk& chunk) noexcept {
    const std::size_t run = chunk.listed_run;
    if (run == 0) return;
    (chunk.before != nullptr ? chunk.before->after : first_[run - 1]) = chunk.after;
    if (chunk.after != nullptr) chunk.after->before = chunk.before;
    if (first_[run - 1] == nullptr) filled_ &= ~(std::uint64_t{1} << (run - 1));
  }
  /// The chunk with the shortest longest run that will do, so that long runs and empty chunks stay; or null.
  HugeChunk* find(std::size_t parts) const noexcept {
    const std::uint64_t fitting = filled_ >> (parts - 1);
    return fitting == 0 ? nullptr : first_[parts - 1 + static_cast<std::size_t>(std::countr_zero(fitting))];
  }
  HugeChunk* empty_one() const noexcept { return first_[HugeChunk::num_parts - 1]; }

 private:
  std::array<HugeChunk*, HugeChunk::num_parts> first_{};
  std::uint64_t filled_ = 0;
};

}  // namespace dflow::detail
