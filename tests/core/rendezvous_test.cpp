#include <dflow/core/rendezvous.hpp>

#include "catch.hpp"

using namespace dflow;

namespace {
const RendezvousKey key("/job:a/replica:0/task:0/device:CPU:0", 0xfeed, "/job:b/replica:0/task:1/device:CPU:0",
                        "edge_7_w:0", "loop/inner", 12);
}  // namespace

TEST_CASE("a rendezvous key is one string with five parts", "[rendezvous]") {
  CHECK(key.text() ==
        "/job:a/replica:0/task:0/device:CPU:0;feed;/job:b/replica:0/task:1/device:CPU:0;edge_7_w:0;loop/inner:12");
  CHECK(key.source_device() == "/job:a/replica:0/task:0/device:CPU:0");
  CHECK(key.destination_device() == "/job:b/replica:0/task:1/device:CPU:0");
  CHECK(key.tensor_name() == "edge_7_w:0");
  CHECK(key.source_incarnation() == 0xfeed);
}

TEST_CASE("a rendezvous key reads back equal, with the same hash", "[rendezvous]") {
  const StatusOr<RendezvousKey> read = RendezvousKey::parse(key.text());
  REQUIRE(read.ok());
  CHECK(*read == key);
  CHECK(read->hash() == key.hash());
  CHECK_FALSE(*read == RendezvousKey("/a", 0xfeed, "/b", "edge_7_w:0", "loop/inner", 13));
}

TEST_CASE("malformed rendezvous keys are refused", "[rendezvous]") {
  for (const char* text : {"", "a", ";;;;", "a;1;b;c", "a;1;b;c;", "a;1;b;c;:", "a;x;b;c;:0", "a;1;b;c;:0x",
                           "a;01;b;c;:0", "a;1;b;c;:0;d", "a;11111111111111111;b;c;:0"}) {
    INFO(text);
    CHECK(RendezvousKey::parse(text).status().code() == Code::invalid_argument);
  }
  CHECK(RendezvousKey::parse("a;1;b;c;:0").ok());
}
