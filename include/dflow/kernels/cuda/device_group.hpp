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

/// The GPUs of a driver that compute collectives together, by its library (`Collectives`): those that were made with
/// it, whoever made them. There is one for each driver.
///
/// A collective has a stream of its own on each of them. It begins when what its compute stream had been given is done,
/// and what that is given later waits for it. Were the compute streams themselves given it, one after the other, a
/// copy between two of them that another thread issues meanwhile could come behind it on one and before it on the
/// other, and neither would ever go on.
///
/// A connection that finds an error, or one of whose GPUs is lost, is ended, and with it what is on its way by it. One
/// that fails in a call waits for what was issued before, for `patience`. Steps that had a collective that may not have
/// been computed end with the error.
///
/// Thread safety: all functions may be called from any thread.
class DeviceGroup final : public DeviceCollectives, public std::enable_shared_from_this<DeviceGroup> {
 public:
  /// Connections between devices, in an order, that are kept: those that were used last.
  static constexpr std::size_t max_communicators = 16;
  /// So often the library may refuse to connect devices, and is asked again; out of memory it may as often as it is.
  static constexpr int max_refusals = 3;
  static constexpr std::chrono::milliseconds patience{2000};

  /// What has happened so far.
  struct Counts {
    std::uint64_t made = 0;    ///< connections
    std::uint64_t issued = 0;  ///< collectives
    std::size_t waiting = 0;   ///< that some members have come to, and not all
  };

  /// That of the driver, as long as somebody has it; null if the driver has no library of collectives.
  static std::shared_ptr<DeviceGroup> of(const std::shared_ptr<Driver>& driver);
  ~DeviceGroup() override;

  /// A device's place in it, which the device has as long as it lives. It waits at its end until the collectives that
  /// its GPU was given are done; with the last device of a GPU its connections are undone.
  class Seat {
   public:
    /// Null: the device is in none.
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
  /// Errors, given to `done`: InvalidArgument for members' values of different shapes; what the driver and the library
  /// say.
  void arrive(KernelContext& context, AsyncKernel::Done done);

 private:
  /// Connected devices. A step that has used them keeps this, whatever becomes of the connection.
  struct Communicators {
    explicit Communicators(std::vector<int> of) : devices(std::move(of)) {}

    const std::vector<int> devices;
    int refusals = 0;  ///< by the library, one after the other: under the group's mutex
    std::mutex mutex;  ///< of what follows; taken behind the group's
    CommunicatorsHandle handle = CommunicatorsHandle::none;  ///< none: they are not connected, or no longer
    Status failure;                                          ///< that ended the connection,
    std::uint64_t fails_from = std::numeric_limits<std::uint64_t>::max();  ///< and this collective and later ones
  };
  using Used = std::list<std::shared_ptr<Communicators>>;
  using Time = std::chrono::steady_clock::time_point;

  /// Of a GPU; devices on it share it.
  struct MemberStream {
    int seats = 0;
    StreamHandle stream = StreamHandle::none;
    EventHandle passed = EventHandle::none;  ///< by what was issued to the stream last
    bool is_recorded = true;                 ///< it says so
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
  mutable std::mutex mutex_;  ///< held while a collective is issued, so that all devices get all in one order
  Used used_;                 ///< the last used first
  std::map<int, MemberStream> streams_;  ///< by the driver's number of the GPU
  std::uint64_t last_number_ = 0;
  Counts counts_;
};

}  // namespace dflow::cuda
