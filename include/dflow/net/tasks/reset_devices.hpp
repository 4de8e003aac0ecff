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

/// Drops the resources in these containers of the devices, or, of none, in all but the library's own, whose names begin
/// with "_" (positions of random streams, where files lie). Errors: InvalidArgument for the name of one of those.
///
/// Thread safety: safe.
void reset_devices(std::span<const std::shared_ptr<Device>> devices, std::span<const std::string> containers);

/// Has each of `tasks` do the same with its own devices, as far as they can be reached until `deadline`. Errors, given
/// to `done`, which is called once, from any thread: Unavailable with the list of those that did not, when others may
/// have; the first other error.
///
/// Thread safety: safe.
void reset_tasks_async(Peers& peers, const std::vector<std::string>& tasks, std::vector<std::string> containers,
                       Clock::time_point deadline, UniqueFunction<void(Status)> done);

}  // namespace dflow::net
