#include <dflow/base/text/string_hash.hpp>

#include "catch.hpp"

#include <array>
#include <string>

using namespace dflow;

namespace {
/// The bytes 0, 1, 2, ...
std::string counted_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i);
  return bytes;
}
}  // namespace

TEST_CASE("fingerprints are FarmHash's", "[hash]") {
  // tf.raw_ops.Fingerprint(method="farmhash64") of TensorFlow 2.21.0
  CHECK(farm_fingerprint64("") == 0x9ae16a3b2f90404fu);
  CHECK(farm_fingerprint64("a") == 0xb3454265b6df75e3u);
  CHECK(farm_fingerprint64("abcd") == 0x1a5502de4a1f8101u);
  CHECK(farm_fingerprint64("hello, world") == 0x0bddb94646e75817u);
  CHECK(farm_fingerprint64("0123456789abcdef0") == 0x6deb36b4a021a909u);
  CHECK(farm_fingerprint64(std::string(33, 'x')) == 0xaa49185443e61637u);
  // the longest of each way of hashing, and the shortest of the last
  CHECK(farm_fingerprint64(counted_bytes(16)) == 0x0efd25a0a34156d4u);
  CHECK(farm_fingerprint64(counted_bytes(32)) == 0x1a9d8199972cdf49u);
  CHECK(farm_fingerprint64(counted_bytes(64)) == 0xf58504bb53decc4bu);
  CHECK(farm_fingerprint64(counted_bytes(65)) == 0xc6a3282c3e793dbeu);
  CHECK(farm_fingerprint64(counted_bytes(200)) == 0x074c7fcc26d66fb3u);
  CHECK(farm_fingerprint64(counted_bytes(256)) == 0x496fbe15ed0e171fu);
}

TEST_CASE("keyed hashes are SipHash-2-4's", "[hash]") {
  // Aumasson and Bernstein 2012, appendix A
  CHECK(sip_hash({0x0706050403020100u, 0x0f0e0d0c0b0a0908u}, counted_bytes(15)) == 0xa129ca6149be45e5u);
}

TEST_CASE("old hashes are TensorFlow's Hash64", "[hash]") {
  // tf.raw_ops.StringToHashBucket(num_buckets=2^63 - 1) of TensorFlow 2.21.0
  constexpr std::uint64_t buckets = 0x7fffffffffffffffu;
  CHECK(murmur_hash64("") % buckets == 105434511174508092u);
  CHECK(murmur_hash64("abc") % buckets == 5658311696057142710u);
  CHECK(murmur_hash64(counted_bytes(20)) % buckets == 1707997266065195599u);
}
