#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <algorithm>
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

/// A deadline as requests say it: 0 for none, and at least 1 else, also where it has passed.
inline std::int64_t time_left_ns(Clock::time_point deadline, const Clock& clock) {
  if (deadline == Clock::never) return 0;
  return std::max<std::int64_t>(Duration(deadline - clock.now()).count(), 1);
}

}  // namespace dflow::net::detail
