#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dflow::cuda {

enum class StreamHandle : std::uintptr_t;
/// Devices that are connected to compute together; 0 is none.
enum class CommunicatorsHandle : std::uintptr_t { none = 0 };

/// The operation of the members, with `count` elements each. A sum or product is of numbers of `dtype`, which are
/// real; a gather gives the members' elements one after the other, `count` times their number.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::sum;
  DType dtype = DType::invalid;
  std::size_t count = 0;
};

/// One member's end of it, in the memory of its device. `to` may be `from`, except for a gather.
struct CollectiveMember {
  const void* from = nullptr;  ///< of a broadcast the first member's alone
  void* to = nullptr;
  StreamHandle stream = {};
};

/// The functions of NCCL that dflow uses, as a thin table: `nccl_collectives()` calls NCCL, and the tests have a
/// table that computes on the host.
///
/// Functions return an error code, and do not throw; `why` gets the library's text for an error.
///
/// Thread safety: all functions may be called from any thread. Concurrent calls are issued one after the other, to
/// all devices in one order.
class Collectives {
 public:
  Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;
  virtual ~Collectives() = default;

  /// Whether elements of that type are added and multiplied.
  virtual bool can_reduce(DType dtype) const noexcept = 0;
  /// Connects devices, which are different ones: member i is on device `devices[i]`. It blocks, for as long as a
  /// second. not_supported if the library cannot be loaded.
  virtual ErrorCode make_communicators(std::span<const int> devices, CommunicatorsHandle& communicators,
                                       std::string& why) noexcept = 0;
  /// Nothing that was issued by them runs any more; or it does, and is ended: `aborts`. It may block.
  virtual ErrorCode destroy_communicators(CommunicatorsHandle communicators, bool aborts) noexcept = 0;
  /// An error of issued work. After an error the communicators are of no use.
  virtual ErrorCode check_communicators(CommunicatorsHandle communicators, std::string& why) noexcept = 0;
  /// Issues it to the members' streams. A stream goes on when the others have come to it, too. After an error it may
  /// have been issued to some of them, which wait until the communicators are destroyed.
  virtual ErrorCode run_collective(CommunicatorsHandle communicators, const CollectiveCall& call,
                                   std::span<const CollectiveMember> members, std::string& why) noexcept = 0;
};

}  // namespace dflow::cuda
