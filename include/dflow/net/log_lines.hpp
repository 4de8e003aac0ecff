#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/log_queue.hpp>
#include <dflow/net/server.hpp>

#include <memory>
#include <string>

namespace dflow::net::detail {

/// The way of a task's lines to `ServerOptions::log`, or to standard error with the task's name. Some lines contain
/// text from peers, even from peers that have not proved their identity.
inline std::shared_ptr<dflow::detail::LogQueue> log_lines(const std::string& task, const ServerOptions& options) {
  return std::make_shared<dflow::detail::LogQueue>(dflow::detail::LogQueueOptions{
      .write = options.log, .prefix = str_cat(task, ": "), .clock = options.clock, .pool = options.callbacks});
}

}  // namespace dflow::net::detail
