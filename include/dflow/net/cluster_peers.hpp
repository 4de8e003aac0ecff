#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/tasks/peers.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::net::detail {

/// The name of a process that is none of a cluster's tasks: "/job:client/replica:0/task:7".
inline std::string name_of_client(std::string_view job, std::uint64_t incarnation) {
  return str_cat("/job:", job, "/replica:0/task:", incarnation % 2'000'000'000);
}

/// The options of `self`, a task of the cluster or a client: addresses of the other tasks, and credentials.
inline Peers::Options peers_of(const ClusterSpec& cluster, TaskIdentity self, std::shared_ptr<Transport> transport,
                               std::shared_ptr<Clock> clock, std::function<std::uint64_t()> random) {
  Peers::Options to;
  for (const ClusterSpec::Task& other : cluster.tasks()) {
    if (other.name != self.task) to.addresses.emplace(other.name, other.address);
  }
  to.transport = std::move(transport);
  to.connection.self = std::move(self);
  to.connection.secret = cluster.secret();
  to.connection.is_insecure = cluster.is_insecure();
  to.connection.clock = std::move(clock);
  to.connection.random = std::move(random);
  return to;
}

}  // namespace dflow::net::detail
