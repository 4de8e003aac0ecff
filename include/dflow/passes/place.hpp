#pragma once

#include <dflow/core/device_info.hpp>
#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/contract/kernel_table.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

/// Decides the device of each node of a graph. The decision is made once for the whole graph, whichever part of it a
/// step needs. Nodes added later are placed when they are added; placed nodes stay on their devices.
///
/// Nodes that must be together form a group: nodes joined by `colocate_with`, and all users of one handle. A group
/// goes to a device that every member's constraint allows and that has a kernel for every member's op and element
/// types. It goes to its first producer's device if that device qualifies, else to the first of the session's devices
/// that does. A collective's result counts as made where the member's value is. Constants and placeholders without a
/// constraint have no device: they are wherever they are read.
///
/// A call and its functions are one group, and the nodes of their bodies belong to it. Exceptions are nodes with a
/// device or a colocation of their own, and users of handles from around the body. The exceptions are placed as any
/// other nodes, and go to the function's device if they may.
///
/// With soft placement a node whose device does not exist, or has no kernel for it, goes to another device of the
/// same task.
///
/// Thread safety: all functions may be called from any thread.
/// Errors: `device_of` throws the errors of its node, so a step does not suffer from nodes that it does not need.
/// InvalidArgument if the node's constraint matches no device, or contradicts the constraints of its group; NotFound
/// if no device that it may go to has a kernel for it.
class Placement {
 public:
  /// `kernels` by device; `ops` are the ops that the session was given. By `ops` an error tells an unknown op from an
  /// op without a kernel.
  Placement(std::vector<DeviceInfo> devices, std::vector<KernelTables> kernels, bool soft,
            std::optional<OpTable> ops = std::nullopt);

  std::span<const DeviceInfo> devices() const noexcept { return devices_; }
  /// Places the nodes that were added to the graph since the last call. All calls must pass the same graph.
  void extend(const GraphStore& graph);
  /// Position among the devices. Precondition: the node was there when `extend` was called.
  std::size_t device_of(NodeId node) const { return Reader(*this).device_of(node); }

  /// Reads the devices of many nodes under one lock: while it lives `extend` waits, and must not be called in its
  /// thread.
  class Reader {
   public:
    explicit Reader(const Placement& placement) : placement_(placement), lock_(placement.mutex_) {}
    std::size_t device_of(NodeId node) const;

   private:
    const Placement& placement_;
    std::shared_lock<std::shared_mutex> lock_;
  };

 private:
  /// A set of devices, by its number: there are few, shared by many nodes.
  using SetId = std::int32_t;
  using Set = std::vector<bool>;
  struct Constraint {
    SetId exact = 0;    ///< devices that the constraint allows
    SetId relaxed = 0;  ///< the same, whatever type and number it asks for
  };
  struct Group {
    SetId allowed = 0;
    std::int32_t device = -1;
  };

  struct TypedOp {
    const OpDef* op = nullptr;
    TypeArgs types;
    friend bool operator==(const TypedOp&, const TypedOp&) = default;
  };
  struct TypedOpHash {
    std::size_t operator()(const TypedOp& of) const noexcept;
  };

  SetId intern(const Set& set);
  SetId intersect(SetId a, SetId b);
  bool is_empty(SetId set) const;
  bool contains(SetId set, std::int32_t device) const;
  const Constraint& constraint_of(const std::string& device);
  SetId with_kernel(const Node& node);
  NodeId root(NodeId node);
  SetId allowed_for(NodeId id, const Node& node);
  void place_all(IndexRange<NodeId> added, const GraphStore& graph);
  void join(NodeId id, const Node& node, NodeId other, const GraphStore& graph);
  std::int32_t choose(const Group& group, const Node& node, const GraphStore& graph);
  static bool is_nowhere(const Node& node);
  static NodeId producer_of(Endpoint edge, const GraphStore& graph);
  static bool is_handle_edge(Endpoint edge, const GraphStore& graph);
  static bool follows_function(const Node& node, const GraphStore& graph);
  static std::size_t num_arguments(const Node& call, const GraphStore& graph);
  static NodeId kept_beside(const Node& node, const GraphStore& graph);
  void fail(NodeId id, const Node& node, Status status);
  std::string device_list() const;
  /// Names the devices of the set and, for each type of device, the kernels that are missing there.
  std::string why_no_kernel(const Node& node, SetId allowed) const;

  std::vector<DeviceInfo> devices_;
  std::vector<DeviceName> names_;
  std::vector<KernelTables> kernels_;
  bool soft_;
  std::optional<OpTable> ops_;

  mutable std::shared_mutex mutex_;
  std::vector<Set> sets_;
  struct Ends {
    std::int32_t first = -1;  ///< -1: it is empty
    std::int32_t last = -1;
  };
  std::vector<Ends> ends_;  ///< by set, its first and last device
  std::map<Set, SetId> set_ids_;
  std::map<std::pair<SetId, SetId>, SetId> intersections_;
  std::unordered_map<std::string, Constraint> constraints_;
  std::unordered_map<TypedOp, SetId, TypedOpHash> kernel_sets_;
  IndexedVector<NodeId, NodeId> parent_;
  IndexedVector<NodeId, Group> groups_;  ///< by the group's root
  std::unordered_map<NodeId, Status> errors_;
};

/// "name: op -> device" per node, one a line.
std::string placement_text(const StepGraph& graph, std::span<const DeviceInfo> devices);

}  // namespace dflow
