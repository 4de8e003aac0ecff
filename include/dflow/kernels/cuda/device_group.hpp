#pragma once

#include <dflow/kernels/collectives/collective_meetings.hpp>
#include <dflow/kernels/collectives/device_collectives.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace dflow::cuda {

/// The GPUs of a driver that compute collectives together, by its library (`Collectives`). It has all GPUs made with
/// the driver, by any caller. There is one group for each driver.
///
/// A collective has a stream of its own on each GPU. The collective begins when the earlier work of the GPU's compute
/// stream is done, and later work of the compute stream waits for the collective. If the compute streams ran it
/// themselves, they would be given it one after the other. Another thread could issue a copy between two of them
/// meanwhile. The copy could come after the collective on one stream and before it on the other, and neither would
/// ever go on.
///
/// A connection is ended if it finds an error or one of its GPUs is lost; collectives in progress on it end too. A
/// connection with a failed call waits for earlier work, for `patience`. A step ends with the error if one of its
/// collectives may not have been computed.
///
/// Thread safety: all functions may be called from any thread.
class DeviceGroup final : public DeviceCollectives, public std::enable_shared_from_this<DeviceGroup> {
 public:
  /// The most connections that are kept, each between devices in an order: the last used ones.
  static constexpr std::size_t max_communicators = 16;
  /// After a refusal to connect devices, the library is asked again until it has refused this many times in a row. A
  /// lack of memory does not count.
  static constexpr int max_refusals = 3;
  static constexpr std::chrono::milliseconds patience{2000};

  /// Counts of events up to now.
  struct Counts {
    std::uint64_t made = 0;    ///< connections
    std::uint64_t issued = 0;  ///< collectives
    std::size_t waiting = 0;   ///< collectives with some, but not all, of their members
  };

  /// The driver's group, as long as somebody has it; null if the driver has no library of collectives.
  static std::shared_ptr<DeviceGroup> of(const std::shared_ptr<Driver>& driver);
  ~DeviceGroup() override;

  /// A device's place in the group, held for the device's lifetime. At its end it waits until the collectives of its
  /// GPU are done; with the last device of a GPU its connections are undone.
  class Seat {
   public:
    /// A null group: the device is in no group.
    Seat(std::shared_ptr<DeviceGroup> group, std::shared_ptr<DeviceCore> core)
        : group_(std::move(group)), core_(std::move(core)) {
      if (group_ != nullptr) group_->join(*core_);
    }
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() {
      if (group_ != nullptr) group_->leave(*core_);
    }
    const std::shared_ptr<DeviceGroup>& group() const noexcept { return group_; }

   private:
    const std::shared_ptr<DeviceGroup> group_;
    const std::shared_ptr<DeviceCore> core_;
  };

  Counts counts() const;

  bool can_compute(CollectiveKind kind, DType dtype, std::span<const DeviceContext* const> members) override;
  /// A member of a collective has come to it in a step; see `CollectiveMeetings`.
  /// Errors, given to `done`: InvalidArgument for members' values of different shapes; errors of the driver and the
  /// library.
  void arrive(KernelContext& context, AsyncKernel::Done done);

 private:
  /// Connected devices. A step that has used them keeps this, even if the connection ends.
  struct Communicators {
    explicit Communicators(std::vector<int> of) : devices(std::move(of)) {}

    const std::vector<int> devices;
    int refusals = 0;  ///< by the library, one after the other: under the group's mutex
    std::mutex mutex;  ///< of the members below; locked after the group's
    CommunicatorsHandle handle = CommunicatorsHandle::none;  ///< none: the devices are not connected, or no longer
    Status failure;                                          ///< the error that ended the connection
    std::uint64_t fails_from = std::numeric_limits<std::uint64_t>::max();  ///< the first collective that fails with it
  };
  using Used = std::list<std::shared_ptr<Communicators>>;
  using Time = std::chrono::steady_clock::time_point;

  /// The stream of a GPU; devices on the GPU share it.
  struct MemberStream {
    int seats = 0;
    StreamHandle stream = StreamHandle::none;
    EventHandle passed = EventHandle::none;  ///< when the work issued last is done
    bool is_recorded = true;                 ///< `passed` covers the work issued last
  };

  explicit DeviceGroup(std::shared_ptr<Driver> driver);

  void compute(std::span<KernelContext* const> members);
  void issue(const CollectiveCall& call, std::span<CudaMemory* const> memories, std::span<CollectiveMember> members,
             std::span<KernelContext* const> contexts);
  ErrorCode issue(std::unique_lock<std::mutex>& lock, const CollectiveCall& call, std::span<CudaMemory* const> memories,
                  std::span<CollectiveMember> members, std::span<KernelContext* const> contexts, Status& status);
  std::shared_ptr<Communicators> connect(std::unique_lock<std::mutex>& lock, std::span<CudaMemory* const> memories);
  std::shared_ptr<Communicators> find_or_make(const std::vector<int>& devices);
  MemberStream& stream_of(const DeviceCore& core);
  Status status_of(Communicators& by, std::uint64_t number, ErrorCode work);
  bool check(Communicators& by) noexcept;
  void end(Communicators& by, Status failure, std::uint64_t from) noexcept;
  ErrorCode wait(const std::vector<int>& devices, Time until) const noexcept;
  void settle(Communicators& by) noexcept;
  void disconnect(Communicators& by) noexcept;
  void join(const DeviceCore& core);
  void leave(const DeviceCore& core) noexcept;

  const std::shared_ptr<Driver> driver_;
  Collectives& library_;
  CollectiveMeetings meetings_;
  mutable std::mutex mutex_;  ///< held while a collective is issued, so that all devices get them in one order
  Used used_;                 ///< the last used first
  std::map<int, MemberStream> streams_;  ///< by the driver's number of the GPU
  std::uint64_t last_number_ = 0;
  Counts counts_;
};

}  // namespace dflow::cuda
