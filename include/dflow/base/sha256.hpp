#pragma once

#include <dflow/base/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dflow {

/// The result of SHA-256.
using Sha256Digest = std::array<std::byte, 32>;

/// The hash of bytes that come in parts: SHA-256 (FIPS 180-4). Portable code; its time depends on the number of bytes
/// only.
///
/// Thread safety: one thread at a time; a copy is independent and continues from the same bytes.
class Sha256 {
 public:
  static constexpr std::size_t block_bytes = 64;

  Sha256() noexcept;

  void update(std::span<const std::byte> bytes) noexcept;
  void update(std::string_view text) noexcept { update(std::as_bytes(std::span(text.data(), text.size()))); }

  /// The hash of all bytes so far. More may follow.
  Sha256Digest digest() const noexcept;

 private:
  void add_blocks(const std::byte* at, std::size_t count) noexcept;

  std::array<std::uint32_t, 8> state_;
  std::array<std::byte, block_bytes> pending_{};
  std::uint64_t length_ = 0;  // in bytes
};

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept;
Sha256Digest sha256(std::string_view text) noexcept;

/// A code that only holders of `key` can compute: HMAC-SHA-256 (RFC 2104) of bytes that come in parts. A key of more
/// than 64 bytes is replaced by its hash, as the standard requires; a key of less than 32 bytes is weaker than the
/// hash.
///
/// Thread safety: one thread at a time; a copy is independent and continues from the same bytes.
class HmacSha256 {
 public:
  explicit HmacSha256(std::span<const std::byte> key) noexcept;
  explicit HmacSha256(std::string_view key) noexcept : HmacSha256(std::as_bytes(std::span(key.data(), key.size()))) {}

  void update(std::span<const std::byte> bytes) noexcept { inner_.update(bytes); }
  void update(std::string_view text) noexcept { inner_.update(text); }

  /// The code of all bytes so far. More may follow.
  Sha256Digest digest() const noexcept;

 private:
  Sha256 inner_;
  Sha256 outer_;
};

Sha256Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) noexcept;
Sha256Digest hmac_sha256(std::string_view key, std::string_view message) noexcept;

/// Whether two digests are the same, in a time that does not say where they differ. Compare a digest from a peer by
/// this function, never by ==.
bool constant_time_equal(const Sha256Digest& a, const Sha256Digest& b) noexcept;

}  // namespace dflow
