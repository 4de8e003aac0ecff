#pragma once

#include <dflow/base/printable.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::net::detail {

/// The output of a task's lines: to `given`, else to standard error with the task's name. Some lines contain text
/// from peers, even from peers that have not proved their identity. The peers' text makes no further lines, and
/// contains no control characters for a terminal.
inline std::function<void(std::string_view)> log_lines(const std::string& task,
                                                       std::function<void(std::string_view)> given) {
  if (given != nullptr) return [given = std::move(given)](std::string_view line) { given(printable(line)); };
  return [task](std::string_view line) { std::fprintf(stderr, "%s: %s\n", task.c_str(), printable(line).c_str()); };
}

}  // namespace dflow::net::detail
