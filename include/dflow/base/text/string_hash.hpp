#pragma once

#include <dflow/base/config.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace dflow {

// Hashes of bytes: TensorFlow's. Their values are fixed on every machine, so that they may be written down. Only
// `sip_hash` withstands an attacker that picks the bytes so that they collide, and does not know the key.

/// MurmurHash64A (Appleby) with the seed of TensorFlow's Hash64.
std::uint64_t murmur_hash64(std::string_view bytes) noexcept;

/// Fingerprint64 of FarmHash (Pike and Alakuijala, github.com/google/farmhash).
std::uint64_t farm_fingerprint64(std::string_view bytes) noexcept;

/// SipHash-2-4 (Aumasson and Bernstein 2012).
std::uint64_t sip_hash(const std::array<std::uint64_t, 2>& key, std::string_view bytes) noexcept;

}  // namespace dflow
