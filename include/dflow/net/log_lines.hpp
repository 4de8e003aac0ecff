#pragma once

#include <dflow/base/printable.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::net::detail {

/// Where a task's lines go: to `given`, else to standard error with the task's name. What others have said is part of
/// some, also before they have proved who they are: it makes no further lines, and tells a terminal nothing.
inline std::function<void(std::string_view)> log_lines(const std::string& task,
                                                       std::function<void(std::string_view)> given) {
  if (given != nullptr) return [given = std::move(given)](std::string_view line) { given(printable(line)); };
  return [task](std::string_view line) { std::fprintf(stderr, "%s: %s\n", task.c_str(), printable(line).c_str()); };
}

}  // namespace dflow::net::detail
