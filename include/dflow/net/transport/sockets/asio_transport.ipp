#pragma once

#include <dflow/base/reactor_thread.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/thread_name.hpp>
#include <dflow/net/transport/sockets/asio_address.hpp>
#include <dflow/net/transport/sockets/asio_connecting.ipp>
#include <dflow/net/transport/sockets/asio_listening.ipp>
#include <dflow/net/transport/sockets/asio_loop.ipp>
#include <dflow/net/transport/sockets/asio_sockets.ipp>
#include <dflow/net/transport/sockets/asio_tls.ipp>
#include <dflow/net/transport/sockets/asio_transport.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

namespace dflow::net {

/// Joined at the end, or left to themselves.
struct AsioTransport::Threads {
  std::vector<std::thread> all;
  std::vector<std::shared_ptr<detail::AsioLoop>> loops;

  /// The work that keeps the threads going must be gone, or go by itself.
  void end(bool joins) noexcept {
    for (std::thread& thread : all) joins ? thread.join() : thread.detach();
    all.clear();
  }
  bool is_current() const noexcept {
    return std::any_of(loops.begin(), loops.end(), [](const auto& loop) { return loop->is_current(); });
  }
};

bool AsioTransport::has_tls() noexcept {
#if defined(DFLOW_HAS_OPENSSL)
  return true;
#else
  return false;
#endif
}

AsioTransport::AsioTransport(const AsioTransportOptions& options) {
  if (options.threads < 1) throw_error(Status::invalid_argument("a transport needs at least one thread"));
  if (options.max_waiting < 1)
    throw_error(Status::invalid_argument("a listener needs room for one connection at least"));
  if (options.send_buffer_bytes < 0 || options.receive_buffer_bytes < 0) {
    throw_error(Status::invalid_argument("the size of a buffer cannot be negative"));
  }
  threads_ = std::make_unique<Threads>();
  try {
    shared_ = std::make_shared<Shared>(options);
#if defined(DFLOW_HAS_OPENSSL)
    if (options.tls) shared_->tls = detail::make_tls_context(*options.tls);
#else
    if (options.tls) throw_error(Status::unimplemented("this build of dflow has no TLS"));
#endif
    for (const Shared::Loop& loop : shared_->loops) threads_->loops.push_back(loop.loop);
    threads_->all.reserve(threads_->loops.size());
    for (const auto& loop : threads_->loops) {
      threads_->all.emplace_back([loop, n = threads_->all.size()] {
        dflow::detail::name_this_thread("dflow io", static_cast<int>(n));
        loop->run();
      });
    }
  } catch (const std::system_error& error) {
    shared_.reset();
    threads_->end(true);
    throw_error(Status::resource_exhausted(str_cat("cannot start the threads of a transport: ", error.what())));
  } catch (...) {
    shared_.reset();
    threads_->end(true);
    throw;
  }
}

AsioTransport::~AsioTransport() {
  std::list<std::weak_ptr<detail::AsioEndable>> connects;
  bool has_users = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->has_ended = true;
    connects.swap(shared_->connects);
    has_users = shared_->users.use_count() > 1;
  }
  const std::shared_ptr<dflow::detail::LogQueue> log = shared_->owns_log ? shared_->log : nullptr;
  for (const auto& weak : connects) {
    if (const auto connect = weak.lock()) connect->cancel();
  }
  shared_.reset();
  threads_->end(!has_users && !threads_->is_current());
  if (log != nullptr) log->close();
}

bool AsioTransport::is_exposed(const std::string& text) const {
  const auto scheme = detail::parse_asio_address(text).scheme;
  if (scheme == detail::AsioAddress::Scheme::unix_socket) return false;
  const std::optional<TlsOptions>& tls = shared_->options.tls;
  return scheme != detail::AsioAddress::Scheme::tls || !tls || !tls->verifies_peers;
}

void AsioTransport::check_can_connect(const std::string& text) const {
  const detail::AsioAddress address = detail::parse_asio_address(text);
  const bool is_tls = address.scheme == detail::AsioAddress::Scheme::tls;
  if (is_tls && !has_tls())
    throw_error(Status::unimplemented(str_cat("this build of dflow has no TLS for '", text, "'")));
  if (is_tls && !shared_->options.tls) {
    throw_error(Status::failed_precondition(str_cat("to connect to '", text, "' takes options for TLS")));
  }
  if (address.scheme != detail::AsioAddress::Scheme::unix_socket && address.port == 0) {
    throw_error(Status::invalid_argument(str_cat("'", text, "' is no address to connect to: its port is 0")));
  }
}

std::unique_ptr<Listener> AsioTransport::listen(const std::string& text) {
  detail::AsioAddress address = detail::parse_asio_address(text);
  if (address.scheme == detail::AsioAddress::Scheme::tls) {
    if (!has_tls()) throw_error(Status::unimplemented(str_cat("this build of dflow has no TLS for '", text, "'")));
    if (!shared_->options.tls || shared_->options.tls->certificate_chain_file.empty()) {
      throw_error(Status::failed_precondition(str_cat("to listen at '", text, "' takes a certificate")));
    }
  }
  std::vector<detail::AsioEndpoint> endpoints;
  if (address.scheme == detail::AsioAddress::Scheme::unix_socket) {
    endpoints.push_back(detail::unix_endpoint(address));
  } else {
    dflow::detail::may_block("looking up a host name");
    using Resolver = asio::ip::tcp::resolver;
    asio::io_context context;
    asio::error_code error;
    const auto found = Resolver(context).resolve(address.host, std::to_string(address.port),
                                                 Resolver::passive | Resolver::numeric_service, error);
    if (error) throw_error(Status::unavailable(str_cat("cannot listen at '", text, "': ", error.message())));
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  Status status = Status::unavailable(str_cat("cannot listen at '", text, "': the host has no address"));
  for (const detail::AsioEndpoint& endpoint : endpoints) {
    try {
      detail::UnixFile file;
      detail::OwnedFd fd = detail::open_listener(address, endpoint, shared_->options, file);
      detail::OwnedFd local = detail::open_local_listener(address, fd.get(), shared_->options);
      auto listening = std::make_shared<detail::AsioListening>(shared_, std::move(address), std::move(fd),
                                                               std::move(file), std::move(local));
      auto listener = std::make_unique<detail::AsioListener>(shared_, listening);
      listening->start();
      return listener;
    } catch (const Error& error) {
      status = error.status();
    } catch (const std::system_error& error) {
      status = Status::unavailable(str_cat("cannot listen at '", text, "': ", error.what()));
    }
  }
  throw_error(std::move(status));
}

void AsioTransport::connect(const std::string& text, Clock::time_point deadline, std::unique_ptr<Stream>& stream,
                            Completion done) {
  Status status;
  try {
    check_can_connect(text);
    detail::AsioAddress address = detail::parse_asio_address(text);
    const auto connecting =
        std::make_shared<detail::AsioConnecting>(shared_, std::move(address), deadline, stream, std::move(done));
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->connects.remove_if([](const auto& weak) { return weak.expired(); });
      shared_->connects.push_back(connecting);
    }
    connecting->start();
    return;
  } catch (...) {
    status = status_of_current_exception();
  }
  if (done) detail::post_completion(*shared_->next_loop(), std::move(done), std::move(status));
}

}  // namespace dflow::net
