// Certificates that tests make for themselves, and the outcome of connections that show them.
#pragma once

#include <dflow/net/transport/sockets/asio_transport.hpp>

#include "../transport_contract.hpp"
#include "catch.hpp"
#include "support/temporary_folder.hpp"

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

namespace dflow::net::test {

struct MadeCertificate {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
};

struct CertificateRequest {
  std::string name = "localhost";
  std::string hosts = "DNS:localhost,IP:127.0.0.1";  ///< none if empty
  const MadeCertificate* issuer = nullptr;           ///< null: the certificate itself
  std::string constraints = {};                      ///< "critical,CA:TRUE"
  std::string usage = {};                            ///< "clientAuth"
  long begins_s = -7200, ends_s = 3600;              ///< from now
  unsigned rsa_bits = 0;                             ///< 0: an elliptic curve
  const EVP_MD* digest = EVP_sha256();
};

inline MadeCertificate make_certificate(const CertificateRequest& request) {
  MadeCertificate made{{request.rsa_bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(request.rsa_bits), EVP_PKEY_free},
                       {X509_new(), X509_free}};
  X509* const certificate = made.certificate.get();
  X509_set_version(certificate, 2);
  static long serial = 0;
  static_cast<void>(ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial));
  X509_gmtime_adj(X509_getm_notBefore(certificate), request.begins_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate), request.ends_s);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(request.name.c_str()), -1, -1, 0);
  const MadeCertificate& by = request.issuer == nullptr ? made : *request.issuer;
  X509_set_issuer_name(certificate, X509_get_subject_name(by.certificate.get()));
  const auto extend = [&](int what, const std::string& value) {
    if (value.empty()) return;
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    REQUIRE(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, request.constraints);
  extend(NID_ext_key_usage, request.usage);
  extend(NID_subject_alt_name, request.hosts);
  REQUIRE(X509_sign(certificate, by.key.get(), request.digest) > 0);
  return made;
}

inline MadeCertificate make_authority(const std::string& name, const MadeCertificate* issuer = nullptr,
                                      const std::string& constraints = "critical,CA:TRUE") {
  return make_certificate({.name = name, .hosts = {}, .issuer = issuer, .constraints = constraints});
}

/// Files of certificates and keys, deleted with the folder.
class CertificateFolder {
 public:
  CertificateFolder() {
    save("ca", ca);
    save("other", other);
    save("good", make_certificate({.issuer = &ca}));
    save("elsewhere", make_certificate({.hosts = "DNS:elsewhere.example", .issuer = &ca}));
    save("expired", make_certificate({.issuer = &ca, .ends_s = -3600}));
    save("strange", make_certificate({.issuer = &other}));
  }

  std::string file(const std::string& name) const { return folder_.file(name); }
  TlsOptions options(const std::string& name, const std::string& trusted = "ca") const {
    TlsOptions options{.ca_file = file(trusted + ".pem")};
    if (name.empty()) return options;
    options.certificate_chain_file = file(name + ".pem");
    options.private_key_file = file(name + ".key");
    return options;
  }
  /// Saves a certificate, its key and the certificates that lead to a trusted one.
  void save(const std::string& name, const MadeCertificate& made,
            const std::vector<MadeCertificate>& chain = {}) const {
    const auto close = [](std::FILE* opened) { std::fclose(opened); };
    const std::unique_ptr<std::FILE, decltype(close)> certificate(std::fopen(file(name + ".pem").c_str(), "w"), close);
    const std::unique_ptr<std::FILE, decltype(close)> key(std::fopen(file(name + ".key").c_str(), "w"), close);
    REQUIRE(PEM_write_X509(certificate.get(), made.certificate.get()) == 1);
    for (const MadeCertificate& next : chain) REQUIRE(PEM_write_X509(certificate.get(), next.certificate.get()) == 1);
    REQUIRE(PEM_write_PrivateKey(key.get(), made.key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
  }

  const MadeCertificate ca = make_authority("ca"), other = make_authority("other");

 private:
  testing::TemporaryFolder folder_;
};

/// The error of a connect from `client` to `server`, or of the first read if the connect succeeds. The listener must
/// accept no connection.
inline Status refused(const TlsOptions& server, const TlsOptions& client, const std::string& host = "localhost",
                      const std::function<void(std::string_view)>& log = nullptr) {
  AsioTransport there({.tls = server, .log = log}), here({.tls = client});
  auto listener = there.listen("tls://" + host + ":0");
  std::unique_ptr<Stream> near, far;
  Ended accepted;
  listener->accept(far, accepted.completion());
  Status status = connect(here, listener->address(), near);
  if (status.ok()) read(*near, 1, &status);
  listener->close();
  CHECK(accepted.wait().code() == Code::cancelled);
  CHECK(far == nullptr);
  return status;
}

}  // namespace dflow::net::test
