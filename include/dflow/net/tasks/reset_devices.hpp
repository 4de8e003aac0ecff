#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/unique_function.hpp>
#include <dflow/net/tasks/peers.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dflow {
class Device;
}

namespace dflow::net {

/// Drops the resources in the named containers of the devices. If no container is named, it drops the resources in
/// all containers except the library's own. The library's containers have names that begin with "_" (positions of
/// random streams, locations of files). Errors: InvalidArgument for the name of a library container.
///
/// Thread safety: safe.
void reset_devices(std::span<const std::shared_ptr<Device>> devices, std::span<const std::string> containers);

/// Makes each of `tasks` reset its own devices in the same way, if it can be reached until `deadline`. `done` is
/// called once, from any thread. Errors, given to `done`: Unavailable with the list of the tasks that did not reset,
/// when others may have; the first other error.
///
/// Thread safety: safe.
void reset_tasks_async(Peers& peers, const std::vector<std::string>& tasks, std::vector<std::string> containers,
                       Clock::time_point deadline, UniqueFunction<void(Status)> done);

}  // namespace dflow::net
