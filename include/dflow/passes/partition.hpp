#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/device_info.hpp>
#include <dflow/core/rendezvous.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace dflow {

/// A tensor of at most this many bytes, as far as the graph tells, goes to another task as soon as it is made.
inline constexpr std::size_t max_pushed_bytes = std::size_t{64} << 10;

/// The part of a placed step graph that one device runs.
struct Partition {
  std::size_t device = 0;  ///< position among the devices
  StepGraph graph;
  std::vector<std::size_t> feeds;    ///< for each feed of `graph`, its position among the whole step's feeds
  std::vector<std::size_t> fetches;  ///< for each fetch of `graph`, its position among the whole step's fetches
};

/// A fetch that no device makes.
struct ClientFetch {
  std::size_t fetch = 0;
  std::optional<std::size_t> feed;  ///< it is this feed
  AnyTensor value;                  ///< else this constant
};

/// A step split by device, and the part that stays with the client.
struct Partitions {
  std::vector<Partition> parts;
  std::vector<ClientEdge> sends;     ///< fed tensors that the client sends when the step starts
  std::vector<ClientEdge> receives;  ///< fetched tensors that the client receives
  std::vector<ClientFetch> known;
};

/// How the edges of a body are divided among its parts.
struct BodyEdges {
  std::vector<std::size_t> devices;                  ///< that get a part, be it empty
  std::vector<std::vector<std::size_t>> feeds_at;    ///< for each feed: devices given it; others get it from the first
  std::vector<std::vector<std::size_t>> fetches_at;  ///< for each fetch: the devices that fetch it
  bool asks = false;                                 ///< the fetch is a loop's condition, wanted in host memory
  bool first_waits = false;  ///< the first part ends when the others have, or after they have sent to it
};

/// Splits the body of a function, which the parts of its call run. Each of `edges.devices` gets its part of the body,
/// with the feeds and fetches of the body that it has, in their order. Tensors between parts are sent as in
/// `partition`; keys get the frame of the call when they are sent. A loop's body is split like any other.
///
/// Precondition: nodes are placed on `edges.devices`; a feed that is read is given to a device; each call in the body
/// is on one device (`split_calls`).
std::vector<StepGraph> partition_body(StepGraph body, const BodyEdges& edges, std::span<const DeviceInfo> devices,
                                      std::span<const KernelTables> kernels);

/// Splits a placed graph by device. The client is a device: feeds come from the host memory of its task, fetches go
/// there.
///
/// - An edge between different devices, or different memories (an argument may be wanted in host memory on any
///   device), becomes one Send and one Recv per (tensor, destination device, destination memory), for all its readers.
/// - A control edge that crosses becomes a Send and Recv of an empty tensor; many of one node from one device become
///   one.
/// - A fed edge goes straight to its readers. A part that reads it in the client's memory has it as a feed; other parts
///   get it by a Send of the client. A fetch made in the client's memory is a fetch of its part; any other is sent to
///   the client.
/// - A constant is copied to each part that reads it, and waits there for the nodes that it was built after. A node
///   with a control edge from a constant waits for an empty constant in its place, which waits for the same nodes.
/// A graph on one device that computes in the client's memory comes back whole, and is not looked at. In a part no two
/// nodes have one name. Nodes that were put in are named after the user's node that they serve.
///
/// Calls whose bodies are on several devices become a call on each (`split_calls`).
///
/// Precondition: every node's `placed_on` is a position among `devices`; `kernels` are theirs, in the same order.
/// Errors: InvalidArgument if a node of a graph that is split depends on a later one; the errors of `split_calls`.
Partitions partition(StepGraph graph, std::span<const DeviceInfo> devices, std::span<const KernelTables> kernels,
                     const DeviceInfo& client);

}  // namespace dflow
