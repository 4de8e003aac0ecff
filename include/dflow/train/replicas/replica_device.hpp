#pragma once

#include <dflow/core/device_name.hpp>
#include <dflow/graph/graph.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow::train {

/// The part of a cluster that placement needs; `net::ClusterSpec` satisfies it.
template <class C>
concept ClusterLike = requires(const C& cluster, std::string_view job) {
  { cluster.num_tasks(job) } -> std::convertible_to<int>;
  { cluster.task_name() } -> std::convertible_to<std::string>;
};

enum class VariablePlacement {
  by_size,      ///< each variable to the task that has the fewest bytes so far (greedy)
  round_robin,  ///< one after the other
};

struct ReplicaDeviceOptions {
  std::string_view ps_job = "ps";
  VariablePlacement placement = VariablePlacement::by_size;
};

/// For `Graph::device`: places variables on the tasks of the parameter servers, and all other nodes on this process's
/// task. Replicas that build the same model place each variable alike, so they share it. Ops on a variable are placed
/// with it, slots of optimizers included. Without parameter servers, all nodes stay on this task.
///
/// ```cpp
/// auto on = graph.device(df::train::replica_device(cluster));
/// ```
/// Variables of unknown shape count as one element. The result may be copied; copies count together.
/// Errors: InvalidArgument for an empty task and for a negative number of tasks.
DeviceFunction replica_device(int num_ps, std::string own_task, const ReplicaDeviceOptions& options = {});

template <ClusterLike Cluster>
DeviceFunction replica_device(const Cluster& cluster, const ReplicaDeviceOptions& options = {}) {
  return replica_device(static_cast<int>(cluster.num_tasks(options.ps_job)), std::string(cluster.task_name()), options);
}

}  // namespace dflow::train
