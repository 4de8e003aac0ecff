#pragma once

/// Public: devices that compute collectives among themselves.

#include <dflow/core/dtype.hpp>
#include <dflow/ops/internal/collective_kind.hpp>

#include <span>

namespace dflow {

struct DeviceContext;

/// Computes collectives between devices of one process, as NCCL does between GPUs. It serves all devices that return
/// this object from `Device::collectives`; each of them has a kernel of `MemberCollective`.
///
/// Thread safety: all functions may be called from any thread.
class DeviceCollectives {
 public:
  DeviceCollectives() = default;
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  virtual ~DeviceCollectives() = default;

  /// True if `members`, in this order, can compute a collective of `kind` on elements of type `dtype`. Every member's
  /// device returns this object. May block, because the devices are connected here and not in a step. Throws nothing
  /// but std::bad_alloc.
  virtual bool can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const> members) = 0;
};

}  // namespace dflow
