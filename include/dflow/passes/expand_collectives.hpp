#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>

#include <cstddef>
#include <span>

namespace dflow {

/// What is to be reduced or broadcast among more than two memories goes whole to each if it has no more bytes, or a
/// shape that the graph does not tell: one transfer after the other is waited for. A larger one goes in parts.
inline constexpr std::size_t max_whole_bytes = std::size_t{64} << 10;

/// What of a device of this process collectives need to know.
struct CollectiveDevice {
  const DeviceContext* context = nullptr;
  DeviceCollectives* collectives = nullptr;  ///< null: it computes none with others
};

/// Puts nodes on the members' devices in the place of each collective of a placed step, and of those in the bodies that
/// it calls. Edges between them cross devices as any others, so transports, other memories, loops, deadlines and errors
/// are theirs.
///
/// - Member i is the device on which value i is made; of a broadcast the device of who reads result i. Members in one
///   memory count as one: their values are reduced on the first one's device, and share the result.
/// - *AllReduce*: each memory that wants the result gets the values of all and reduces them in their order. A large one
///   among more than two is cut into as many parts: each memory reduces one and sends it to those that want the result
///   (reduce-scatter, then all-gather), which is the least that any member can send and receive.
/// - *AllGather*: each memory that wants the result gets the values of all.
/// - *CollectiveBroadcast*: the value goes to each device; a large one for more than one other memory in parts, which
///   these exchange.
///
/// Where devices of this process compute together what is larger, or of unknown shape, a `MemberCollective` on each of
/// them takes the place of transfers: of sums, means and products whose result each memory wants, of gathers of values
/// of one shape, one in each memory, and of broadcasts to several memories. Sums of values that lie in one memory, of
/// wider elements, quotients and roundings are nodes as ever; minima and maxima are too, since what computes together
/// need not let what is not a number through.
///
/// Results that nothing reads are not computed. What a collective waits for its results wait for.
///
/// Precondition: every node's `placed_on` is a position among `devices`; `here` are the first of these.
void expand_collectives(StepGraph& step, std::span<const DeviceInfo> devices,
                        std::span<const CollectiveDevice> here = {});

}  // namespace dflow
