#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow::net {

namespace detail {
/// A name that a stranger may have made up, cut to the length that a message can have.
std::string shown_name(std::string_view name);
}  // namespace detail

/// The identity that a task gives of itself when it is connected with another.
///
/// Thread safety: a value type.
struct TaskIdentity {
  static constexpr std::size_t max_name_bytes = 1024;

  std::string cluster;  ///< only tasks of one cluster speak with each other
  std::string task;     ///< "/job:ps/replica:0/task:1"
  /// Another one after each start; of a task that others connect to, a higher one.
  std::uint64_t incarnation = 0;
  /// `OpTable::fingerprint()`: tasks with different ops do not exchange graphs. 0 for a client that connects: it has
  /// no ops, and may only ask for answers that need none: a task's status and log, sessions that the task keeps,
  /// resets.
  std::uint64_t op_fingerprint = 0;

  void write(ByteWriter& out) const;
  /// Errors: DataLoss for bytes that are cut short and for names with control characters; OutOfRange for longer
  /// names.
  static TaskIdentity read(ByteReader& in);
  friend bool operator==(const TaskIdentity&, const TaskIdentity&) = default;
};

/// The incarnation of a task that is started now: microseconds since 1970 above, 12 of the `random` bits below. With
/// it every task can tell which of two starts is the later one, even a task that has seen neither of them before.
/// Never 0.
std::uint64_t incarnation_at(Clock::wall_time_point now, std::uint64_t random) noexcept;
/// How long after `now` an incarnation was made, by its calendar; below zero if before.
Duration time_until_start(std::uint64_t incarnation, Clock::wall_time_point now) noexcept;

}  // namespace dflow::net
