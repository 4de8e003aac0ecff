#pragma once

#include <dflow/net/protocol/handshake.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

namespace dflow::net {

namespace detail {
/// The error text for different secrets.
inline constexpr std::string_view other_secrets = " were given different secrets of the cluster";
}  // namespace detail

std::string Hello::to_bytes() const {
  std::string bytes;
  ByteWriter out(bytes);
  out.u8(static_cast<std::uint8_t>(role));
  out.u8(static_cast<std::uint8_t>(channel));
  out.bytes(nonce);
  self.write(out);
  out.string(wanted);
  out.u64(window_bytes);
  if (tasks_fingerprint != 0) out.u64(tasks_fingerprint);
  return bytes;
}

Hello Hello::from_bytes(std::string_view bytes) {
  ByteReader in(bytes);
  Hello hello;
  const std::uint8_t role = in.u8(), channel = in.u8();
  if (role < 1 || role > 2 || channel < 1 || channel > 2)
    throw_error(Status::data_loss("a hello of an unknown role or channel"));
  hello.role = static_cast<Role>(role);
  hello.channel = static_cast<Channel>(channel);
  std::ranges::copy(in.bytes(hello.nonce.size()), hello.nonce.begin());
  hello.self = TaskIdentity::read(in);
  const std::string_view wanted = in.string();
  if (wanted.size() > TaskIdentity::max_name_bytes)
    throw_error(Status::out_of_range("the name of the wanted task is too long"));
  hello.wanted = wanted;
  hello.window_bytes = in.u64();
  if (!in.at_end()) hello.tasks_fingerprint = in.u64();
  in.expect_end();
  return hello;
}

Handshake::Handshake(const Options& options) : secret_(options.secret), refuses_peer_(options.refuses_peer) {
  self_.role = options.role;
  self_.channel = options.channel;
  self_.self = options.self;
  self_.wanted = options.wanted;
  self_.window_bytes = options.window_bytes;
  if (options.role == Role::connector) self_.tasks_fingerprint = options.tasks_fingerprint;
  for (std::size_t i = 0; i < self_.nonce.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t number = options.random();
    std::memcpy(&self_.nonce[i], &number, sizeof number);
  }
  own_ = self_.to_bytes();
}

Sha256Digest Handshake::take_hello(std::string_view bytes) {
  peer_ = Hello::from_bytes(bytes);
  theirs_ = bytes;
  const TaskIdentity &us = self_.self, &them = peer_.self;
  if (peer_.role == self_.role) throw_error(Status::unauthenticated("the peer plays our own part in the handshake"));
  if (peer_.nonce == self_.nonce) throw_error(Status::unauthenticated("the peer sends our own hello back"));
  if (refuses_peer_) {
    throw_error(Status::unauthenticated(str_cat("'", detail::shown_name(them.task), "' runs for another user than '",
                                                us.task, "', and '", us.task,
                                                "' has no secret of the cluster: only a secret lets other users in")));
  }
  if (them.cluster != us.cluster) {
    throw_error(
        Status::failed_precondition(str_cat("'", detail::shown_name(them.task), "' belongs to cluster '",
                                            detail::shown_name(them.cluster), "', and this is '", us.cluster, "'")));
  }
  const bool connects = self_.role == Role::connector;
  const std::string& wanted = connects ? self_.wanted : peer_.wanted;
  const std::string& reached = connects ? them.task : us.task;
  if (!wanted.empty() && wanted != reached) {
    throw_error(Status::failed_precondition(str_cat(
        "'", detail::shown_name(wanted), "' was to be reached, and this is '", detail::shown_name(reached), "': '",
        us.task, "' and '", detail::shown_name(them.task), "' know different addresses of the cluster's tasks")));
  }
  if (!them.task.empty() && them.task == us.task) {
    throw_error(Status::failed_precondition(
        str_cat("the peer calls itself '", them.task, "', as this process does: no task connects to itself")));
  }
  const bool has_no_ops = (connects ? us : them).op_fingerprint == 0;
  if (!has_no_ops && them.op_fingerprint != us.op_fingerprint) {
    throw_error(Status::failed_precondition(str_cat("'", detail::shown_name(them.task), "' has other ops than '",
                                                    us.task, "': both must be built with the same op table")));
  }
  return proof_of(self_.role);
}

void Handshake::take_proof(std::string_view bytes) const {
  const Sha256Digest expected = proof_of(peer_.role);
  if (bytes.size() == expected.size()) {
    Sha256Digest got;
    std::memcpy(got.data(), bytes.data(), got.size());
    if (constant_time_equal(got, expected)) return;
  }
  throw_error(explain(Status::unauthenticated(
      str_cat("'", self_.self.task, "' and '", detail::shown_name(peer_.self.task), "'", detail::other_secrets))));
}

Status Handshake::explain(const Status& refused) const {
  const bool knows_no_secret = secret_.empty() && refused.message().ends_with(detail::other_secrets);
  if (refused.code() != Code::unauthenticated || !knows_no_secret) return refused;
  return Status::unauthenticated(str_cat("'", self_.self.task, "' was given no secret of the cluster, and '",
                                         detail::shown_name(peer_.self.task), "' has one"));
}

Sha256Digest Handshake::proof_of(Role role) const {
  const bool connects = self_.role == Role::connector;
  const std::string &first = connects ? own_ : theirs_, &second = connects ? theirs_ : own_;
  HmacSha256 proof(secret_);
  const auto add_size = [&](std::size_t size) {
    const std::uint64_t number = size;
    proof.update(std::as_bytes(std::span(&number, 1)));
  };
  proof.update("dflow handshake 1");
  const auto label = static_cast<char>(role);
  proof.update(std::string_view(&label, 1));
  add_size(first.size());
  proof.update(first);
  add_size(second.size());
  proof.update(second);
  return proof.digest();
}

}  // namespace dflow::net
