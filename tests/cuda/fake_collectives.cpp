#include "cuda/fake_collectives.hpp"

#include "cuda/fake_driver.hpp"

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>

#include <cstring>
#include <set>
#include <utility>

namespace dflow::testing {

using cuda::CollectiveCall;
using cuda::CollectiveMember;
using cuda::CommunicatorsHandle;
using cuda::ErrorCode;
using cuda::MemoryUse;

namespace {

using ReducedTypes =
    TypeList<float, double, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;

/// The memory that a member reads and writes.
std::vector<MemoryUse> uses_of(const CollectiveCall& call, std::size_t members, const CollectiveMember& member) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  std::vector<MemoryUse> uses;
  if (member.from != nullptr) uses.push_back({member.from, bytes, false});
  const bool is_kept = call.kind == CollectiveKind::broadcast && member.from == member.to;
  if (!is_kept) uses.push_back({member.to, call.kind == CollectiveKind::gather ? bytes * members : bytes, true});
  return uses;
}

/// As in a ring, the sum of each element begins at another member.
template <class T>
void reduce(const CollectiveCall& call, const std::vector<CollectiveMember>& members) {
  std::vector<T> results(call.count);
  const std::size_t n = members.size();
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto value = [&](std::size_t m) { return static_cast<const T*>(members[(m + i) % n].from)[i]; };
    T result = value(0);
    for (std::size_t m = 1; m < n; ++m) {
      result = static_cast<T>(call.kind == CollectiveKind::sum ? result + value(m) : result * value(m));
    }
    results[i] = result;
  }
  for (const CollectiveMember& member : members) std::memcpy(member.to, results.data(), call.count * sizeof(T));
}

void compute(const CollectiveCall& call, const std::vector<CollectiveMember>& members) {
  const std::size_t bytes = call.count * size_of(call.dtype);
  if (call.kind == CollectiveKind::broadcast) {
    for (const CollectiveMember& member : members) {
      if (member.to != members.front().from) std::memcpy(member.to, members.front().from, bytes);
    }
  } else if (call.kind == CollectiveKind::gather) {
    for (const CollectiveMember& member : members) {
      for (std::size_t m = 0; m < members.size(); ++m) {
        std::memcpy(static_cast<std::byte*>(member.to) + m * bytes, members[m].from, bytes);
      }
    }
  } else {
    visit_dtype<ReducedTypes>(call.dtype, [&]<class T>() { reduce<T>(call, members); });
  }
}

}  // namespace

void FakeCollectives::refuse(ErrorCode code, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  refusal_ = code;
  refusals_to_come_ = times;
}
void FakeCollectives::set_between(UniqueFunction<void()> between) {
  const std::lock_guard lock(mutex_);
  between_ = std::move(between);
}
void FakeCollectives::fail_member(std::size_t member, ErrorCode code) {
  const std::lock_guard lock(mutex_);
  failing_member_ = {member, code};
}
void FakeCollectives::fail_later(ErrorCode code) {
  const std::lock_guard lock(mutex_);
  later_ = code;
}
std::vector<CollectiveCall> FakeCollectives::issued() const {
  const std::lock_guard lock(mutex_);
  return issued_;
}
std::uint64_t FakeCollectives::num_made() const {
  const std::lock_guard lock(mutex_);
  return num_made_;
}
std::uint64_t FakeCollectives::num_aborted() const {
  const std::lock_guard lock(mutex_);
  return num_aborted_;
}
std::uint64_t FakeCollectives::num_refused() const {
  const std::lock_guard lock(mutex_);
  return num_refused_;
}
std::size_t FakeCollectives::num_alive() const {
  const std::lock_guard lock(mutex_);
  return alive_.size();
}

bool FakeCollectives::can_reduce(DType dtype) const noexcept { return in_mask(dtype, dtype_mask<ReducedTypes>); }

ErrorCode FakeCollectives::make_communicators(std::span<const int> devices, CommunicatorsHandle& communicators,
                                              std::string& why) noexcept {
  for (const int device : devices) {
    if (const ErrorCode code = driver_.count_call(device); code != ErrorCode::ok) return code;
  }
  if (std::set<int>(devices.begin(), devices.end()).size() != devices.size()) {
    driver_.report("communicators are made for one device twice");
  }
  const std::lock_guard lock(mutex_);
  if (refusal_ != ErrorCode::ok && refusals_to_come_ != 0) {
    --refusals_to_come_;
    ++num_refused_;
    why = "this library connects nothing";
    return refusal_;
  }
  const std::uintptr_t handle = next_handle_++;
  alive_[handle].devices.assign(devices.begin(), devices.end());
  ++num_made_;
  communicators = static_cast<CommunicatorsHandle>(handle);
  return ErrorCode::ok;
}

FakeCollectives::Communicators* FakeCollectives::find(CommunicatorsHandle communicators) {
  const auto found = alive_.find(static_cast<std::uintptr_t>(communicators));
  return found == alive_.end() ? nullptr : &found->second;
}

ErrorCode FakeCollectives::destroy_communicators(CommunicatorsHandle communicators, bool aborts) noexcept {
  const std::lock_guard ordered(order_);
  std::vector<std::shared_ptr<FakeGroupCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    Communicators* const found = find(communicators);
    if (found == nullptr) {
      driver_.report("communicators are destroyed that there are not");
      return ErrorCode::invalid_handle;
    }
    calls = std::move(found->calls);
    alive_.erase(static_cast<std::uintptr_t>(communicators));
    num_aborted_ += aborts ? 1 : 0;
  }
  if (!driver_.end_group_calls(calls, aborts)) driver_.report("communicators are destroyed while they compute");
  return ErrorCode::ok;
}

ErrorCode FakeCollectives::check_communicators(CommunicatorsHandle communicators, std::string& why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const Communicators* const found = find(communicators);
    if (found == nullptr) {
      driver_.report("communicators are asked that there are not");
      return ErrorCode::invalid_handle;
    }
    if (later_ != ErrorCode::ok) {
      why = "a member was lost";
      return std::exchange(later_, ErrorCode::ok);
    }
  }
  return driver_.count_call(0);
}

ErrorCode FakeCollectives::run_collective(CommunicatorsHandle communicators, const CollectiveCall& call,
                                          std::span<const CollectiveMember> members, std::string& why) noexcept {
  const std::lock_guard ordered(order_);
  std::vector<int> devices;
  const auto together = std::make_shared<FakeGroupCall>();
  together->num_members = members.size();
  UniqueFunction<void()> between;
  std::pair<std::size_t, ErrorCode> failing;
  {
    const std::lock_guard lock(mutex_);
    Communicators* const found = find(communicators);
    if (found == nullptr) {
      driver_.report("a collective is computed by communicators that there are not");
      return ErrorCode::invalid_handle;
    }
    devices = found->devices;
    found->calls.push_back(together);
    issued_.push_back(call);
    between = std::move(between_);
    failing = std::exchange(failing_member_, {0, ErrorCode::ok});
  }
  if (devices.size() != members.size()) {
    driver_.report("a collective has not one member for each communicator");
    return ErrorCode::invalid_value;
  }
  const bool reduces = call.kind == CollectiveKind::sum || call.kind == CollectiveKind::product;
  if (call.count == 0 || (reduces && !can_reduce(call.dtype))) {
    driver_.report("a collective is of nothing, or of elements that are not added");
    return ErrorCode::invalid_value;
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    const bool has_value = call.kind != CollectiveKind::broadcast || m == 0;
    if ((members[m].from != nullptr) != has_value) driver_.report("a member has no value, or one that is not read");
    UniqueFunction<void()> work;
    if (m == 0) {
      work = [call, all = std::vector<CollectiveMember>(members.begin(), members.end())] { compute(call, all); };
    }
    ErrorCode code = failing.first == m ? failing.second : ErrorCode::ok;
    if (code == ErrorCode::ok) {
      code = driver_.issue_member(devices[m], members[m].stream, uses_of(call, members.size(), members[m]), together,
                                  std::move(work));
    }
    if (code != ErrorCode::ok) {
      why = "a member could not be issued";
      return code;
    }
    if (m == 0 && between) between();
  }
  return ErrorCode::ok;
}

}  // namespace dflow::testing
