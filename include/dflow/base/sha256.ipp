#pragma once

#include <dflow/base/sha256.hpp>

#include <algorithm>
#include <bit>
#include <cstring>

namespace dflow {
namespace detail {

// FIPS 180-4, section 4.2.2: of the cube roots of the first 64 primes the first 32 bits behind the point.
inline constexpr std::array<std::uint32_t, 64> sha256_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

inline std::uint32_t load_big_endian(const std::byte* at) noexcept {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = (word << 8) | std::to_integer<std::uint32_t>(at[i]);
  return word;
}

}  // namespace detail

// FIPS 180-4, section 5.3.3.
Sha256::Sha256() noexcept
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::add_blocks(const std::byte* at, std::size_t count) noexcept {
  for (; count != 0; --count, at += block_bytes) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i) w[i] = detail::load_big_endian(at + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + detail::sha256_constants[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += added[i];
  }
}

void Sha256::update(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const std::size_t held = length_ % block_bytes;
  length_ += bytes.size();
  if (held != 0) {
    const std::size_t taken = std::min(bytes.size(), block_bytes - held);
    std::memcpy(pending_.data() + held, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    if (held + taken != block_bytes) return;
    add_blocks(pending_.data(), 1);
  }
  const std::size_t blocks = bytes.size() / block_bytes;
  add_blocks(bytes.data(), blocks);
  bytes = bytes.subspan(blocks * block_bytes);
  if (!bytes.empty()) std::memcpy(pending_.data(), bytes.data(), bytes.size());
}

Sha256Digest Sha256::digest() const noexcept {
  constexpr std::array<std::byte, block_bytes> padding{std::byte{0x80}};
  std::array<std::byte, 8> bits{};
  for (std::size_t i = 0; i < 8; ++i) bits[i] = static_cast<std::byte>((length_ * 8) >> (56 - 8 * i));
  Sha256 whole = *this;
  const std::size_t held = length_ % block_bytes;
  whole.update(std::span(padding).first(held < 56 ? 56 - held : 120 - held));
  whole.update(bits);
  Sha256Digest result;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::byte>(whole.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return result;
}

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept {
  Sha256 hash;
  hash.update(bytes);
  return hash.digest();
}

Sha256Digest sha256(std::string_view text) noexcept {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

HmacSha256::HmacSha256(std::span<const std::byte> key) noexcept {
  Sha256Digest hashed;
  if (key.size() > Sha256::block_bytes) {
    hashed = sha256(key);
    key = hashed;
  }
  std::array<std::byte, Sha256::block_bytes> block{};
  std::copy(key.begin(), key.end(), block.begin());
  for (std::byte& byte : block) byte ^= std::byte{0x36};
  inner_.update(block);
  for (std::byte& byte : block) byte ^= std::byte{0x36 ^ 0x5c};
  outer_.update(block);
}

Sha256Digest HmacSha256::digest() const noexcept {
  Sha256 outer = outer_;
  outer.update(inner_.digest());
  return outer.digest();
}

Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) noexcept {
  HmacSha256 code(key);
  code.update(message);
  return code.digest();
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) noexcept {
  HmacSha256 code(key);
  code.update(message);
  return code.digest();
}

bool constant_time_equal(const Sha256Digest& a, const Sha256Digest& b) noexcept {
  // A compiler may not leave the loop early over a volatile.
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = difference | std::to_integer<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace dflow
