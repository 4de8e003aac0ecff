#include <dflow/net/protocol/handshake.hpp>

#include "catch.hpp"
#include "connection_harness.hpp"
#include "support/errors.hpp"

#include <string>
#include <utility>

using namespace dflow;
using namespace dflow::net;

namespace {

Handshake::Options handshake_side(Role role, const std::string& task) {
  Handshake::Options options;
  options.role = role;
  options.self = {"cluster", task, 11, 22};
  options.secret = "the secret";
  options.window_bytes = 5;
  options.random = test::random_number;
  return options;
}

std::string_view as_text(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// The reason why `refuser` refuses the other side, when each side has got the other's messages.
Status outcome(const Handshake::Options& refuser, const Handshake::Options& other) {
  Handshake one(refuser), two(other);
  return status_of([&] {
    static_cast<void>(one.take_hello(two.hello()));
    const Sha256Digest to_one = two.take_hello(one.hello());
    one.take_proof(as_text(to_one));
    return 0;
  });
}

/// The reasons why two connections do not come about: the connector's status and the acceptor's status.
std::pair<Status, Status> both_told(const ConnectionOptions& near, const ConnectionOptions& far) {
  test::Wire wire;
  test::Ends ends = wire.ends();
  test::Opening near_opening, far_opening;
  const auto owner = std::make_shared<test::Owner>();
  Connection::open(std::move(ends.far), Role::acceptor, far, owner, far_opening.done());
  Connection::open(std::move(ends.near), Role::connector, near, owner, near_opening.done());
  const auto result = std::pair(near_opening.wait().first, far_opening.wait().first);
  CHECK(owner->num_requests == 0);
  CHECK(owner->num_closed == 0);  // it had never been open
  return result;
}

}  // namespace

TEST_CASE("a hello is the bytes of its table, and comes back", "[net]") {
  Hello hello;
  hello.role = Role::acceptor;
  hello.channel = Channel::data;
  hello.self = {"c", "/job:ps/replica:0/task:1", 3, 4};
  hello.wanted = "w";
  hello.window_bytes = 5;
  hello.nonce.fill(std::byte{7});
  const std::string bytes = hello.to_bytes();
  CHECK(bytes.size() == 2 + 32 + 2 + 25 + 8 + 8 + 2 + 8);
  CHECK(bytes.substr(0, 3) == "\2\2\7");
  CHECK(bytes.substr(34, 3) == "\1c\x18");
  const Hello got = Hello::from_bytes(bytes);
  CHECK(got.role == hello.role);
  CHECK(got.channel == hello.channel);
  CHECK(got.self == hello.self);
  CHECK(got.wanted == "w");
  CHECK(got.window_bytes == 5);
  CHECK(got.nonce == hello.nonce);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK(code_of([&] { return Hello::from_bytes(std::string_view(bytes).substr(0, size)); }) == Code::data_loss);
  }
  CHECK(code_of([&] { return Hello::from_bytes(bytes + '\0'); }) == Code::data_loss);
  hello.tasks_fingerprint = 6;
  const std::string longer = hello.to_bytes();
  CHECK(longer == bytes + test::u64_bytes(6));
  CHECK(Hello::from_bytes(longer).tasks_fingerprint == 6);
  CHECK(code_of([&] { return Hello::from_bytes(longer + '\0'); }) == Code::data_loss);
}

TEST_CASE("a connector says which tasks it knows, and an acceptor does not", "[net]") {
  for (const Role role : {Role::connector, Role::acceptor}) {
    auto side = handshake_side(role, "side");
    side.tasks_fingerprint = 6;
    CHECK(Hello::from_bytes(Handshake(side).hello()).tasks_fingerprint == (role == Role::connector ? 6u : 0u));
  }
}

TEST_CASE("a process of another user is refused by its name, and told why", "[net]") {
  auto near = handshake_side(Role::connector, "near"), far = handshake_side(Role::acceptor, "far");
  near.secret = far.secret = "";
  near.refuses_peer = true;
  const Status status = outcome(near, far);
  CHECK(status.code() == Code::unauthenticated);
  CHECK(mentions(status, "'far' runs for another user than 'near', and 'near' has no secret of the cluster"));
}

TEST_CASE("a hello of unknown parts, or of names that nobody has, is none", "[net]") {
  Hello hello;
  hello.self = {"c", "t", 3, 4};
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
    for (const char bad : {'\0', '\3', '\xff'}) {
      std::string bytes = hello.to_bytes();
      bytes[at] = bad;
      CHECK(code_of([&] { return Hello::from_bytes(bytes); }) == Code::data_loss);
    }
  }
  hello.self.task = std::string(TaskIdentity::max_name_bytes, 'x');
  CHECK(Hello::from_bytes(hello.to_bytes()).self.task == hello.self.task);
  hello.self.task += 'x';
  CHECK(code_of([&] { return Hello::from_bytes(hello.to_bytes()); }) == Code::out_of_range);
  hello.self.task = "t\nEverything is fine";
  CHECK(code_of([&] { return Hello::from_bytes(hello.to_bytes()); }) == Code::data_loss);
  hello.self.task = "t";
  hello.wanted = std::string(TaskIdentity::max_name_bytes + 1, 'x');
  CHECK(code_of([&] { return Hello::from_bytes(hello.to_bytes()); }) == Code::out_of_range);
}

TEST_CASE("two sides who know the secret believe each other, with and without one", "[net]") {
  auto near = handshake_side(Role::connector, "near"), far = handshake_side(Role::acceptor, "far");
  near.secret = far.secret = GENERATE("the secret", "");
  CHECK(outcome(near, far).ok());
  CHECK(outcome(far, near).ok());
}

TEST_CASE("a handshake says why a peer is turned away", "[net]") {
  const auto near = handshake_side(Role::connector, "near"), far = handshake_side(Role::acceptor, "far");
  const auto refused = [&](Code code, std::string_view text, const auto& change) {
    auto other = far;
    change(other);
    for (const bool turned : {false, true}) {
      auto self = near;
      if (turned) std::swap(self.role, other.role);
      const Status status = outcome(self, other);
      INFO(status.to_string());
      CHECK(status.code() == code);
      CHECK(mentions(status, text));
    }
  };
  refused(Code::unauthenticated, "'near' and 'far' were given different secrets",
          [](auto& o) { o.secret = "another"; });
  refused(Code::unauthenticated, "'near' and 'far' were given different secrets", [](auto& o) { o.secret = ""; });
  for (const bool turned : {false, true}) {
    auto without = near, with = far;
    without.secret = "";
    if (turned) std::swap(without.role, with.role);
    const Status status = outcome(without, with);
    CHECK(status.code() == Code::unauthenticated);
    CHECK(mentions(status, "'near' was given no secret of the cluster, and 'far' has one"));
  }
  refused(Code::failed_precondition, "'far' belongs to cluster 'other', and this is 'cluster'",
          [](auto& o) { o.self.cluster = "other"; });
  refused(Code::failed_precondition, "'far' has other ops than 'near'", [](auto& o) { o.self.op_fingerprint = 23; });
  auto to_another = near;
  to_another.wanted = "/job:ps/replica:0/task:1";
  for (const Status& status : {outcome(to_another, far), outcome(far, to_another)}) {
    CHECK(status.code() == Code::failed_precondition);
    CHECK(mentions(status, "'/job:ps/replica:0/task:1' was to be reached, and this is 'far'"));
    CHECK(mentions(status, "know different addresses of the cluster's tasks"));
  }
  refused(Code::failed_precondition, "calls itself 'near', as this process does",
          [](auto& o) { o.self.task = "near"; });
  // Another start of the same task is let in. The layers above decide which start keeps which values.
  auto anew = far;
  anew.self.incarnation = 12;
  CHECK(outcome(near, anew).ok());
}

TEST_CASE("what is sent back, and what was said before, proves nothing", "[net]") {
  const auto near_side = handshake_side(Role::connector, "near"), far_side = handshake_side(Role::acceptor, "far");
  Handshake near(near_side);
  SECTION("our own hello") {
    CHECK(contains(error_of([&] { return near.take_hello(near.hello()); }, Code::unauthenticated), "our own part"));
    std::string turned = near.hello();
    turned[0] = static_cast<char>(Role::acceptor);
    CHECK(contains(error_of([&] { return near.take_hello(turned); }, Code::unauthenticated), "our own hello"));
  }
  SECTION("our own proof") {
    Handshake far(far_side);
    const Sha256Digest own = near.take_hello(far.hello());
    CHECK(code_of([&] { return near.take_proof(as_text(own)), 0; }) == Code::unauthenticated);
  }
  SECTION("a hello and a proof of another time") {
    Handshake far(far_side);
    const Sha256Digest proof = far.take_hello(near.hello());
    Handshake again(near_side);  // with a fresh nonce
    static_cast<void>(again.take_hello(far.hello()));
    CHECK(code_of([&] { return again.take_proof(as_text(proof)), 0; }) == Code::unauthenticated);
  }
  SECTION("a proof that is cut, or too long") {
    Handshake far(far_side);
    const Sha256Digest proof = far.take_hello(near.hello());
    static_cast<void>(near.take_hello(far.hello()));
    for (std::size_t size = 0; size < proof.size(); ++size) {
      CHECK(code_of([&] { return near.take_proof(as_text(proof).substr(0, size)), 0; }) == Code::unauthenticated);
    }
    CHECK(code_of([&] { return near.take_proof(std::string(as_text(proof)) + '\0'), 0; }) == Code::unauthenticated);
    for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
      Sha256Digest other = proof;
      other[bit / 8] ^= std::byte{1} << (bit % 8);
      CHECK(code_of([&] { return near.take_proof(as_text(other)), 0; }) == Code::unauthenticated);
    }
    CHECK_NOTHROW(near.take_proof(as_text(proof)));
  }
  SECTION("a hello that was changed on its way") {
    Handshake far(far_side);
    std::string changed = far.hello();
    changed.back() ^= 1;  // of the window field
    static_cast<void>(near.take_hello(changed));
    const Sha256Digest proof = far.take_hello(near.hello());
    CHECK(code_of([&] { return near.take_proof(as_text(proof)), 0; }) == Code::unauthenticated);
  }
}

TEST_CASE("connections tell both sides why there is none, and log it", "[net]") {
  test::Lines lines;
  auto near = test::options_of("near"), far = test::options_of("far");
  far.log = lines.log();
  Code code = Code::failed_precondition;
  std::string text, near_text;
  SECTION("another secret") {
    near.secret = "another";
    code = Code::unauthenticated;
    text = "were given different secrets of the cluster";
  }
  SECTION("no secret on one side") {
    near.secret = "";
    code = Code::unauthenticated;
    text = "secret";
    near_text = "'near' was given no secret of the cluster, and 'far' has one";
  }
  SECTION("other ops") {
    near.self.op_fingerprint = 23;
    text = "has other ops than";
  }
  SECTION("another cluster") {
    near.self.cluster = "other";
    text = "belongs to cluster";
  }
  SECTION("another task") {
    near.expected_peer = "else";
    text = "'else' was to be reached, and this is 'far'";
  }
  const auto [near_told, far_told] = both_told(near, far);
  INFO(near_told.to_string() << "\n" << far_told.to_string());
  // One side finds the error first and tells the other side, unless the other side has found it too.
  CHECK(near_told.code() == code);
  CHECK(mentions(near_told, near_text.empty() ? text : near_text));
  CHECK(far_told.code() == code);
  CHECK(mentions(far_told, text));
  CHECK(lines.count("no connection with") == 1);
  CHECK(lines.count(text) == 1);
}

TEST_CASE("nothing that comes before the proof is read", "[net]") {
  test::Lines lines;
  auto options = test::options_of("far");
  options.log = lines.log();
  test::Raw raw(options);
  const std::string introduction = raw.introduction();
  std::string bytes, text;
  Code code = Code::failed_precondition;
  SECTION("a request at once") {
    bytes = test::request_bytes(1, "body");
    text = "has not proved who it is";
  }
  SECTION("a request after the hello") {
    bytes = test::frame_bytes(FrameType::hello, 0, raw.handshake->hello()) + test::request_bytes(1, "body");
    text = "has not proved who it is";
  }
  SECTION("a chunk") {
    bytes = test::frame_bytes(FrameType::chunk, 1, "chunk");
    text = "has not proved who it is";
  }
  SECTION("a proof before the hello") {
    bytes = introduction.substr(introduction.size() - FrameHeader::size - 32);
    text = "a proof before the hello";
    code = Code::unauthenticated;
  }
  SECTION("two hellos") {
    const std::string hello = test::frame_bytes(FrameType::hello, 0, raw.handshake->hello());
    bytes = hello + hello;
    text = "a second hello";
    code = Code::invalid_argument;
  }
  SECTION("a proof that is none, and a request") {
    bytes = introduction;
    bytes.resize(bytes.size() - FrameHeader::size - 32);
    bytes += test::frame_bytes(FrameType::proof, 0, std::string(32, 'x')) + test::request_bytes(1, "body");
    text = "were given different secrets of the cluster";
    code = Code::unauthenticated;
  }
  SECTION("a hello of 16 MiB") {
    FrameHeader header{.type = FrameType::hello, .length = 16 << 20};
    const FrameHeaderBytes head = to_bytes(header);
    bytes.assign(reinterpret_cast<const char*>(head.data()), head.size());
    text = "a frame of 16777216 bytes, more than";
    code = Code::out_of_range;
  }
  static_cast<void>(raw.send(bytes));
  const Status told = raw.goodbye();
  INFO(told.to_string());
  CHECK(told.code() == code);
  CHECK(mentions(told, text));
  CHECK(raw.opening.wait().first == told);
  CHECK(raw.owner->num_requests == 0);
  CHECK(lines.count(text) == 1);
}
