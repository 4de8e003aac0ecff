#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/kernels/cuda/memory/device_core.hpp>

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace dflow::cuda {

/// Calls functions when work on a GPU is done, on a thread of its own. The driver wakes that thread, so that no
/// thread waits for a kernel. Calls of the driver are allowed there.
///
/// Its end: it goes when all that was asked for has been called. It may be destroyed on any thread, its own included.
///
/// Thread safety: all functions may be called from any thread.
class Completions {
 public:
  /// Called once, with ok or with the error that the work, or any work before it, has ended with.
  using Done = UniqueFunction<void(ErrorCode)>;

  explicit Completions(std::shared_ptr<DeviceCore> core);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions();

  /// The resources for one notification of finished work. A ticket is taken before the work is issued, so that
  /// nothing can be refused afterwards.
  class Ticket {
   public:
    explicit Ticket(std::shared_ptr<DeviceCore> core) : core_(std::move(core)), event_(core_->take_event()) {}
    Ticket(Ticket&& from) noexcept
        : core_(std::move(from.core_)), event_(std::exchange(from.event_, EventHandle::none)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (event_ != EventHandle::none) core_->give_back(event_);
    }

   private:
    friend class Completions;
    std::shared_ptr<DeviceCore> core_;
    EventHandle event_;
  };
  /// Throws the driver's error.
  Ticket ticket() const { return Ticket(core_); }

  /// Calls `done` when all that has been issued to the stream by now is done, and keeps `what` until then, however the
  /// driver fails.
  void after(Ticket ticket, StreamHandle stream, std::shared_ptr<void> what, Done done);

 private:
  struct State;
  struct Sleepers;

  std::shared_ptr<DeviceCore> core_;
  std::shared_ptr<State> state_;
  std::uintptr_t number_ = 0;  ///< the driver's calls find the state by it
  std::thread thread_;
};

}  // namespace dflow::cuda
