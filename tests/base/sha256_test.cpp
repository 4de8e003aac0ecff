#include <dflow/base/sha256.hpp>

#include "catch.hpp"

#include <cstddef>
#include <string>
#include <string_view>

using namespace dflow;

namespace {

std::string hex_of_digest(const Sha256Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) {
    for (const int digit : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15}) {
      text += "0123456789abcdef"[digit];
    }
  }
  return text;
}

struct HmacVector {
  std::string key;
  std::string message;
  std::string_view code;
};

// RFC 4231, test cases 1 to 7 but the truncated 5.
const HmacVector& rfc_4231(std::size_t i) {
  static const HmacVector vectors[] = {
      {std::string(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {std::string(20, '\xaa'), std::string(50, '\xdd'),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
       std::string(50, '\xcd'), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {std::string(131, '\xaa'),
       "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
       "hashed before being used by the HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
  };
  return vectors[i];
}

}  // namespace

TEST_CASE("SHA-256 gives the published hashes of short messages", "[base]") {
  CHECK(hex_of_digest(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex_of_digest(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex_of_digest(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex_of_digest(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
                             "lmnopqrsmnopqrstnopqrstu")) ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  // CAVP's SHA256ShortMsg: 8 and 32 bits.
  CHECK(hex_of_digest(sha256("\xd3")) == "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
  CHECK(hex_of_digest(sha256("\x74\xba\x25\x21")) ==
        "b16aa56be3880d18cd41e68384cf1ec8c17680c45a02b1575dc1518923ae8b0e");
}

TEST_CASE("SHA-256 of a million times 'a' is the published one", "[base]") {
  Sha256 hash;
  const std::string part(1000, 'a');
  for (int i = 0; i < 1000; ++i) hash.update(part);
  CHECK(hex_of_digest(hash.digest()) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("it does not matter to SHA-256 where a message is cut", "[base]") {
  std::string message;
  for (int i = 0; i < 200; ++i) message += static_cast<char>(i * 7);
  const std::string_view all = message;
  for (std::size_t length = 0; length <= all.size(); ++length) {
    const Sha256Digest expected = sha256(all.substr(0, length));
    for (const std::size_t cut : {std::size_t{0}, length / 3, length / 2, length}) {
      Sha256 hash;
      hash.update(all.substr(0, cut));
      hash.update("");
      hash.update(all.substr(cut, length - cut));
      REQUIRE(hash.digest() == expected);
    }
    Sha256 by_bytes;
    for (std::size_t i = 0; i < length; ++i) by_bytes.update(all.substr(i, 1));
    REQUIRE(by_bytes.digest() == expected);
  }
}

TEST_CASE("a hash may be asked for its digest at any time and goes on", "[base]") {
  Sha256 hash;
  hash.update("ab");
  CHECK(hash.digest() == sha256("ab"));
  CHECK(hash.digest() == sha256("ab"));
  Sha256 copy = hash;
  hash.update("c");
  CHECK(hash.digest() == sha256("abc"));
  copy.update("d");
  CHECK(copy.digest() == sha256("abd"));
}

TEST_CASE("HMAC-SHA-256 gives the codes of RFC 4231", "[base]") {
  for (std::size_t i = 0; i < 6; ++i) {
    const HmacVector& vector = rfc_4231(i);
    CAPTURE(i);
    CHECK(hex_of_digest(hmac_sha256(vector.key, vector.message)) == vector.code);
    HmacSha256 in_parts(vector.key);
    for (const char c : vector.message) in_parts.update(std::string_view(&c, 1));
    CHECK(hex_of_digest(in_parts.digest()) == vector.code);
    CHECK(hex_of_digest(in_parts.digest()) == vector.code);
  }
  // Test case 5 publishes the first 128 bits.
  CHECK(hex_of_digest(hmac_sha256(std::string(20, '\x0c'), "Test With Truncation")).substr(0, 32) ==
        "a3b6167473100ee06e0c796c2955552b");
}

TEST_CASE("an HMAC may have an empty key and an empty message", "[base]") {
  CHECK(hex_of_digest(hmac_sha256("", "")) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("digests are equal if no bit differs", "[base]") {
  const Sha256Digest one = sha256("one");
  CHECK(constant_time_equal(one, sha256("one")));
  for (std::size_t bit = 0; bit < 256; ++bit) {
    Sha256Digest other = one;
    other[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    REQUIRE_FALSE(constant_time_equal(one, other));
  }
}
