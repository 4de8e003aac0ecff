#pragma once

#include <dflow/kernels/collectives/collective_meetings.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>
#include <dflow/kernels/cuda/memory/device_core.hpp>

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace dflow::cuda {

/// GPUs of one driver that compute collectives together, by its library (`Collectives`): those that were made with it.
///
/// A collective has a stream of its own on each of them. It begins when what its compute stream had been given is done,
/// and what that is given later waits for it. Were the compute streams themselves given it, one after the other, a
/// copy between two of them that another thread issues meanwhile could come behind it on one and before it on the
/// other, and neither would ever go on.
///
/// Thread safety: all functions may be called from any thread.
class DeviceGroup final : public DeviceCollectives {
 public:
  /// Connections between devices, in an order, that are kept: those that were used last.
  static constexpr std::size_t max_communicators = 16;

  /// What has happened so far.
  struct Counts {
    std::uint64_t made = 0;    ///< connections
    std::uint64_t issued = 0;  ///< collectives
    std::size_t waiting = 0;   ///< that some members have come to, and not all
  };

  /// Precondition: the driver has a library of collectives.
  explicit DeviceGroup(std::shared_ptr<Driver> driver);
  ~DeviceGroup() override;

  /// A device's place in it, which the device has as long as it lives: then its connections are undone, for which this
  /// waits until what was issued by them is done.
  class Seat {
   public:
    Seat() = default;
    Seat(std::shared_ptr<DeviceGroup> group, std::shared_ptr<DeviceCore> core)
        : group_(std::move(group)), core_(std::move(core)) {}
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() {
      if (group_ != nullptr) group_->leave(*core_);
    }
    /// Null: the device is in none.
    const std::shared_ptr<DeviceGroup>& group() const noexcept { return group_; }

   private:
    const std::shared_ptr<DeviceGroup> group_;
    const std::shared_ptr<DeviceCore> core_;
  };

  const std::shared_ptr<Driver>& driver() const noexcept { return driver_; }
  Counts counts() const;

  bool can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const> members) override;
  /// A member of a collective has come to it in a step; see `CollectiveMeetings`.
  /// Errors, given to `done`: InvalidArgument for members' values of different shapes; what the driver and the library
  /// say.
  void arrive(KernelContext& context, AsyncKernel::Done done);

 private:
  struct Communicators {
    std::vector<int> devices;
    CommunicatorsHandle handle = CommunicatorsHandle::none;  ///< none: the library refuses these devices
  };
  using Used = std::list<Communicators>;

  void compute(std::span<KernelContext* const> members);
  void issue(const CollectiveCall& call, std::span<const DeviceCore* const> cores, std::span<CollectiveMember> members,
             std::span<KernelContext* const> contexts);
  Used::iterator find_or_make(std::span<const DeviceCore* const> cores);
  StreamHandle stream_of(const DeviceCore& core);
  void drop(Used::iterator communicators, bool aborts) noexcept;
  void leave(const DeviceCore& core) noexcept;

  const std::shared_ptr<Driver> driver_;
  Collectives& library_;
  CollectiveMeetings meetings_;
  mutable std::mutex mutex_;  ///< held while a collective is issued, so that all devices get all in one order
  Used used_;                 ///< the last used first
  std::map<const DeviceCore*, StreamHandle> streams_;
  Counts counts_;
};

}  // namespace dflow::cuda

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cuda/collectives/device_group.ipp>
#endif
