// TLS by OpenSSL for AsioTransport. Included by asio_transport.ipp.
#pragma once

#if defined(DFLOW_HAS_OPENSSL)

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/sockets/asio_connection.ipp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <memory>
#include <string>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <asio/ip/address.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>

namespace dflow::net::detail {

using AsioTlsSocket = asio::ssl::stream<AsioSocket>;
using AsioTlsConnection = AsioConnection<AsioTlsSocket>;

/// Errors: InvalidArgument for a file that cannot be used, naming it.
inline std::unique_ptr<asio::ssl::context> make_tls_context(const TlsOptions& options) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls);
  ::SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  ::SSL_CTX_set_security_level(context->native_handle(), 2);  // 112 bits, whatever the system's configuration says
  // Connections are long: resuming one is not worth the state that would have to be kept and sent.
  ::SSL_CTX_set_num_tickets(context->native_handle(), 0);
  ::SSL_CTX_set_session_cache_mode(context->native_handle(), SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(context->native_handle(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  const auto check = [](const asio::error_code& error, const char* what, const std::string& file) {
    if (error) throw_error(Status::invalid_argument(str_cat("cannot use ", what, " '", file, "': ", error.message())));
  };
  asio::error_code error;
  if (!options.certificate_chain_file.empty()) {
    context->use_certificate_chain_file(options.certificate_chain_file, error);
    check(error, "the certificates of", options.certificate_chain_file);
    context->use_private_key_file(options.private_key_file, asio::ssl::context::pem, error);
    check(error, "the private key of", options.private_key_file);
  }
  if (!options.ca_file.empty()) {
    context->load_verify_file(options.ca_file, error);
    check(error, "the certificates to trust of", options.ca_file);
  }
  if (options.verifies_peers) {
    if (options.ca_file.empty()) {
      throw_error(Status::invalid_argument("TLS needs a file of certificates to trust, or not to verify peers"));
    }
    context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  } else {
    context->set_verify_mode(asio::ssl::verify_none);
  }
  return context;
}

/// Asks for `host`, by name or by address, in the peer's certificate. Errors: bad_alloc.
inline void expect_host(AsioTlsSocket& socket, const std::string& host) {
  ::SSL* const ssl = socket.native_handle();
  ::X509_VERIFY_PARAM* const wanted = ::SSL_get0_param(ssl);
  // A name of the subject is no name of a host (RFC 9525, 6.3).
  ::X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  asio::error_code no_address;
  asio::ip::make_address(host, no_address);
  const bool is_set = no_address ? ::X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size()) == 1 &&
                                       ::SSL_set_tlsext_host_name(ssl, host.c_str()) == 1
                                 : ::X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str()) == 1;
  if (!is_set) throw_error(Status::invalid_argument(str_cat("TLS cannot ask for the host '", host, "'")));
}

inline bool refuses_certificate(const asio::error_code& error) noexcept {
  if (error.category() != asio::error::get_ssl_category()) return false;
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value())) - SSL_AD_REASON_OFFSET) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_DECRYPT_ERROR:
    case SSL_AD_INSUFFICIENT_SECURITY:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

/// Why a handshake has failed.
inline Status refused_by_tls(AsioTlsSocket& socket, const asio::error_code& error) {
  const long verified = ::SSL_get_verify_result(socket.native_handle());
  if (verified != X509_V_OK) return Status::unauthenticated(::X509_verify_cert_error_string(verified));
  if (error.category() == asio::error::get_ssl_category()) return Status::unauthenticated(error.message());
  return Status::unavailable(error.message());
}

}  // namespace dflow::net::detail

#endif
