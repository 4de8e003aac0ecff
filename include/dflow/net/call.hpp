#pragma once

#include <dflow/net/messages.hpp>
#include <dflow/net/protocol/connection.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace dflow::net::detail {

/// A request by its method and body, for `Connection::call`.
inline Call make_call(Method method, std::string body = {}) {
  Call call;
  call.method = static_cast<std::uint16_t>(method);
  call.message.body = std::move(body);
  return call;
}

}  // namespace dflow::net::detail
