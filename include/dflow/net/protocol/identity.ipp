#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/identity.hpp>

#include <algorithm>
#include <chrono>

namespace dflow::net {

std::string detail::shown_name(std::string_view name) { return printable(name, 100); }

void TaskIdentity::write(ByteWriter& out) const {
  out.string(cluster);
  out.string(task);
  out.u64(incarnation);
  out.u64(op_fingerprint);
}

TaskIdentity TaskIdentity::read(ByteReader& in) {
  TaskIdentity identity;
  for (std::string* name : {&identity.cluster, &identity.task}) {
    const std::string_view text = in.string();
    if (text.size() > max_name_bytes)
      throw_error(Status::out_of_range(str_cat("a task's name of ", text.size(), " bytes")));
    // Names go into logs before anybody has proved anything.
    if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
      throw_error(Status::data_loss("a task's name with control characters"));
    }
    *name = text;
  }
  identity.incarnation = in.u64();
  identity.op_fingerprint = in.u64();
  return identity;
}

namespace detail {
inline constexpr int random_incarnation_bits = 12;
}  // namespace detail

std::uint64_t incarnation_at(Clock::wall_time_point now, std::uint64_t random) noexcept {
  constexpr int random_bits = detail::random_incarnation_bits;
  const auto since_1970 = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  const std::uint64_t low = random & ((std::uint64_t{1} << random_bits) - 1);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(since_1970) << random_bits | low, 1);
}

Duration time_until_start(std::uint64_t incarnation, Clock::wall_time_point now) noexcept {
  return std::chrono::microseconds(incarnation >> detail::random_incarnation_bits) - now.time_since_epoch();
}

}  // namespace dflow::net
