#pragma once

#include <dflow/base/threads/completion.hpp>

#include <string_view>

namespace dflow {

namespace detail {
inline constexpr std::string_view dropped_completion = "asynchronous work let go of its completion without calling it";
}

Status Completion::dropped() {
  try {
    return Status::internal(std::string(detail::dropped_completion));
  } catch (...) {
    return Status::out_of_memory();
  }
}

bool Completion::was_dropped(const Status& status) {
  return status.code() == Code::internal && status.message() == detail::dropped_completion;
}

void Completion::drop(UniqueFunction<void(Status)>& finish) noexcept {
  if (UniqueFunction<void(Status)> forgotten = std::exchange(finish, nullptr)) forgotten(dropped());
}

}  // namespace dflow
