#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// Positions in a list, found by a hash of the element at each position. It is a flat table with eight bytes an entry.
/// It asks the list itself only where hashes agree.
///
/// Thread safety: a value type.
class PositionTable {
 public:
  /// Looks among the positions that were put in with this hash, and returns the one for which `is_same(position)`
  /// holds. If there is none, returns -1 and puts `position` in. The upper 32 bits of the hash count. Precondition:
  /// position >= 0.
  template <class IsSame>
  std::int32_t find_or_insert(std::uint64_t hash, std::int32_t position, IsSame&& is_same) {
    if ((size_ + 1) * 4 > places_.size() * 3) grow();
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = tag >> shift_;
    for (; places_[at].position >= 0; at = next(at)) {
      if (places_[at].tag == tag && is_same(places_[at].position)) return places_[at].position;
    }
    places_[at] = {tag, position};
    ++size_;
    return -1;
  }
  /// The same without putting a position in.
  template <class IsSame>
  std::int32_t find(std::uint64_t hash, IsSame&& is_same) const {
    if (places_.empty()) return -1;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = tag >> shift_; places_[at].position >= 0; at = next(at)) {
      if (places_[at].tag == tag && is_same(places_[at].position)) return places_[at].position;
    }
    return -1;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Place {
    std::uint32_t tag = 0;
    std::int32_t position = -1;
  };

  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (places_.size() - 1); }
  void grow() {
    const int shift = places_.empty() ? 28 : shift_ - 1;
    std::vector<Place> old(std::size_t{1} << (32 - shift));
    old.swap(places_);
    shift_ = shift;
    for (const Place& place : old) {
      if (place.position < 0) continue;
      std::size_t at = place.tag >> shift_;
      while (places_[at].position >= 0) at = next(at);
      places_[at] = place;
    }
  }

  std::vector<Place> places_;
  std::size_t size_ = 0;
  int shift_ = 32;  ///< of a tag, to a place
};

/// A step of a hash; the upper bits of the result depend on all of its input (the finaliser of MurmurHash3).
constexpr std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t value) noexcept {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash ^= hash >> 33;
  return hash * 0xff51afd7ed558ccdu;
}

}  // namespace dflow
