#include <dflow/net/transport/sockets/asio_transport.hpp>

#if defined(DFLOW_TEST_HAS_OPENSSL)

#include <dflow/base/clock.hpp>

#include "../transport_contract.hpp"
#include "catch.hpp"
#include "certificates.hpp"
#include "support/errors.hpp"

#include <memory>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::net;

using test::CertificateFolder;
using test::refused;

TEST_CASE("TLS keeps the promises of a transport, on one thread and on three", "[net]") {
  const CertificateFolder folder;
  AsioTransport transport({.threads = GENERATE(1, 3), .tls = folder.options("good")});
  const std::string free = transport.listen("tls://localhost:0")->address();
  test::keeps_its_promises(transport, free);
}

TEST_CASE("TLS finds a host by its address too", "[net]") {
  const CertificateFolder folder;
  AsioTransport transport({.tls = folder.options("good")});
  const auto listener = transport.listen("tls://127.0.0.1:0");
  const test::Ends ends = test::connected(transport, *listener);
  CHECK(contains(ends.far->peer(), "tls://127.0.0.1:"));
  CHECK(test::write(*ends.near, {"ping"}).ok());
  CHECK(test::read(*ends.far, 4) == "ping");
}

TEST_CASE("a TLS peer that is not who it should be is refused", "[net]") {
  const CertificateFolder folder;
  const TlsOptions good = folder.options("good");
  const auto is_unauthenticated = [&](const TlsOptions& server, const char* why) {
    const Status status = refused(server, good);
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::unauthenticated);
    CHECK(contains(status.message(), why));
    CHECK(contains(status.message(), "cannot connect to 'tls://localhost:"));
  };
  is_unauthenticated(folder.options("strange"), "issuer certificate");
  is_unauthenticated(folder.options("expired"), "expired");
  is_unauthenticated(folder.options("elsewhere"), "ostname mismatch");
  CHECK(refused(folder.options("elsewhere"), good, "127.0.0.1").code() == Code::unauthenticated);
  CHECK(refused(good, folder.options("")).code() == Code::unauthenticated);
  CHECK(refused(good, folder.options("strange")).code() == Code::unauthenticated);
  CHECK(refused(good, folder.options("expired")).code() == Code::unauthenticated);
  CHECK(refused(good, folder.options("good", "other")).code() == Code::unauthenticated);
}

TEST_CASE("without verification anybody talks to anybody", "[net]") {
  const CertificateFolder folder;
  TlsOptions server = folder.options("expired");
  server.verifies_peers = false;
  AsioTransport there({.tls = server}), here({.tls = TlsOptions{.verifies_peers = false}});
  const auto listener = there.listen("tls://localhost:0");
  std::unique_ptr<Stream> near, far;
  test::Ended accepted;
  listener->accept(far, accepted.completion());
  CHECK(test::connect(here, listener->address(), near).ok());
  REQUIRE(accepted.wait().ok());
  CHECK(test::write(*near, {"ping"}).ok());
  CHECK(test::read(*far, 4) == "ping");
}

TEST_CASE("a peer without TLS is refused, either way, and holds up no other", "[net]") {
  const CertificateFolder folder;
  const auto clock = std::make_shared<VirtualClock>();
  AsioTransport transport({.clock = clock, .tls = folder.options("good")});
  const auto listener = transport.listen("tls://localhost:0");
  const std::string plain = "tcp" + listener->address().substr(3);
  std::unique_ptr<Stream> silent, loud;
  CHECK(test::connect(transport, plain, silent).ok());
  CHECK(test::connect(transport, plain, loud).ok());
  CHECK(test::write(*loud, {"GET / HTTP/1.1\r\n\r\n"}).ok());
  Status status;
  test::read(*loud, 1000, &status);
  CHECK(status.code() == Code::unavailable);
  const test::Ends ends = test::connected(transport, *listener);
  CHECK(test::write(*ends.near, {"ping"}).ok());
  CHECK(test::read(*ends.far, 4) == "ping");
  // The silent one has its time.
  CHECK(clock->advance_to_next());
  CHECK(test::read(*silent, 1, &status).empty());
  CHECK(status.code() == Code::unavailable);

  const auto other = transport.listen("tcp://localhost:0");
  std::unique_ptr<Stream> near, far;
  test::Ended accepted, connected;
  other->accept(far, accepted.completion());
  transport.connect("tls" + other->address().substr(3), Clock::never, near, connected.completion());
  REQUIRE(accepted.wait().ok());
  CHECK(test::write(*far, {"this is no handshake"}).ok());
  CHECK(connected.wait().code() == Code::unauthenticated);
}

TEST_CASE("peers that do not begin with TLS are so many at most, and hold up no other", "[net]") {
  const CertificateFolder folder;
  AsioTransport transport({.clock = std::make_shared<VirtualClock>(), .max_waiting = 4, .tls = folder.options("good")});
  const auto listener = transport.listen("tls://localhost:0");
  std::vector<std::unique_ptr<Stream>> silent(20);
  for (auto& stream : silent) CHECK(test::connect(transport, "tcp" + listener->address().substr(3), stream).ok());
  const test::Ends ends = test::connected(transport, *listener);
  CHECK(test::write(*ends.near, {"ping"}).ok());
  CHECK(test::read(*ends.far, 4) == "ping");
  for (std::size_t i = 0; i < 16; ++i) {
    Status status;
    CHECK(test::read(*silent[i], 1, &status).empty());
    CHECK(status.code() == Code::unavailable);
  }
}

TEST_CASE("files of TLS that cannot be used are InvalidArgument that names them", "[net]") {
  const CertificateFolder folder;
  const auto error = [&](auto&& change) {
    TlsOptions options = folder.options("good");
    change(options);
    return error_of([&] { return AsioTransport({.tls = options}); });
  };
  CHECK(contains(error([](TlsOptions& options) { options.certificate_chain_file = "/none.pem"; }), "'/none.pem'"));
  CHECK(contains(error([](TlsOptions& options) { options.private_key_file = "/none.key"; }), "'/none.key'"));
  CHECK(contains(error([](TlsOptions& options) { options.ca_file = "/none.ca"; }), "'/none.ca'"));
  CHECK(contains(error([](TlsOptions& options) { options.ca_file = ""; }), "certificates to trust"));
  const std::string other = folder.file("other.key");
  CHECK(contains(error([&](TlsOptions& options) { options.private_key_file = other; }), other));
  AsioTransport client({.tls = folder.options("")});
  CHECK(code_of([&] { return client.listen("tls://localhost:0"); }) == Code::failed_precondition);
}

#endif
