#pragma once

#include <dflow/base/threads/cpu_quota.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

namespace detail {

inline std::string read_if_there(FileSystem& files, const std::string& path) {
  try {
    return files.read_file(path);
  } catch (const Error&) {
    return {};
  }
}

/// The first part of `text` up to `end`, which is taken off with it.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

/// Quota over period, rounded up; nothing unless both are positive numbers ("max" and -1 mean no limit).
inline std::optional<int> processors_of(std::string_view quota, std::string_view period) {
  std::int64_t time = 0, of = 0;
  std::from_chars(quota.data(), quota.data() + quota.size(), time);
  std::from_chars(period.data(), period.data() + period.size(), of);
  if (time <= 0 || of <= 0) return std::nullopt;
  return static_cast<int>(std::min<std::int64_t>((time - 1) / of + 1, 1 << 20));
}

/// The quota of a group and the groups around it, up to where the hierarchy is mounted. In a container the group's
/// path may be the host's. Then only the mount itself is visible.
template <class Quota>
std::optional<int> tightest_quota(const std::string& mount, std::string group, Quota&& quota_at) {
  std::optional<int> tightest;
  while (true) {
    const std::optional<int> here = quota_at(mount + (group == "/" ? "" : group));
    if (here && (!tightest || *here < *tightest)) tightest = here;
    const std::size_t slash = group.find_last_of('/');
    if (slash == std::string::npos || group == "/") return tightest;
    group = slash == 0 ? "/" : group.substr(0, slash);
  }
}

inline bool lists(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    if (take_until(controllers, ',') == wanted) return true;
  }
  return false;
}

}  // namespace detail

std::optional<int> cpu_quota(FileSystem& files) {
  const auto version_2 = [&](const std::string& folder) {
    const std::string text = detail::read_if_there(files, folder + "/cpu.max");
    std::string_view rest(text);
    const std::string_view quota = detail::take_until(rest, ' ');
    return detail::processors_of(quota, rest);
  };
  const auto version_1 = [&](const std::string& folder) {
    return detail::processors_of(detail::read_if_there(files, folder + "/cpu.cfs_quota_us"),
                                 detail::read_if_there(files, folder + "/cpu.cfs_period_us"));
  };
  const std::string groups = detail::read_if_there(files, "/proc/self/cgroup");
  std::optional<int> tightest;
  for (std::string_view lines(groups); !lines.empty();) {
    // hierarchy:controllers:path, where version 2 is hierarchy 0 and lists no controllers.
    std::string_view path = detail::take_until(lines, '\n');
    const std::string_view hierarchy = detail::take_until(path, ':');
    const std::string_view controllers = detail::take_until(path, ':');
    if (!path.starts_with('/')) continue;
    std::optional<int> quota;
    if (hierarchy == "0") {
      quota = detail::tightest_quota("/sys/fs/cgroup", std::string(path), version_2);
    } else if (detail::lists(controllers, "cpu")) {
      quota = detail::tightest_quota("/sys/fs/cgroup/" + std::string(controllers), std::string(path), version_1);
      if (!quota) quota = detail::tightest_quota("/sys/fs/cgroup/cpu", std::string(path), version_1);
    }
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

}  // namespace dflow
