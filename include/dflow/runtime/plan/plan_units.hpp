#pragma once

#include <dflow/base/config.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace dflow::detail {

/// The facts that forming units needs of a node.
struct UnitNode {
  bool runs = false;      ///< has a kernel that the step runs
  bool is_async = false;  ///< finishes later, or (a late feed) is finished by somebody else
  bool splits = false;    ///< divides its own work
  double cost_ns = 0;
  /// Into the list of producers: nodes that must have run before, all of them at smaller positions.
  std::int32_t producer_begin = 0;
  std::int32_t producer_end = 0;
};

/// The units: stretches of nodes that run in one go.
struct Units {
  /// Per node; invalid if it does not run.
  std::vector<UnitId> unit_of;
  struct Unit {
    bool is_async = false;
    bool is_expensive = false;  ///< worth waking another thread for
  };
  IndexedVector<UnitId, Unit> units;
  /// All nodes are one stretch of synchronous nodes in one frozen order.
  bool is_sequential = true;
};

inline constexpr double cheap_ns = 5'000;            ///< below this a node shares its unit with others
inline constexpr double worth_a_thread_ns = 20'000;  ///< waking a parked thread costs 7 to 20 us
inline constexpr double splits_well_ns = 50'000;     ///< a kernel with this much for each thread keeps all busy itself

/// True if the nodes are one stretch of synchronous nodes in one frozen order, whatever they wait for: none is
/// asynchronous, and none is to run beside another.
bool is_sequential(std::span<const UnitNode> nodes, InterOp inter_op, int num_threads);

/// Groups nodes into units, so that edges inside a unit cost no counter.
///
/// Every asynchronous node is a unit of its own. If units are to run side by side, every node that costs more than
/// `cheap_ns` is one too. The other nodes are grouped by the units of this kind that they depend on: nodes that wait
/// for the same receives run as one stretch. A graph with one receive has three units, regardless of its size. Nodes
/// that depend on equal sets cannot depend on each other by way of another unit, hence units have no cycle.
///
/// Sets are exact. If joining them would cost more than a few steps for each node (thousands of receives, mixed at
/// random), from there on a node that joins other nodes is a unit of its own and stands for all that it depends on.
/// There are then more units, and still no node waits for a node that it does not need.
///
/// If the nodes are sequential, `producers` is not read.
Units form_units(std::span<const UnitNode> nodes, std::span<const std::int32_t> producers, InterOp inter_op,
                 int num_threads);

}  // namespace dflow::detail
