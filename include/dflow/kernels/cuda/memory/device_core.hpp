#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace dflow::cuda {

/// One GPU of a driver and the three streams that its work goes to: computing, and copies in and out. Blocks, copies
/// and steps share it; it goes with the last of them.
///
/// Thread safety: all functions may be called from any thread.
class DeviceCore {
 public:
  /// Errors: what the driver says of a device of that number.
  DeviceCore(std::shared_ptr<Driver> driver, int device);
  DeviceCore(const DeviceCore&) = delete;
  DeviceCore& operator=(const DeviceCore&) = delete;
  ~DeviceCore();

  Driver& driver() const noexcept { return *driver_; }
  const std::shared_ptr<Driver>& shared_driver() const noexcept { return driver_; }
  int device() const noexcept { return device_; }
  StreamHandle compute() const noexcept { return compute_; }
  StreamHandle copies_in() const noexcept { return copies_in_; }
  StreamHandle copies_out() const noexcept { return copies_out_; }

  /// Throws the error, naming the GPU, unless the code is ok.
  void require_ok(ErrorCode code, std::string_view doing) const;
  Status status_of(ErrorCode code, std::string_view doing) const;

  /// What is issued to `later` from now on runs after all that has been issued to `earlier`, a stream of `of`. Throws
  /// what the driver says.
  void order(StreamHandle later, const DeviceCore& of, StreamHandle earlier) const;
  void order(StreamHandle later, StreamHandle earlier) const { order(later, *this, earlier); }

  /// An event that nobody else uses until it is given back. Throws what the driver says.
  EventHandle take_event() const;
  /// One that is recorded and not awaited, or awaited: a later record does not change what was issued.
  void give_back(EventHandle event) const noexcept;

  /// Keeps what work may still look at of which nobody will say when it is done.
  void keep(std::shared_ptr<void> what) const;
  /// Lets go of that when the device is idle, for which it waits. What is kept may keep this core, so whoever ends the
  /// device calls it.
  void release_kept() const noexcept;

 private:
  void destroy() noexcept;

  const std::shared_ptr<Driver> driver_;
  const int device_;
  StreamHandle compute_ = StreamHandle::none;
  StreamHandle copies_in_ = StreamHandle::none;
  StreamHandle copies_out_ = StreamHandle::none;
  mutable std::mutex mutex_;
  mutable std::vector<EventHandle> events_;  ///< nobody's
  mutable std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace dflow::cuda

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cuda/memory/device_core.ipp>
#endif
