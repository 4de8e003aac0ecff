#pragma once

#include <dflow/net/protocol/frame_stream.hpp>
#include <dflow/net/protocol/messages.hpp>
#include <dflow/passes/options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::net {

// The messages between a client and a task's master, in the manner of messages.hpp.

/// The options of a new session; its graph is the payload.
struct CreateSession {
  std::int64_t time_left_ns = 0;  ///< for the other tasks to be found; 0: as long as the master's task waits itself
  bool soft_placement = false;
  PassOptions passes;
  std::vector<std::string> filters;  ///< of the other tasks; none: all

  void write(ByteWriter& out) const;
  static CreateSession read(ByteReader& in);
};

/// A session of the client's, and how many times its graph was extended.
struct SessionVersion {
  std::uint64_t session = 0;
  std::uint64_t version = 0;

  void write(ByteWriter& out) const;
  static SessionVersion read(ByteReader& in);
  friend bool operator==(const SessionVersion&, const SessionVersion&) = default;
};

/// A tensor with its elements in the payload, behind the elements of the tensors before it.
struct PayloadTensor {
  TensorHead head;  ///< of a live one
  std::uint64_t bytes = 0;

  void write(ByteWriter& out) const;
  static PayloadTensor read(ByteReader& in);
};

struct RunSession {
  std::uint64_t session = 0;
  std::int64_t time_left_ns = 0;  ///< until the step's deadline; 0: it has none
  bool trace = false;
  std::vector<std::pair<std::string, PayloadTensor>> feeds;  ///< "node" or "node:1"
  std::vector<std::string> fetches;
  std::vector<std::string> targets;  ///< names of nodes

  void write(ByteWriter& out) const;
  static RunSession read(ByteReader& in);
};

struct RunSessionReply {
  RunShareReply run;  ///< of all tasks together
  std::vector<PayloadTensor> fetches;

  void write(ByteWriter& out) const;
  static RunSessionReply read(ByteReader& in);
};

/// Begins a step that is fed and fetched request by request.
struct BeginPartialRun {
  std::uint64_t session = 0;
  std::int64_t time_left_ns = 0;  ///< until the whole step's deadline; 0: it has none
  bool trace = false;
  std::vector<std::string> feeds;    ///< the tensors that may be fed: "node" or "node:1"
  std::vector<std::string> fetches;  ///< the tensors that may be fetched
  std::vector<std::string> targets;  ///< names of nodes

  void write(ByteWriter& out) const;
  static BeginPartialRun read(ByteReader& in);
  friend bool operator==(const BeginPartialRun&, const BeginPartialRun&) = default;
};

/// A partial run as its session numbers it.
struct PartialRunName {
  std::uint64_t session = 0;
  std::uint64_t run = 0;

  void write(ByteWriter& out) const;
  static PartialRunName read(ByteReader& in);
  friend bool operator==(const PartialRunName&, const PartialRunName&) = default;
};

/// Feeds a partial run, then fetches from it; the reply, a RunSessionReply, comes when that has been made.
struct ContinuePartialRun {
  PartialRunName name;
  std::vector<std::pair<std::string, PayloadTensor>> feeds;
  std::vector<std::string> fetches;
  bool until_end = false;  ///< the reply comes when the step has ended, with its trace

  void write(ByteWriter& out) const;
  static ContinuePartialRun read(ByteReader& in);
};

/// Filters of tasks, or containers.
struct NameList {
  static constexpr std::size_t max_names = 16384;

  std::vector<std::string> names;

  void write(ByteWriter& out) const;
  static NameList read(ByteReader& in);
  friend bool operator==(const NameList&, const NameList&) = default;
};

struct ResetCluster {
  NameList containers;  ///< none: all
  NameList filters;     ///< of the tasks; none: all

  void write(ByteWriter& out) const;
  static ResetCluster read(ByteReader& in);
  friend bool operator==(const ResetCluster&, const ResetCluster&) = default;
};

/// The descriptions of the tensors for a body; their elements are sent from where they are. Errors: InvalidArgument
/// for handles to resources.
std::pair<std::vector<PayloadTensor>, Payload> to_payload(std::vector<AnyTensor> tensors);
/// The next tensor of a payload; its bytes are taken off `payload`. With an `owner` of the memory, which nobody else
/// uses, a tensor of numbers that is a good part of the payload is in that memory, and keeps it; others are copies.
/// Errors: DataLoss if the payload has too few bytes, or they are not the described tensor.
AnyTensor take_from_payload(const PayloadTensor& described, std::span<const std::byte>& payload,
                            const std::shared_ptr<std::vector<std::byte>>& owner = nullptr);

}  // namespace dflow::net
