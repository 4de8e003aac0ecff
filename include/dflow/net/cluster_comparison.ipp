#pragma once

#include <dflow/base/sha256.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/net/cluster_comparison.hpp>
#include <dflow/net/protocol/call.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace dflow::net {

namespace detail {

std::string difference_of(const ClusterTaskList& own, const ClusterTaskList& theirs) {
  constexpr std::size_t most = 4;
  std::size_t count = 0;
  std::string text;
  const auto add = [&](auto&&... parts) {
    if (++count <= most) text += str_cat(text.empty() ? "" : ", ", parts...);
  };
  if (own.num_tasks != theirs.num_tasks) add(theirs.num_tasks, " tasks there and ", own.num_tasks, " here");
  std::map<std::string_view, std::string_view> here, there;
  for (const ClusterTaskList::Task& task : own.tasks) here.emplace(task.name, task.address);
  for (const ClusterTaskList::Task& task : theirs.tasks) there.emplace(task.name, task.address);
  // A list that was cut does not say which tasks it lacks.
  const bool is_whole = own.tasks.size() == own.num_tasks && theirs.tasks.size() == theirs.num_tasks;
  for (const auto& [name, address] : there) {
    const auto found = here.find(name);
    if (found == here.end()) {
      if (is_whole) add(name, " (", address, ") only there");
    } else if (found->second != address) {
      add(name, " at ", address, " there and at ", found->second, " here");
    }
  }
  for (const auto& [name, address] : here) {
    if (is_whole && !there.contains(name)) add(name, " (", address, ") only here");
  }
  if (count > most) text += str_cat(", and ", count - most, " more differences");
  return text;
}

}  // namespace detail

ClusterComparison::ClusterComparison(const ClusterSpec& cluster, Log log) : log_(std::move(log)) {
  const std::vector<ClusterSpec::Task> tasks = cluster.tasks();
  own_.num_tasks = tasks.size();
  Sha256 names;
  for (const ClusterSpec::Task& task : tasks) {
    names.update(task.name);
    names.update("\n");
    if (own_.tasks.size() < ClusterTaskList::max_listed) own_.tasks.push_back({task.name, task.address});
  }
  const Sha256Digest digest = names.digest();
  std::memcpy(&fingerprint_, digest.data(), sizeof fingerprint_);
  fingerprint_ = std::max<std::uint64_t>(fingerprint_, 1);
}

void ClusterComparison::compare(const std::shared_ptr<Connection>& connection) {
  const std::uint64_t theirs = connection->peer_tasks();
  if (theirs == 0 || theirs == fingerprint_ || connection->channel() != Channel::control) return;
  connection->call(
      detail::make_call(Method::compare_clusters, to_body(own_)),
      [weak = weak_from_this(), peer = connection->peer().task](const Status& status, const std::string& body) {
        const std::shared_ptr<ClusterComparison> self = weak.lock();
        if (self == nullptr || !status.ok()) return;
        detail::tell([&] { self->say(peer, from_body<ClusterTaskList>(body)); });
      });
}

Outgoing ClusterComparison::answer(const TaskIdentity& peer, std::string_view body) {
  say(peer.task, from_body<ClusterTaskList>(body));
  return {to_body(own_), {}};
}

void ClusterComparison::say(const std::string& peer, const ClusterTaskList& theirs) {
  constexpr std::size_t most_peers = 1024;
  const std::string difference = detail::difference_of(own_, theirs);
  if (difference.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (said_.size() >= most_peers) said_.clear();
    std::string& last = said_[peer];
    if (last == difference) return;
    last = difference;
  }
  log_(str_cat(peer, " was started with another cluster than this task: ", difference));
}

}  // namespace dflow::net
