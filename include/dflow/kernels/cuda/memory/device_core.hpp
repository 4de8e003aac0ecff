#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::cuda {

/// One GPU of a driver and the three streams that its work goes to: computing, and copies in and out. Blocks, copies
/// and steps share it; it goes with the last of them.
///
/// Thread safety: all functions may be called from any thread.
class DeviceCore {
 public:
  /// While it lives, work that its thread issues to the compute stream of `core` goes to `stream` instead, and
  /// `stream` captures.
  class Capturing {
   public:
    /// For each block that the thread will allocate, `keeps` says whether the captured work keeps the block for good.
    /// Blocks beyond its end are not kept.
    Capturing(const DeviceCore& core, StreamHandle stream, const std::vector<bool>& keeps) noexcept
        : core_(&core), stream_(stream), keeps_(keeps), outer_(of_thread()) {
      of_thread() = this;
    }
    Capturing(const Capturing&) = delete;
    Capturing& operator=(const Capturing&) = delete;
    ~Capturing() { of_thread() = outer_; }

    /// Whether the work keeps the expected block.
    bool keeps_next() const noexcept { return allocated_.size() <= keeps_.size() && keeps_[allocated_.size() - 1]; }
    /// Around an allocation.
    void expect() { allocated_.push_back(nullptr); }
    void note(void* block) noexcept { allocated_.back() = block; }
    void give_up() noexcept { allocated_.pop_back(); }
    /// The allocated blocks, in order.
    const std::vector<void*>& allocated() const noexcept { return allocated_; }
    /// Blocks that it shares with other work that was captured.
    std::set<void*>& shared() noexcept { return shared_; }
    /// The objects that the work needs as long as it can be launched.
    std::vector<std::shared_ptr<const void>> take_held() noexcept { return std::move(held_); }

   private:
    friend class DeviceCore;
    static Capturing*& of_thread() noexcept {
      static constinit thread_local Capturing* innermost = nullptr;
      return innermost;
    }

    const DeviceCore* const core_;
    const StreamHandle stream_;
    const std::vector<bool>& keeps_;
    Capturing* const outer_;
    std::vector<void*> allocated_;
    std::set<void*> shared_;
    std::vector<std::shared_ptr<const void>> held_;
  };

  /// Errors: the driver's errors for a device of that number.
  DeviceCore(std::shared_ptr<Driver> driver, int device);
  DeviceCore(const DeviceCore&) = delete;
  DeviceCore& operator=(const DeviceCore&) = delete;
  ~DeviceCore();

  Driver& driver() const noexcept { return *driver_; }
  const std::shared_ptr<Driver>& shared_driver() const noexcept { return driver_; }
  int device() const noexcept { return device_; }
  /// The stream for kernels: the compute stream, or the capturing stream in a thread that captures.
  StreamHandle compute() const noexcept {
    const Capturing* const work = capturing();
    return work != nullptr ? work->stream_ : compute_;
  }
  /// The stream that orders the allocation and release of memory: always the compute stream, even in a thread that
  /// captures.
  StreamHandle memory_order() const noexcept { return compute_; }
  /// The capture of the calling thread; null if it captures nothing of this device.
  Capturing* capturing() const noexcept {
    Capturing* const work = Capturing::of_thread();
    return work != nullptr && work->core_ == this ? work : nullptr;
  }
  StreamHandle copies_in() const noexcept { return copies_in_; }
  StreamHandle copies_out() const noexcept { return copies_out_; }

  /// Throws the error, naming the GPU, unless the code is ok.
  void require_ok(ErrorCode code, std::string_view doing) const;
  Status status_of(ErrorCode code, std::string_view doing) const;

  /// Work that is issued to `later` from now on runs after all work already issued to `earlier`, a stream of `of`.
  /// Throws the driver's error.
  void order(StreamHandle later, const DeviceCore& of, StreamHandle earlier) const;
  void order(StreamHandle later, StreamHandle earlier) const { order(later, *this, earlier); }

  /// Keeps an object other than a block that issued work needs, such as a library's plan, while the work is being
  /// captured.
  void hold(const std::shared_ptr<const void>& what) const {
    if (Capturing* const work = capturing()) work->held_.push_back(what);
  }

  /// An event that nobody else uses until it is given back. Throws the driver's error; Unimplemented in a thread that
  /// captures, because a graph cannot contain an order between streams or a wait for a stream.
  EventHandle take_event() const;
  /// The event may be recorded and not awaited, or awaited: a later record does not change work that was issued.
  void give_back(EventHandle event) const noexcept;

  /// Waits for the work issued to its streams; the work's errors are reported elsewhere. A device that is lost is
  /// idle.
  void wait_until_idle() const noexcept;

  /// Keeps an object that work may still use, until the device ends: nobody will say when that work is done.
  void keep(std::shared_ptr<void> what) const;
  /// The device ends: waits until it is idle, then lets go of all kept objects, and of objects that are given to
  /// `keep` from now on. A kept object may keep this core, so the code that ends the device calls `end`.
  void end() const noexcept;

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
  mutable bool has_ended_ = false;
};

}  // namespace dflow::cuda
