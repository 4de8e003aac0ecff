#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dflow::net {

/// A task's report about itself, bounded in size. Each list has at most `max_entries`, the oldest steps first, and
/// the number of all entries beside it. Long names are cut.
struct TaskStatus {
  static constexpr std::size_t max_entries = 256;
  static constexpr std::size_t max_text_bytes = 512;

  /// The part that a session of another task, or of a client, keeps here; or a client's whole session, which this task
  /// keeps as its master.
  struct Session {
    std::string client;
    std::uint64_t client_incarnation = 0;
    std::uint64_t number = 0;
    std::uint64_t num_shares = 0;  ///< compiled parts of steps; of a whole session: steps and partial runs under way
    bool is_whole = false;
    friend bool operator==(const Session&, const Session&) = default;
  };
  /// A part of a step that runs; or a whole step or partial run of a session that this task keeps as its master.
  struct Step {
    std::uint64_t step = 0;  ///< of a whole step: 0
    std::string client;
    std::uint64_t share = 0;  ///< of a whole step: the number of its session
    std::int64_t age_ns = 0;
    bool is_whole = false;
    friend bool operator==(const Step&, const Step&) = default;
  };
  /// A tensor that was asked for and is not there.
  struct Wait {
    std::uint64_t step = 0;
    std::string tensor;
    std::string from;   ///< the device that is to send it
    std::string to;     ///< the device that wants it
    std::string frame;  ///< and iteration of a loop, as in its rendezvous key
    friend bool operator==(const Wait&, const Wait&) = default;
  };

  std::string task;
  std::uint64_t incarnation = 0;
  std::int64_t age_ns = 0;
  std::vector<std::string> devices;
  std::vector<Session> sessions;
  std::vector<Step> steps;
  std::vector<Wait> waits;
  std::uint64_t num_sessions = 0;
  std::uint64_t num_steps = 0;
  std::uint64_t num_waits = 0;

  void write(ByteWriter& out) const;
  /// Errors: DataLoss for malformed bytes; OutOfRange for more entries.
  static TaskStatus read(ByteReader& in);
  friend bool operator==(const TaskStatus&, const TaskStatus&) = default;
};

/// "step 5: /job:worker/.../device:CPU:0 waits for 'edge' from /job:ps/.../device:CPU:0".
std::string to_string(const TaskStatus::Wait& wait);

}  // namespace dflow::net
