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

/// Constants in the memories of devices. A constant is brought there once, is shared by all plans that read it, and is
/// freed with the last of the plans. A session has one DeviceConstants.
///
/// Thread safety: safe.
class DeviceConstants {
 public:
  /// A host tensor and the device's copy of it. The host tensor is kept, so that no other tensor can take its place in
  /// memory.
  struct Copy {
    AnyTensor host;
    AnyTensor here;
  };
  using Ref = std::shared_ptr<const Copy>;

  /// Null if no plan has a copy of that tensor there.
  Ref find(const DeviceContext& device, const AnyTensor& host) const;
  /// Returns the copy to use from now on: `copy`, or the copy of another thread that was quicker.
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
  std::size_t sweep_at_ = 16;  ///< number of entries at which copies that nobody reads any more are looked for
};

namespace detail {

/// The limits that end waiting for copies early.
struct CopyLimits {
  Clock* clock = nullptr;  ///< null: no deadline
  Clock::time_point deadline = Clock::never;
  std::stop_token stop = {};
};

struct BroughtConstants {
  Status status;
  std::ptrdiff_t failed = -1;  ///< number of the tensor that could not be brought; -1 if no single tensor is at fault
  std::vector<DeviceConstants::Ref> constants;
};

/// Brings host tensors of numbers into the device's memory. Starts all copies that `shared` (may be null) does not
/// have, then waits for them in the device's pool, whose workers go on working. Ends at the first error; a copy whose
/// completion is dropped is an error. Copies under way then end on their own, and belong to nobody. Errors, in the
/// status: the errors of the copies; DeadlineExceeded and Cancelled by the limits. An exception from starting a copy
/// is passed on.
BroughtConstants bring_constants(const DeviceContext& device, std::span<const AnyTensor> hosts, DeviceConstants* shared,
                                 const CopyLimits& limits);

}  // namespace detail
}  // namespace dflow
