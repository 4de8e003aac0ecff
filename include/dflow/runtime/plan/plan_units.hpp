#pragma once

#include <dflow/base/config.hpp>
#include <dflow/runtime/inter_op.hpp>
#include <dflow/runtime/plan/unit_id.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace dflow::detail {

/// What forming units needs to know of a node.
struct UnitNode {
  bool runs = false;      ///< has a kernel that the step runs
  bool is_async = false;  ///< finishes later, or (a late feed) is finished by somebody else
  bool splits = false;    ///< divides its own work
  double cost_ns = 0;
  /// Into the list of producers: nodes that must have run before, all of them at smaller positions.
  std::int32_t producer_begin = 0;
  std::int32_t producer_end = 0;
};

/// Which nodes run in one go.
struct Units {
  /// Per node; none where it does not run.
  std::vector<UnitId> unit_of;
  struct Unit {
    bool is_async = false;
    bool is_expensive = false;  ///< worth waking another thread for
  };
  IndexedVector<UnitId, Unit> units;
  /// All of it is one stretch of synchronous nodes in one frozen order.
  bool is_sequential = true;
};

inline constexpr double cheap_ns = 5'000;            ///< below this a node shares its unit with others
inline constexpr double worth_a_thread_ns = 20'000;  ///< waking a parked thread costs 7 to 20 us
inline constexpr double splits_well_ns = 50'000;  ///< a kernel with so much for each thread keeps them all busy itself

/// They are one stretch of synchronous nodes in one frozen order, whatever they wait for: none is asynchronous, and
/// nothing is to run side by side.
bool is_sequential(std::span<const UnitNode> nodes, InterOp inter_op, int num_threads);

/// Groups nodes into units, so that edges inside a unit cost no counter.
///
/// Every asynchronous node is a unit of its own, and if units are to run side by side so is every one that costs more
/// than `cheap_ns`. The rest is grouped by which of these it depends on: what waits for the same receives runs as one
/// stretch. So a graph with one receive in it has three units, whatever its size. Nodes that depend on equal sets
/// cannot depend on each other by way of another unit, hence units have no cycle.
///
/// Sets are exact. Where joining them would cost more than a few steps for each node (thousands of receives, mixed at
/// random), a node that joins others is a unit of its own from there on, which stands for all that it depends on: there
/// are more units, and still nothing waits for what it does not need.
///
/// Where they are sequential, `producers` is not looked at.
Units form_units(std::span<const UnitNode> nodes, std::span<const std::int32_t> producers, InterOp inter_op,
                 int num_threads);

}  // namespace dflow::detail
