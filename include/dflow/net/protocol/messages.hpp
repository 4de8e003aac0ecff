#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/runtime/step_stats.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::net {

/// The purpose of a request. The numbers go over the wire.
enum class Method : std::uint16_t {
  list_devices = 1,    ///< nothing -> DeviceList
  register_share = 2,  ///< ShareName, payload: SharePartitions -> nothing
  forget_share = 3,    ///< ShareName -> nothing
  close_session = 4,   ///< ShareName, whose share is 0 -> nothing
  run_share = 5,       ///< RunShare -> RunShareReply
  cancel_step = 6,     ///< CancelStep -> nothing
  receive_tensor = 7,  ///< ReceiveTensor -> TensorHead, payload: the elements
  push_tensor = 8,     ///< PushTensor, without a reply
  task_status = 9,     ///< nothing -> TaskStatus; also for peers without ops
  // Methods of a task's master (net/protocol/master_messages.hpp), and of its containers; also for peers without ops.
  create_session = 10,        ///< CreateSession, payload: a graph -> SessionVersion
  extend_session = 11,        ///< SessionVersion that it is to be, payload: a graph -> SessionVersion that it is now
  run_session = 12,           ///< RunSession, payload: the feeds' elements -> RunSessionReply, payload: the fetches'
  end_session = 13,           ///< ShareName, whose share is 0 -> nothing
  list_cluster_devices = 14,  ///< NameList of filters -> DeviceList
  reset_cluster = 15,         ///< ResetCluster -> nothing
  reset_task = 16,            ///< NameList of containers -> nothing
  task_log = 17,              ///< LogRequest -> LogReply; also for peers without ops
  // Methods of a task's master, as the methods from 10 on.
  begin_partial_run = 18,  ///< BeginPartialRun -> PartialRunName
  continue_partial_run =
      19,                ///< ContinuePartialRun, payload: the feeds' elements -> RunSessionReply, payload: the fetches'
  end_partial_run = 20,  ///< PartialRunName -> nothing
  compare_clusters = 21,  ///< ClusterTaskList -> ClusterTaskList, the answering task's
};

/// True for requests of a step's shares and tensors. Their peers run the same graph, so both need the same ops: a
/// client without ops must not send one.
constexpr bool needs_ops(Method method) noexcept {
  switch (method) {
    case Method::list_devices:
    case Method::register_share:
    case Method::forget_share:
    case Method::close_session:
    case Method::run_share:
    case Method::cancel_step:
    case Method::receive_tensor:
    case Method::push_tensor:
      return true;
    default:
      return false;
  }
}

// The bodies of requests and replies, little-endian: lengths and counts are varints (LEB128), strings a length and
// bytes. `read` trusts nothing: DataLoss for malformed bytes or bytes left over, OutOfRange beyond a limit.
// docs/wire-format.md is their written form.

/// All devices of a task.
struct DeviceList {
  std::vector<DeviceInfo> devices;

  void write(ByteWriter& out) const;
  static DeviceList read(ByteReader& in);
  friend bool operator==(const DeviceList&, const DeviceList&) = default;
};

/// The tasks of a cluster, as one of them was told.
struct ClusterTaskList {
  static constexpr std::size_t max_listed = 4096;
  static constexpr std::size_t max_text_bytes = 255;

  struct Task {
    std::string name;
    std::string address;
    friend bool operator==(const Task&, const Task&) = default;
  };
  std::uint64_t num_tasks = 0;
  std::vector<Task> tasks;  ///< at most `max_listed`

  void write(ByteWriter& out) const;
  /// Errors: OutOfRange also for more tasks than `max_listed`, and for texts of more than `max_text_bytes`.
  static ClusterTaskList read(ByteReader& in);
  friend bool operator==(const ClusterTaskList&, const ClusterTaskList&) = default;
};

/// A share of a step as one client's session numbers it.
struct ShareName {
  std::uint64_t session = 0;
  std::uint64_t share = 0;

  void write(ByteWriter& out) const;
  static ShareName read(ByteReader& in);
  friend bool operator==(const ShareName&, const ShareName&) = default;
};

/// The parts of a step that devices of one task run: for each device a part in its written form.
struct SharePartitions {
  struct Partition {
    std::string device;
    StepGraphDef part;
    friend bool operator==(const Partition&, const Partition&) = default;
  };
  std::vector<Partition> partitions;

  void write(ByteWriter& out) const;
  static SharePartitions read(ByteReader& in);
  friend bool operator==(const SharePartitions&, const SharePartitions&) = default;
};

/// The longest text of a rendezvous key that travels. Errors of writing: InvalidArgument for a longer one; of reading:
/// OutOfRange.
inline constexpr std::size_t max_key_bytes = std::size_t{64} << 10;

/// A tensor that its sender knows to be wanted, with the key that it is sent under.
struct PushedTensor {
  std::string key;
  bool is_dead = false;
  AnyTensor tensor;  ///< uninitialised if it is dead

  void write(ByteWriter& out) const;
  static PushedTensor read(ByteReader& in);
};

struct PushTensor {
  std::uint64_t step = 0;
  PushedTensor tensor;

  void write(ByteWriter& out) const;
  static PushTensor read(ByteReader& in);
  /// The step of a message that has not been read, and the number of strings that it says to have, no more than bytes.
  /// Errors: as of `read`.
  static std::pair<std::uint64_t, std::uint64_t> step_and_strings(std::string_view body);
};

struct RunShare {
  ShareName name;
  std::uint64_t step = 0;
  std::int64_t time_left_ns = 0;  ///< until the step's deadline; 0: it has none
  bool trace = false;
  std::vector<PushedTensor> pushed;  ///< feeds

  void write(ByteWriter& out) const;
  static RunShare read(ByteReader& in);
};

/// Times are nanoseconds of the task's steady clock; its zero means nothing.
struct RunShareReply {
  std::int64_t came_ns = 0;               ///< the request
  std::int64_t answered_ns = 0;           ///< this
  std::vector<PushedTensor> pushed = {};  ///< to the asking task, with the reply rather than before it
  bool is_traced = false;
  std::int64_t began_ns = 0;  ///< where the times of `stats` begin
  StepStats stats = {};       ///< empty unless the step is traced; without calendar time

  void write(ByteWriter& out) const;
  static RunShareReply read(ByteReader& in);
};

struct CancelStep {
  std::uint64_t step = 0;
  Status why;

  void write(ByteWriter& out) const;
  static CancelStep read(ByteReader& in);
};

struct ReceiveTensor {
  std::uint64_t step = 0;
  std::string key;  ///< RendezvousKey::text()

  void write(ByteWriter& out) const;
  static ReceiveTensor read(ByteReader& in);
  friend bool operator==(const ReceiveTensor&, const ReceiveTensor&) = default;
};

/// The header before a tensor's elements.
struct TensorHead {
  bool is_dead = false;
  DType dtype = DType::invalid;  ///< invalid if it is dead
  Shape shape;

  void write(ByteWriter& out) const;
  static TensorHead read(ByteReader& in);
  friend bool operator==(const TensorHead&, const TensorHead&) = default;
};

/// A tensor with its elements. Errors of writing: InvalidArgument for handles to resources.
void write_tensor(ByteWriter& out, const AnyTensor& tensor);
AnyTensor read_tensor(ByteReader& in);
/// The elements of strings as they go into a payload, and back. Errors: DataLoss.
std::string encode_strings(const AnyTensor& tensor);
void decode_strings(std::string_view bytes, AnyTensor& tensor);
/// Errors: DataLoss for a tensor of truth values with a byte that is neither 0 nor 1.
void check_elements(const AnyTensor& tensor);

/// Code, message and context.
void write_status(ByteWriter& out, const Status& status);
Status read_status(ByteReader& in);

namespace detail {
std::span<const std::byte> as_byte_span(std::string_view text) noexcept;
/// Throws InvalidArgument for handles to resources, which cannot leave their task.
void check_travels(const AnyTensor& tensor);
}  // namespace detail

/// The body of a request that says nothing. Errors: DataLoss for any other.
inline void expect_no_body(std::string_view body) { ByteReader(body).expect_end(); }

template <class Message>
std::string to_body(const Message& message) {
  std::string body;
  body.reserve(256);  // most need no more
  ByteWriter out(body);
  message.write(out);
  return body;
}
template <class Message>
Message from_body(std::string_view body) {
  ByteReader in(body);
  Message message = Message::read(in);
  in.expect_end();
  return message;
}

}  // namespace dflow::net
