#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/files/file_system.hpp>

#include <optional>

namespace dflow {

/// The processors' worth of time that Linux's control groups (version 1 or 2) grant this process. It is the tightest
/// quota over its period, of the process's group and the groups around it, rounded up. Nothing if there is no limit,
/// or none that can be read. `files` has /proc and /sys. Throws nothing of its own; bad_alloc passes.
/// Sources: Linux, Documentation/admin-guide/cgroup-v2.rst (cpu.max), Documentation/scheduler/sched-bwc.rst.
std::optional<int> cpu_quota(FileSystem& files);

}  // namespace dflow
