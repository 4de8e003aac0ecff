#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/threads/cpu_quota.hpp>

#include "catch.hpp"

#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;

namespace {
using Files = std::vector<std::pair<const char*, std::string_view>>;

std::optional<int> quota_of(const Files& contents) {
  MemoryFileSystem files;
  for (const auto& [path, text] : contents) {
    files.create_directories(std::string(path).substr(0, std::string(path).find_last_of('/')));
    files.write_file_atomically(path, std::as_bytes(std::span(text.data(), text.size())));
  }
  return cpu_quota(files);
}
}  // namespace

TEST_CASE("the quota of control groups is that of the tightest, rounded up", "[cpu_quota]") {
  // A container with a namespace of its own (version 2): docker run --cpus=2.5
  CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}}) == 3);
  CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "200000 100000\n"}}) == 2);
  CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "1000 100000\n"}}) == 1);
  // A service in a slice; the slice has less.
  CHECK(quota_of({{"/proc/self/cgroup", "0::/work.slice/a.service\n"},
                  {"/sys/fs/cgroup/work.slice/cpu.max", "300000 100000\n"},
                  {"/sys/fs/cgroup/work.slice/a.service/cpu.max", "800000 100000\n"}}) == 3);
  CHECK(quota_of({{"/proc/self/cgroup", "0::/work.slice/a.service\n"},
                  {"/sys/fs/cgroup/work.slice/cpu.max", "max 100000\n"},
                  {"/sys/fs/cgroup/work.slice/a.service/cpu.max", "800000 100000\n"}}) == 8);
  // Version 1, by the controllers' common mount and by the controller's own; the path is the host's.
  CHECK(quota_of({{"/proc/self/cgroup", "3:cpu,cpuacct:/docker/1f\n2:memory:/docker/1f\n"},
                  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n"},
                  {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}}) == 4);
  CHECK(quota_of({{"/proc/self/cgroup", "3:cpuacct,cpu:/a\n0::/\n"},
                  {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"},
                  {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n"}}) == 1);
}

TEST_CASE("no quota is no limit", "[cpu_quota]") {
  CHECK(quota_of({}) == std::nullopt);
  CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}}) == std::nullopt);
  CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "max 100000\n"}}) == std::nullopt);
  CHECK(quota_of({{"/proc/self/cgroup", "1:cpu:/\n"},
                  {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                  {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}) == std::nullopt);
  for (const char* broken : {"", "\n", "0", "0::", "0:::", "x:y:z\n", "::\n", "0::relative\n"}) {
    CHECK(quota_of({{"/proc/self/cgroup", broken}, {"/sys/fs/cgroup/cpu.max", "100000 100000\n"}}) == std::nullopt);
  }
  for (const char* broken : {"", "100000", "100000 0", "-5 100000", "100000 -1", "cpu 1", "99999999999999999999 1"}) {
    CHECK(quota_of({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", broken}}) == std::nullopt);
  }
}
