#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::testing {

class FakeDriver;

/// A call that several streams compute together. It runs when all of them have come to it, and they wait until then.
struct FakeGroupCall {
  std::size_t num_members = 0;
  std::vector<std::uintptr_t> streams;  ///< that it has been issued to
  bool is_over = false;                 ///< it has run, or will not
};

/// The NCCL of a `FakeDriver`, which checks each call and computes it on the host. It behaves as the library does. It
/// issues to one stream after the other, while other threads may issue more, and adds in an order of its own. When a
/// call fails, the streams that it was issued to wait until the communicators are aborted.
///
/// Thread safety: as Collectives.
class FakeCollectives final : public cuda::Collectives {
 public:
  explicit FakeCollectives(FakeDriver& driver) : driver_(driver) {}

  /// The next `times` attempts to connect devices fail with that error; with ok they are connected.
  void refuse(cuda::ErrorCode code, std::uint64_t times = std::numeric_limits<std::uint64_t>::max());
  /// Called for each collective when the first member has been issued and no other.
  void set_between(UniqueFunction<void()> between);
  /// The next collective fails, once, when its first members have been issued and that member is next.
  void fail_member(std::size_t member, cuda::ErrorCode code);
  /// Issued work is found to have failed, once.
  void fail_later(cuda::ErrorCode code);

  std::vector<cuda::CollectiveCall> issued() const;  ///< in order
  std::uint64_t num_made() const;                    ///< sets of communicators
  std::uint64_t num_aborted() const;
  std::uint64_t num_refused() const;
  std::size_t num_alive() const;

  bool can_reduce(DType dtype) const noexcept override;
  cuda::ErrorCode make_communicators(std::span<const int> devices, cuda::CommunicatorsHandle& communicators,
                                     std::string& why) noexcept override;
  cuda::ErrorCode destroy_communicators(cuda::CommunicatorsHandle communicators, bool aborts) noexcept override;
  cuda::ErrorCode check_communicators(cuda::CommunicatorsHandle communicators, std::string& why) noexcept override;
  cuda::ErrorCode run_collective(cuda::CommunicatorsHandle communicators, const cuda::CollectiveCall& call,
                                 std::span<const cuda::CollectiveMember> members, std::string& why) noexcept override;

 private:
  struct Communicators {
    std::vector<int> devices;
    std::vector<std::shared_ptr<FakeGroupCall>> calls;
  };
  Communicators* find(cuda::CommunicatorsHandle communicators);

  FakeDriver& driver_;
  std::mutex order_;  ///< one collective after the other
  mutable std::mutex mutex_;
  std::uintptr_t next_handle_ = 1;
  std::map<std::uintptr_t, Communicators> alive_;
  std::vector<cuda::CollectiveCall> issued_;
  std::uint64_t num_made_ = 0, num_aborted_ = 0, num_refused_ = 0, refusals_to_come_ = 0;
  cuda::ErrorCode refusal_ = cuda::ErrorCode::ok, later_ = cuda::ErrorCode::ok;
  std::pair<std::size_t, cuda::ErrorCode> failing_member_{0, cuda::ErrorCode::ok};
  UniqueFunction<void()> between_;
};

}  // namespace dflow::testing
