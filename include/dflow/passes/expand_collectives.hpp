#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>

#include <cstddef>
#include <span>

namespace dflow {

/// Most bytes of a tensor that more than two memories reduce or broadcast whole. A tensor of at most this size, or of
/// a shape that the graph does not tell, goes whole to each memory: one transfer after the other is waited for. A
/// larger tensor goes in parts.
inline constexpr std::size_t max_whole_bytes = std::size_t{64} << 10;

/// The facts about a device of this process that collectives need.
struct CollectiveDevice {
  const DeviceContext* context = nullptr;
  DeviceCollectives* collectives = nullptr;  ///< null: it computes none with others
};

/// Replaces each collective of a placed step, and of the bodies that the step calls, by nodes on the members'
/// devices. Edges between these nodes cross devices like any other edges: transports, memories, loops,
/// deadlines and errors work as usual.
///
/// - Member i is the device on which value i is made; in a broadcast it is the device of the reader of result i.
///   Members in one memory count as one: their values are reduced on the first one's device, and share the result.
/// - *AllReduce*: each memory that wants the result gets the values of all members and reduces them in their order. A
///   large value among more than two memories is cut into as many parts. Each memory reduces one part and sends it to
///   the memories that want the result (reduce-scatter, then all-gather): no member can send and receive less.
/// - *AllGather*: each memory that wants the result gets the values of all.
/// - *CollectiveBroadcast*: the value goes to each device. A large value for more than one other memory goes in
///   parts, and the memories exchange the parts.
///
/// If devices of this process can compute together, a `MemberCollective` on each of them takes the place of transfers
/// for values that are larger, or of unknown shape. This holds for sums, means and products if each memory wants the
/// result, for gathers of values of one shape, one in each memory, and for broadcasts to several memories. Sums of
/// values that lie in one memory, of wider elements, quotients and roundings are nodes as ever. Minima and maxima are
/// nodes too, since devices that compute together need not let NaN through.
///
/// Results that nothing reads are not computed. Results wait for every node that their collective waits for.
///
/// Precondition: every node's `placed_on` is a position among `devices`; `here` are the first of them.
void expand_collectives(StepGraph& step, std::span<const DeviceInfo> devices,
                        std::span<const CollectiveDevice> here = {});

}  // namespace dflow
