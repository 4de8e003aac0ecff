#include <dflow/base/files/base64.hpp>

#include "catch.hpp"

#include <random>
#include <string>

using namespace dflow;

TEST_CASE("bytes survive base64", "[base64]") {
  std::mt19937 random(4);
  for (std::size_t size = 0; size < 70; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    CHECK(from_base64(to_base64(std::as_bytes(std::span(bytes)))) == bytes);
  }
}

TEST_CASE("base64 is that of RFC 4648, and each of its texts the only one of its bytes", "[base64]") {
  CHECK(to_base64(std::as_bytes(std::span("foobar", 4))) == "Zm9vYg==");
  CHECK(to_base64(std::as_bytes(std::span("foobar", 6))) == "Zm9vYmFy");
  for (const char* malformed : {"Zg", "Zg=", "Z===", "Zh==", "Zm9=", "Zg==Zg==", "Z g="}) {
    CHECK_FALSE(from_base64(malformed));
  }
}

TEST_CASE("the code for URLs is that of RFC 4648, padded or not", "[base64]") {
  const std::string bytes("\xff\xfe>?a", 5);
  CHECK(to_base64_url(std::as_bytes(std::span(bytes)), false) == "__4-P2E");
  CHECK(to_base64_url(std::as_bytes(std::span(bytes)), true) == "__4-P2E=");
  CHECK(from_base64_url("__4-P2E") == bytes);
  CHECK(from_base64_url("__4-P2E=") == bytes);
  CHECK(from_base64_url("YR") == "a");  // as TensorFlow's decode_base64
  for (const char* malformed : {"//4+P2E", "Y", "YQ=", "YQ===", "====", "Y Q", "YQ==YQ", "Y==="}) {
    CHECK_FALSE(from_base64_url(malformed));
  }
}
