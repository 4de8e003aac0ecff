#pragma once

/// Public: devices that compute collectives among themselves.

#include <dflow/core/dtype.hpp>
#include <dflow/ops/internal/collective_kind.hpp>

#include <span>

namespace dflow {

struct DeviceContext;

/// What computes collectives between devices of one process, as NCCL does between GPUs: for those that give the same
/// one (`Device::collectives`). They have a kernel of `MemberCollective` then.
///
/// Thread safety: all functions may be called from any thread.
class DeviceCollectives {
 public:
  DeviceCollectives() = default;
  DeviceCollectives(const DeviceCollectives&) = delete;
  DeviceCollectives& operator=(const DeviceCollectives&) = delete;
  virtual ~DeviceCollectives() = default;

  /// Whether these devices, all of which give this, compute that of elements of that type, in that order. It may block:
  /// what it takes to connect them is done here, not in a step. Throws nothing but std::bad_alloc.
  virtual bool can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const> members) = 0;
};

}  // namespace dflow
