// The connecting and the listening side refuse each sort of bad certificate before they send data.
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#if defined(DFLOW_TEST_HAS_OPENSSL)

#include "../../protocol/connection_harness.hpp"
#include "catch.hpp"
#include "certificates.hpp"
#include "support/errors.hpp"

#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace dflow;
using namespace dflow::net;
using test::CertificateFolder;
using test::make_authority;
using test::make_certificate;

namespace {

/// A server that shows clients a certificate that dflow itself would not show.
class LaxTlsServer {
 public:
  LaxTlsServer(const CertificateFolder& folder, const std::string& name) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(fd_, 1) == 0);
    REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    context_ = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_security_level(context_, 0);
    REQUIRE(SSL_CTX_use_certificate_chain_file(context_, folder.file(name + ".pem").c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context_, folder.file(name + ".key").c_str(), SSL_FILETYPE_PEM) == 1);
    thread_ = std::thread([this] {
      sigset_t broken_pipes;  // OpenSSL writes to peers that have gone
      sigemptyset(&broken_pipes);
      sigaddset(&broken_pipes, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &broken_pipes, nullptr);
      const int accepted = ::accept(fd_, nullptr, nullptr);
      SSL* const ssl = SSL_new(context_);
      SSL_set_fd(ssl, accepted);
      static_cast<void>(SSL_accept(ssl));
      SSL_free(ssl);
      ::close(accepted);
    });
  }
  ~LaxTlsServer() {
    ::shutdown(fd_, SHUT_RDWR);  // ends an accept, too
    thread_.join();
    ::close(fd_);
    SSL_CTX_free(context_);
  }

  int port = 0;

 private:
  const int fd_;
  SSL_CTX* context_ = nullptr;
  std::thread thread_;
};

}  // namespace

TEST_CASE("who connects refuses each sort of bad certificate, and says why", "[net]") {
  const CertificateFolder folder;
  const auto& ca = folder.ca;
  const auto middle = make_authority("middle", &ca);
  const auto no_authority = make_authority("no authority", &ca, "critical,CA:FALSE");
  const auto short_path = make_authority("short path", &ca, "critical,CA:TRUE,pathlen:0");
  const auto beyond = make_authority("beyond", &short_path);
  folder.save("good chain", make_certificate({.issuer = &middle}), {middle});
  {
    AsioTransport transport({.tls = folder.options("good chain")});
    const auto listener = transport.listen("tls://localhost:0");
    CHECK(test::connected(transport, *listener).near != nullptr);
  }
  folder.save("not yet", make_certificate({.issuer = &ca, .begins_s = 1800}));
  folder.save("by itself", make_certificate({}));
  folder.save("by itself, an authority", make_certificate({.constraints = "critical,CA:TRUE"}));
  folder.save("for clients", make_certificate({.issuer = &ca, .usage = "clientAuth"}));
  folder.save("without its chain", make_certificate({.issuer = &middle}));
  folder.save("by none", make_certificate({.issuer = &no_authority}), {no_authority});
  folder.save("too far", make_certificate({.issuer = &beyond}), {beyond, short_path});
  folder.save("no host", make_certificate({.hosts = {}, .issuer = &ca}));
  struct Bad {
    const char *name, *why;
  };
  const Bad all[] = {
      {"expired", "expired"},
      {"not yet", "not yet valid"},
      {"elsewhere", "ostname mismatch"},
      {"no host", "ostname mismatch"},  // its subject has the name of the host
      {"by itself", "self"},
      {"by itself, an authority", "self"},
      {"strange", "unable to get local issuer certificate"},
      {"for clients", "purpose"},
      {"without its chain", "unable to get local issuer certificate"},
      {"by none", "invalid CA certificate"},
      {"too far", "path length"},
  };
  for (const Bad& bad : all) {
    test::Lines lines;
    const Status status = test::refused(folder.options(bad.name), folder.options("good"), "localhost", lines.log());
    INFO(bad.name << ": " << status.to_string());
    CHECK(status.code() == Code::unauthenticated);
    CHECK(mentions(status, bad.why));
    CHECK(lines.count("no connection with ") == 1);
  }
}

TEST_CASE("a key that is too short and a signature by SHA-1 or MD5 prove nothing", "[net]") {
  const CertificateFolder folder;
  const auto rsa_ca =
      make_certificate({.name = "rsa", .hosts = {}, .constraints = "critical,CA:TRUE", .rsa_bits = 2048});
  folder.save("rsa", rsa_ca);
  folder.save("fit", make_certificate({.issuer = &rsa_ca, .rsa_bits = 2048}));
  folder.save("short", make_certificate({.issuer = &rsa_ca, .rsa_bits = 1024}));
  folder.save("sha1", make_certificate({.issuer = &rsa_ca, .rsa_bits = 2048, .digest = EVP_sha1()}));
  folder.save("md5", make_certificate({.issuer = &rsa_ca, .rsa_bits = 2048, .digest = EVP_md5()}));
  const auto outcome = [&](const std::string& name) {
    const LaxTlsServer server(folder, name);
    AsioTransport client({.tls = folder.options("", "rsa")});
    std::unique_ptr<Stream> stream;
    return test::connect(client, "tls://localhost:" + std::to_string(server.port), stream);
  };
  CHECK(outcome("fit").ok());
  for (const char* const bad : {"short", "sha1", "md5"}) {
    const Status status = outcome(bad);
    INFO(bad << ": " << status.to_string());
    CHECK(status.code() == Code::unauthenticated);
    CHECK((mentions(status, "too weak") || mentions(status, "too small")));
    // A transport does not accept the weak certificate as its own either.
    const std::string error = error_of([&] { return AsioTransport({.tls = folder.options(bad, "rsa")}); });
    CHECK(contains(error, folder.file(bad)));
  }
}

TEST_CASE("who listens refuses each sort of bad certificate, and logs why", "[net]") {
  const CertificateFolder folder;
  const auto& ca = folder.ca;
  const auto middle = make_authority("middle", &ca), no_authority = make_authority("no authority", &ca, "CA:FALSE");
  folder.save("not yet", make_certificate({.issuer = &ca, .begins_s = 1800}));
  folder.save("by itself", make_certificate({}));
  folder.save("for servers", make_certificate({.issuer = &ca, .usage = "serverAuth"}));
  folder.save("without its chain", make_certificate({.issuer = &middle}));
  folder.save("by none", make_certificate({.issuer = &no_authority}), {no_authority});
  struct Bad {
    const char *name, *why;
  };
  const Bad all[] = {
      {"", "peer did not return a certificate"},
      {"expired", "expired"},
      {"not yet", "not yet valid"},
      {"by itself", "self"},
      {"strange", "unable to get local issuer certificate"},
      {"for servers", "purpose"},
      {"without its chain", "unable to get local issuer certificate"},
      {"by none", "invalid CA certificate"},
  };
  for (const Bad& bad : all) {
    INFO(bad.name);
    test::Lines lines;
    const Status status = test::refused(folder.options("good"), folder.options(bad.name), "localhost", lines.log());
    INFO(status.to_string());
    CHECK(status.code() == Code::unauthenticated);
    CHECK(lines.count("no connection with tls://") == 1);
    CHECK(lines.count(bad.why) == 1);
  }
}

TEST_CASE("a client whose certificate is refused is told so at once, and tries no more", "[net]") {
  const CertificateFolder folder;
  ClusterSpec spec;
  spec.add_task("ps", 0, "tls://localhost:0");
  spec.set_task("ps", 0);
  test::Lines lines;
  ServerOptions options;
  options.num_threads = 1;
  options.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.tls = folder.options("good")});
  options.log = lines.log();
  const Server server(spec, options);
  ClusterSpec cluster;
  cluster.add_task("ps", 0, server.address());
  const auto outcome = [&](const std::string& certificate) {
    options.transport = std::make_shared<AsioTransport>(AsioTransportOptions{.tls = folder.options(certificate)});
    options.startup_timeout = std::chrono::hours(1);
    const Graph graph;
    return status_of([&] { return Session(graph, {.target = connect(cluster, options)}).devices(); });
  };
  CHECK(outcome("good").ok());
  for (const char* const refused : {"", "expired", "strange"}) {
    const Status status = outcome(refused);
    INFO(refused << ": " << status.to_string());
    CHECK(status.code() == Code::unauthenticated);
    CHECK(mentions(status, "refuses this side's certificate"));
    CHECK(mentions(status, server.address()));
  }
}

TEST_CASE("files that are cut off, and files of anything else, are no certificates and no keys", "[net]") {
  const CertificateFolder folder;
  const auto read_file = [&](const std::string& name) {
    std::ifstream in(folder.file(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string certificate = read_file("good.pem"), key = read_file("good.key");
  std::string flipped = certificate;
  flipped[flipped.size() / 2] = flipped[flipped.size() / 2] == '!' ? '?' : '!';
  const std::string all[] = {"",
                             certificate.substr(0, certificate.size() / 2),
                             key.substr(0, key.size() / 2),
                             flipped,
                             std::string("\0\1\2\3", 4),
                             "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"};
  for (const std::string& bad : all) {
    INFO(bad);
    std::ofstream(folder.file("bad"), std::ios::binary) << bad;
    for (int place = 0; place < 3; ++place) {
      TlsOptions options = folder.options("good");
      (place == 0   ? options.certificate_chain_file
       : place == 1 ? options.private_key_file
                    : options.ca_file) = folder.file("bad");
      CHECK(contains(error_of([&] { return AsioTransport({.tls = options}); }), folder.file("bad")));
    }
  }
}

#else

#include "catch.hpp"

TEST_CASE("certificates are not checked where the library has no OpenSSL", "[net]") {
  WARN("skipped: this build has no TLS");
  CHECK_FALSE(dflow::net::AsioTransport::has_tls());
}

#endif
