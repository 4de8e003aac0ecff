#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/rendezvous.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net {

/// A thing that a task did for a step with another task.
struct LogRecord {
  enum class What : std::uint8_t {
    ran = 1,       ///< a part of the step, for a client
    sent = 2,      ///< a tensor: from its being asked for, or at once where nobody asked
    received = 3,  ///< a tensor: from its being asked for, or at once where nobody asked
  };
  What what = What::ran;
  std::uint64_t step = 0;
  std::string name = {};      ///< of the tensor; of a part its number
  std::string peer = {};      ///< the other task
  std::int64_t start_ns = 0;  ///< by the task's steady clock
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
  Code code = Code::ok;  ///< how it ended

  friend bool operator==(const LogRecord&, const LogRecord&) = default;
};

/// A request to a task about its log: switch it, clear it, and fetch its records.
struct LogRequest {
  enum class Switch : std::uint8_t { leave = 0, on = 1, off = 2 };
  Switch turn = Switch::leave;
  bool clear = false;                     ///< after it has told
  bool fetch = false;                     ///< else it tells none of its records
  std::vector<std::uint64_t> steps = {};  ///< only these steps; empty: all

  void write(ByteWriter& out) const;
  /// Errors: DataLoss for malformed bytes; OutOfRange for more steps than a log may have records.
  static LogRequest read(ByteReader& in);
};

struct LogReply {
  bool is_on = false;
  std::int64_t now_ns = 0;              ///< by the clock of the records
  std::uint64_t num_dropped = 0;        ///< records that were forgotten for later ones since it was cleared
  std::vector<LogRecord> records = {};  ///< in the order in which they ended

  void write(ByteWriter& out) const;
  /// Errors: as of LogRequest.
  static LogReply read(ByteReader& in);
};

/// The last records of a task, which it keeps while it is told to: at most `max_records`, with names of at most
/// `max_text_bytes`. Off, as it begins, it costs a look at a flag.
///
/// Thread safety: safe.
class TaskLog {
 public:
  static constexpr std::size_t max_records = 8192;
  static constexpr std::size_t max_text_bytes = 512;

  explicit TaskLog(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }
  /// Begins a record about a tensor, with `peer`.
  LogRecord begin_tensor(LogRecord::What what, std::uint64_t step, const RendezvousKey& key,
                         std::string_view peer) const;
  /// Ends now. Forgotten if the log is off.
  void add(LogRecord record);
  /// The same, for a tensor: the record has the bytes of its elements as far as they are known without a look at
  /// them.
  void add_tensor(LogRecord record, const AnyTensor& tensor, Code code = Code::ok);
  LogReply handle(const LogRequest& request);

 private:
  std::int64_t now_ns() const;

  const std::shared_ptr<Clock> clock_;
  std::atomic<bool> is_on_{false};
  std::mutex mutex_;
  std::deque<LogRecord> records_;
  std::uint64_t num_dropped_ = 0;
};

}  // namespace dflow::net
