// Connections of tasks over sockets that take only a part of each write at once.
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include "../../protocol/connection_harness.hpp"
#include "catch.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

struct SocketPair {
  explicit SocketPair(ConnectionOptions near_options = test::options_of("near")) {
    // Small buffers: most writes are taken in part.
    AsioTransport transport({.threads = 2, .send_buffer_bytes = 8192, .receive_buffer_bytes = 8192});
    const auto listener = transport.listen("127.0.0.1:0");
    test::Ends ends = test::connected(transport, *listener);
    test::Opening near_opening, far_opening;
    Connection::open(std::move(ends.far), Role::acceptor, test::options_of("far"), far_owner, far_opening.done());
    Connection::open(std::move(ends.near), Role::connector, std::move(near_options), near_owner, near_opening.done());
    std::tie(near_status, near) = near_opening.wait();
    std::tie(far_status, far) = far_opening.wait();
  }

  std::shared_ptr<test::Owner> near_owner = std::make_shared<test::Owner>();
  std::shared_ptr<test::Owner> far_owner = std::make_shared<test::Owner>();
  Status near_status, far_status;
  std::shared_ptr<Connection> near, far;
};

}  // namespace

TEST_CASE("large payloads and many small calls share a socket", "[net]") {
  SocketPair pair;
  REQUIRE(pair.near != nullptr);
  REQUIRE(pair.far != nullptr);
  auto bytes = std::make_shared<std::string>(5'000'003, '\0');
  std::iota(bytes->begin(), bytes->end(), 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Connection& from = t == 0 ? *pair.far : *pair.near;
      for (int i = 0; i < 60; ++i) {
        const auto landing = std::make_shared<std::string>();
        test::Answered answered;
        Call call;
        call.message.body = std::to_string(i);
        if (i % 20 == 0) call.message.payload = {{test::bytes_of(*bytes)}, bytes};
        call.place_payload = [landing](std::string_view, std::uint64_t size) -> StatusOr<PayloadMemory> {
          landing->resize(size);
          return PayloadMemory{std::as_writable_bytes(std::span(landing->data(), landing->size())), landing};
        };
        from.call(std::move(call), answered.done());
        const auto [status, body] = answered.wait();
        if (!status.ok() || body != std::to_string(i) || (i % 20 == 0 && *landing != *bytes)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  pair.near->close(Status::aborted("the reason"));
  CHECK(mentions(pair.near_owner->closed(), "the reason"));
  CHECK(mentions(pair.far_owner->closed(), "the reason"));
}

TEST_CASE("a goodbye arrives by a socket behind all that was sent before", "[net]") {
  for (int i = 0; i < 20; ++i) {
    SocketPair pair;
    REQUIRE(pair.near != nullptr);
    REQUIRE(pair.far != nullptr);
    for (int post = 0; post < 20; ++post) CHECK(pair.near->post(1, std::string(10'000, 'x')).ok());
    test::Answered answered;
    pair.near->call({}, answered.done());
    CHECK(answered.wait().first.ok());
    CHECK(pair.far->post(1, "on its way").ok());
    pair.near->close(Status::aborted("the reason"));
    CHECK(mentions(pair.far_owner->closed(), "the reason"));
    CHECK(pair.far_owner->num_requests == 21);
  }
}

TEST_CASE("both sides of a socket are told why there is no connection", "[net]") {
  for (int i = 0; i < 20; ++i) {
    auto near = test::options_of("near");
    near.secret = "another";
    const SocketPair pair(near);
    CHECK(pair.near_status.code() == Code::unauthenticated);
    CHECK(pair.far_status.code() == Code::unauthenticated);
  }
}
