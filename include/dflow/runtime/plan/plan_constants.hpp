#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/core/any_tensor.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <vector>

namespace dflow {

/// Constants in the memories of devices: brought there once, shared by all plans that read them, and gone with the last
/// of these. A session has one.
///
/// Thread safety: safe.
class DeviceConstants {
 public:
  /// A host tensor, which nobody may free and put another one in its place meanwhile, and the device's copy of it.
  struct Copy {
    AnyTensor host;
    AnyTensor here;
  };
  using Ref = std::shared_ptr<const Copy>;

  /// Null if no plan has that one there.
  Ref find(const DeviceContext& device, const AnyTensor& host) const;
  /// The copy to use from now on: `copy`, or what another thread was quicker to bring there.
  Ref keep(const DeviceContext& device, Ref copy);
  /// Copies that some plan still reads.
  std::size_t size() const;

 private:
  /// Equal for handles to the same elements.
  struct Key {
    const DeviceContext* device = nullptr;
    const Buffer* buffer = nullptr;
    const void* data = nullptr;
    DType dtype = DType::invalid;
    Shape shape;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<const void*>{}(key.device) * 31 ^ std::hash<const void*>{}(key.data);
    }
  };
  static Key key_of(const DeviceContext& device, const AnyTensor& host);

  mutable std::mutex mutex_;
  std::unordered_map<Key, std::weak_ptr<const Copy>, KeyHash> copies_;
  std::size_t sweep_at_ = 16;  ///< entries at which those are looked for that nobody reads any more
};

namespace detail {

/// What ends waiting for copies early.
struct CopyLimits {
  Clock* clock = nullptr;  ///< null: no deadline
  Clock::time_point deadline = Clock::never;
  std::stop_token stop = {};
};

struct BroughtConstants {
  Status status;
  std::ptrdiff_t failed = -1;  ///< which one could not be brought; -1 where it is not the fault of one
  std::vector<DeviceConstants::Ref> constants;
};

/// Brings host tensors of numbers into the device's memory: starts all copies that `shared` (may be null) does not
/// have, then waits for them in the device's pool, whose workers go on working. Ends at the first error, a copy whose
/// completion is dropped being one; copies under way then end on their own, and belong to nobody. Errors, in the
/// status: those of the copies; DeadlineExceeded and Cancelled by the limits. What starting a copy throws goes on.
BroughtConstants bring_constants(const DeviceContext& device, std::span<const AnyTensor> hosts, DeviceConstants* shared,
                                 const CopyLimits& limits);

}  // namespace detail
}  // namespace dflow
