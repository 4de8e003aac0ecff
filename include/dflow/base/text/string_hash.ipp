#pragma once

#include <dflow/base/text/string_hash.hpp>

#include <bit>
#include <cstddef>
#include <utility>

namespace dflow {

namespace detail {

/// `count` bytes, the first the least significant.
inline std::uint64_t little_endian_bytes(const char* from, std::size_t count) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  return value;
}
inline std::uint64_t little_endian64(const char* from) noexcept { return little_endian_bytes(from, 8); }
inline std::uint64_t little_endian32(const char* from) noexcept { return little_endian_bytes(from, 4); }

/// FarmHash's function for strings ("farmhashna"), by length of the string.
struct FarmHash {
  static constexpr std::uint64_t k0 = 0xc3a5c85c97cb3127u, k1 = 0xb492b66fbe98f273u, k2 = 0x9ae16a3b2f90404fu;
  using Pair = std::pair<std::uint64_t, std::uint64_t>;

  static std::uint64_t shift_mix(std::uint64_t value) noexcept { return value ^ (value >> 47); }

  static std::uint64_t of_two(std::uint64_t u, std::uint64_t v, std::uint64_t factor) noexcept {
    const std::uint64_t a = shift_mix((u ^ v) * factor);
    return shift_mix((v ^ a) * factor) * factor;
  }

  static std::uint64_t up_to_16(const char* s, std::size_t size) noexcept {
    const std::uint64_t factor = k2 + size * 2;
    if (size >= 8) {
      const std::uint64_t a = little_endian64(s) + k2, b = little_endian64(s + size - 8);
      return of_two(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
    }
    if (size >= 4) return of_two(size + (little_endian32(s) << 3), little_endian32(s + size - 4), factor);
    if (size == 0) return k2;
    const std::uint64_t first = little_endian_bytes(s, 1), middle = little_endian_bytes(s + size / 2, 1),
                        last = little_endian_bytes(s + size - 1, 1);
    return shift_mix((first + (middle << 8)) * k2 ^ (size + (last << 2)) * k0) * k2;
  }

  static std::uint64_t up_to_32(const char* s, std::size_t size) noexcept {
    const std::uint64_t factor = k2 + size * 2, a = little_endian64(s) * k1, b = little_endian64(s + 8),
                        c = little_endian64(s + size - 8) * factor, d = little_endian64(s + size - 16) * k2;
    return of_two(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
  }

  static std::uint64_t up_to_64(const char* s, std::size_t size) noexcept {
    const std::uint64_t factor = k2 + size * 2, a = little_endian64(s) * k2, b = little_endian64(s + 8),
                        c = little_endian64(s + size - 8) * factor, d = little_endian64(s + size - 16) * k2;
    const std::uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
    const std::uint64_t z = of_two(y, a + std::rotr(b + k2, 18) + c, factor);
    const std::uint64_t e = little_endian64(s + 16) * factor, f = little_endian64(s + 24),
                        g = (y + little_endian64(s + size - 32)) * factor,
                        h = (z + little_endian64(s + size - 24)) * factor;
    return of_two(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
  }

  static Pair weak_32(const char* s, std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t w = little_endian64(s), x = little_endian64(s + 8), y = little_endian64(s + 16),
                        z = little_endian64(s + 24);
    a += w;
    b = std::rotr(b + a + z, 21);
    const std::uint64_t c = a;
    a += x + y;
    b += std::rotr(a, 44);
    return {a + z, b + c};
  }

  /// The state between one block of 64 bytes and the next.
  std::uint64_t x = 81, y = 81 * k1 + 113, z = shift_mix(y * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};

  void block(const char* s, std::uint64_t factor, std::uint64_t weight) noexcept {
    x = std::rotr(x + y + v.first + little_endian64(s + 8), 37) * factor;
    y = std::rotr(y + v.second + little_endian64(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + little_endian64(s + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = weak_32(s, v.second * factor, x + w.first);
    w = weak_32(s + 32, z + w.second, y + little_endian64(s + 16));
    std::swap(z, x);
  }

  /// Precondition: more than 64 bytes.
  std::uint64_t of_long(const char* s, std::size_t size) noexcept {
    const std::size_t whole = (size - 1) / 64 * 64, left = (size - 1) & 63;
    x = x * k2 + little_endian64(s);
    for (std::size_t at = 0; at < whole; at += 64) block(s + at, k1, 1);
    const std::uint64_t factor = k1 + ((z & 0xff) << 1);
    w.first += left;
    v.first += w.first;
    w.first += v.first;
    block(s + size - 64, factor, 9);
    return of_two(of_two(v.first, w.first, factor) + shift_mix(y) * k0 + z, of_two(v.second, w.second, factor) + x,
                  factor);
  }
};

}  // namespace detail

std::uint64_t murmur_hash64(std::string_view bytes) noexcept {
  constexpr std::uint64_t seed = 0xdecafcaffeu, factor = 0xc6a4a7935bd1e995u;
  std::uint64_t hash = seed ^ (bytes.size() * factor);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = detail::little_endian64(bytes.data()) * factor;
    word = (word ^ (word >> 47)) * factor;
    hash = (hash ^ word) * factor;
  }
  if (!bytes.empty()) hash = (hash ^ detail::little_endian_bytes(bytes.data(), bytes.size())) * factor;
  hash = (hash ^ (hash >> 47)) * factor;
  return hash ^ (hash >> 47);
}

std::uint64_t farm_fingerprint64(std::string_view bytes) noexcept {
  using Farm = detail::FarmHash;
  if (bytes.size() <= 16) return Farm::up_to_16(bytes.data(), bytes.size());
  if (bytes.size() <= 32) return Farm::up_to_32(bytes.data(), bytes.size());
  if (bytes.size() <= 64) return Farm::up_to_64(bytes.data(), bytes.size());
  return Farm().of_long(bytes.data(), bytes.size());
}

std::uint64_t sip_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes) noexcept {
  std::uint64_t v0 = key[0] ^ 0x736f6d6570736575u, v1 = key[1] ^ 0x646f72616e646f6du, v2 = key[0] ^ 0x6c7967656e657261u,
                v3 = key[1] ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  const std::uint64_t size = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) take(detail::little_endian64(bytes.data()));
  take(size << 56 | detail::little_endian_bytes(bytes.data(), bytes.size()));
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace dflow
