#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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

/// An I/O thread reads or writes a message of more bytes only if there is no pool for it: other connections wait.
inline constexpr std::size_t max_io_thread_bytes = std::size_t{256} << 10;

/// Runs `work` in the pool; in the calling thread if there is no pool, or no thread of it.
template <class F>
void run_in_pool(ThreadPool* pool, F work) {
  if (pool == nullptr) return work();
  const auto shared = std::make_shared<F>(std::move(work));
  try {
    pool->schedule([shared] { (*shared)(); });
  } catch (...) {
    (*shared)();
  }
}

/// A task that does not know a session or a share (NotFound of no node) has forgotten it with an earlier connection.
/// Then `status` becomes Unavailable, which says that another try may succeed, and the result is true.
inline bool take_forgotten(Status& status) {
  if (status.code() != Code::not_found || !status.node().empty()) return false;
  status = Status::unavailable(str_cat(status.message(), ": it went with an earlier connection"));
  return true;
}

/// A deadline as requests say it: 0 for none, and at least 1 else, also where it has passed.
inline std::int64_t time_left_ns(Clock::time_point deadline, const Clock& clock) {
  if (deadline == Clock::never) return 0;
  return std::max<std::int64_t>(Duration(deadline - clock.now()).count(), 1);
}

}  // namespace dflow::net::detail
