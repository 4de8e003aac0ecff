#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/net/protocol/call.hpp>
#include <dflow/net/protocol/master_messages.hpp>
#include <dflow/net/tasks/reset_devices.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/state/awaited_resource.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace dflow::net {

namespace detail {

/// A resource made meanwhile counts as made after the reset.
void reset_container(ResourceContainers& resources, const std::string& container) {
  for (const auto& [name, dropped] : resources.container(container)->take_all()) {
    const auto awaited = std::dynamic_pointer_cast<AwaitedResource>(dropped);
    if (awaited == nullptr) continue;
    awaited->abandon(
        Status::aborted(str_cat("container '", container, "' was reset, and with it ", awaited->debug_string())));
  }
}

}  // namespace detail

void reset_devices(std::span<const std::shared_ptr<Device>> devices, std::span<const std::string> containers) {
  const auto is_own = [](const std::string& container) { return container.starts_with('_'); };
  for (const std::string& container : containers) {
    if (is_own(container))
      throw_error(Status::invalid_argument(str_cat("container '", container, "' is the library's own")));
  }
  const std::set<std::string_view> named(containers.begin(), containers.end());
  for (const std::shared_ptr<Device>& device : devices) {
    ResourceContainers& resources = *device->context().resources;
    for (const std::string& container : resources.names()) {
      const bool is_meant = containers.empty() ? !is_own(container) : named.contains(container);
      if (is_meant) detail::reset_container(resources, container);
    }
  }
}

namespace detail {

/// Gathers the answers of tasks to a request, as they answer.
struct TaskAnswers {
  std::mutex mutex;
  std::map<std::string, Status> failed;
  std::size_t num_asked = 0;
  std::size_t num_answered = 0;
  UniqueFunction<void(Status)> done;

  void answer(const std::string& task, const Status& status) {
    bool is_last = false;
    {
      const std::lock_guard lock(mutex);
      if (!status.ok()) failed.emplace(task, status);
      is_last = ++num_answered == num_asked;
    }
    if (is_last) std::exchange(done, nullptr)(outcome());
  }

  Status outcome() const {
    if (failed.empty()) return {};
    std::string missing;
    for (const auto& [task, status] : failed) {
      if (status.code() != Code::unavailable && status.code() != Code::deadline_exceeded) return status.with_task(task);
      missing += str_cat(missing.empty() ? "" : "; ", task, " (", status.message(), ")");
    }
    return Status::unavailable(
        str_cat(failed.size(), " of ", num_asked, " tasks are missing, and were not reset: ", missing));
  }
};

}  // namespace detail

void reset_tasks_async(Peers& peers, const std::vector<std::string>& tasks, std::vector<std::string> containers,
                       Clock::time_point deadline, UniqueFunction<void(Status)> done) {
  if (tasks.empty()) return done({});
  const auto answers = std::make_shared<detail::TaskAnswers>();
  answers->num_asked = tasks.size();
  answers->done = std::move(done);
  const std::string body = to_body(NameList{std::move(containers)});
  for (const std::string& task : tasks) {
    peers.connect(task, Channel::control, deadline,
                  [answers, task, body, deadline](const Status& status, const std::shared_ptr<Connection>& connection) {
                    if (!status.ok()) return answers->answer(task, status);
                    Call call = detail::make_call(Method::reset_task, body);
                    call.deadline = deadline;
                    connection->call(std::move(call), [answers, task](const Status& replied, const std::string&) {
                      answers->answer(task, replied);
                    });
                  });
  }
}

}  // namespace dflow::net
