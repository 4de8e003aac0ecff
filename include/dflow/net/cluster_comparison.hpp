#pragma once

#include <dflow/net/cluster_spec.hpp>
#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/protocol/messages.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace dflow::net {

/// Finds out whether the tasks of a cluster were started with the same cluster, and says in the log what differs. The
/// hello of a task has a fingerprint of the cluster's tasks. If it differs from the acceptor's own fingerprint, the
/// acceptor sends its list, and the connector answers with its list.
///
/// Only the names of the tasks count: one task may have several addresses, for example behind a proxy. If the names
/// differ, the log says which addresses differ too.
///
/// Thread safety: safe.
class ClusterComparison final : public std::enable_shared_from_this<ClusterComparison> {
 public:
  using Log = std::function<void(std::string_view)>;

  ClusterComparison(const ClusterSpec& cluster, Log log);

  /// For `ConnectionOptions::tasks_fingerprint`; never 0.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// To be told of each open connection.
  void compare(const std::shared_ptr<Connection>& connection);
  /// The reply to `Method::compare_clusters`. Errors: of `ClusterTaskList::read`.
  Outgoing answer(const TaskIdentity& peer, std::string_view body);

 private:
  void say(const std::string& peer, const ClusterTaskList& theirs);

  const Log log_;
  std::uint64_t fingerprint_ = 0;
  ClusterTaskList own_;
  std::mutex mutex_;
  std::map<std::string, std::string> said_;  ///< the last line about each peer
};

namespace detail {
/// Names a few of the tasks that only one of the lists has, and of the addresses that differ. Empty if both lists have
/// the same tasks at the same addresses.
std::string difference_of(const ClusterTaskList& own, const ClusterTaskList& theirs);
}  // namespace detail

}  // namespace dflow::net
