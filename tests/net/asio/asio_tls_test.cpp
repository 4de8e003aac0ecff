#include <dflow/net/asio/asio_transport.hpp>

#if defined(DFLOW_TEST_HAS_OPENSSL)

#include <dflow/base/clock.hpp>

#include "../transport/transport_contract.hpp"
#include "catch.hpp"
#include "errors.hpp"

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

using namespace dflow;
using namespace dflow::net;

namespace {

struct MadeCertificate {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
};

/// A certificate for `host`, or one that signs others; its own signature if `issuer` is null.
MadeCertificate make_certificate(const std::string& host, const MadeCertificate* issuer, long seconds = 3600) {
  MadeCertificate made{{EVP_EC_gen("P-256"), EVP_PKEY_free}, {X509_new(), X509_free}};
  X509* const certificate = made.certificate.get();
  X509_set_version(certificate, 2);
  static_cast<void>(ASN1_INTEGER_set(X509_get_serialNumber(certificate), issuer == nullptr ? 1 : 2));
  X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(host.c_str()), -1, -1, 0);
  const MadeCertificate& by = issuer == nullptr ? made : *issuer;
  X509_set_issuer_name(certificate, X509_get_subject_name(by.certificate.get()));
  const auto extend = [&](int what, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  };
  if (issuer == nullptr) extend(NID_basic_constraints, "critical,CA:TRUE");
  if (issuer != nullptr) extend(NID_subject_alt_name, host);
  X509_sign(certificate, by.key.get(), EVP_sha256());
  return made;
}

/// Files of a certificate authority, of another, and of what they have signed.
class CertificateFolder {
 public:
  CertificateFolder() {
    char name[] = "/tmp/dflow_tls_XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    const MadeCertificate ca = make_certificate("ca", nullptr), other = make_certificate("other", nullptr);
    save("ca", ca);
    save("other", other);
    save("good", make_certificate("DNS:localhost,IP:127.0.0.1", &ca));
    save("elsewhere", make_certificate("DNS:elsewhere.example", &ca));
    save("expired", make_certificate("DNS:localhost,IP:127.0.0.1", &ca, -3600));
    save("strange", make_certificate("DNS:localhost,IP:127.0.0.1", &other));
  }
  ~CertificateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  TlsOptions options(const std::string& name, const std::string& ca = "ca") const {
    TlsOptions options{.ca_file = file(ca + ".pem")};
    if (name.empty()) return options;
    options.certificate_chain_file = file(name + ".pem");
    options.private_key_file = file(name + ".key");
    return options;
  }

 private:
  void save(const std::string& name, const MadeCertificate& made) {
    const auto close = [](std::FILE* opened) { std::fclose(opened); };
    const std::unique_ptr<std::FILE, decltype(close)> certificate(std::fopen(file(name + ".pem").c_str(), "w"), close);
    const std::unique_ptr<std::FILE, decltype(close)> key(std::fopen(file(name + ".key").c_str(), "w"), close);
    REQUIRE(PEM_write_X509(certificate.get(), made.certificate.get()) == 1);
    REQUIRE(PEM_write_PrivateKey(key.get(), made.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  }

  std::string path_;
};

/// What a connect from `client` to `server` ends with, or the first read if it succeeds; the listener must accept none.
Status refused(const TlsOptions& server, const TlsOptions& client, const std::string& host = "localhost") {
  AsioTransport there({.tls = server}), here({.tls = client});
  auto listener = there.listen("tls://" + host + ":0");
  std::unique_ptr<Stream> near, far;
  test::Ended accepted;
  listener->accept(far, accepted.completion());
  Status status = test::connect(here, listener->address(), near);
  if (status.ok()) test::read(*near, 1, &status);
  listener->close();
  CHECK(accepted.wait().code() == Code::cancelled);
  CHECK(far == nullptr);
  return status;
}

}  // namespace

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
  CHECK_FALSE(refused(good, folder.options("")).ok());
  CHECK_FALSE(refused(good, folder.options("strange")).ok());
  CHECK_FALSE(refused(good, folder.options("expired")).ok());
  CHECK_FALSE(refused(good, folder.options("good", "other")).ok());
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
