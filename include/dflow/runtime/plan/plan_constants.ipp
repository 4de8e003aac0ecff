#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/device_memory.hpp>
#include <dflow/runtime/plan/plan_constants.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace dflow {

DeviceConstants::Key DeviceConstants::key_of(const DeviceContext& device, const AnyTensor& host) {
  return {&device, host.buffer().get(), host.raw_data(), host.dtype(), host.shape()};
}

DeviceConstants::Ref DeviceConstants::find(const DeviceContext& device, const AnyTensor& host) const {
  const std::lock_guard lock(mutex_);
  const auto found = copies_.find(key_of(device, host));
  return found == copies_.end() ? nullptr : found->second.lock();
}

DeviceConstants::Ref DeviceConstants::keep(const DeviceContext& device, Ref copy) {
  if (!copy->host.buffer()) return copy;  // no elements: no address to know it by, and nothing to save
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Copy>& kept = copies_[key_of(device, copy->host)];
  if (Ref earlier = kept.lock()) return earlier;
  kept = copy;
  if (copies_.size() >= sweep_at_) {
    std::erase_if(copies_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(16, 2 * copies_.size());
  }
  return copy;
}

std::size_t DeviceConstants::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(copies_.begin(), copies_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

namespace detail {

/// Copies on their way into a device's memory; shared by the waiting thread and the completions of the copies.
class CopiesUnderWay {
 public:
  explicit CopiesUnderWay(std::size_t count) : here_(count), outstanding_(count) {}

  void arrive(std::size_t i, Status status, AnyTensor tensor) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    if (!status.ok()) {
      failed_ = static_cast<std::ptrdiff_t>(i);
      return end(std::move(status));
    }
    here_[i] = std::move(tensor);
    if (--outstanding_ == 0) end(Status());
  }
  void give_up(Status status) {
    const std::lock_guard lock(mutex_);
    if (!is_over_) end(std::move(status));
  }
  PoolEvent& ended() noexcept { return ended_; }

  // After the end.
  const Status& status() const noexcept { return status_; }
  std::ptrdiff_t failed() const noexcept { return failed_; }
  AnyTensor take(std::size_t i) { return std::move(here_[i]); }

 private:
  void end(Status status) {
    is_over_ = true;
    status_ = std::move(status);
    ended_.set();
  }

  std::mutex mutex_;
  std::vector<AnyTensor> here_;
  std::size_t outstanding_;
  bool is_over_ = false;
  std::ptrdiff_t failed_ = -1;
  Status status_;
  PoolEvent ended_;
};

/// The completion of one copy, which counts as failed if it is dropped.
class CopyArrival {
 public:
  CopyArrival(std::shared_ptr<CopiesUnderWay> copies, std::size_t i) : copies_(std::move(copies)), i_(i) {}
  CopyArrival(CopyArrival&&) noexcept = default;
  CopyArrival& operator=(CopyArrival&&) = delete;
  ~CopyArrival() {
    if (copies_ != nullptr) (*this)(Status::internal("the device's memory has dropped a copy"), AnyTensor());
  }
  void operator()(Status status, AnyTensor tensor) {
    if (const auto copies = std::exchange(copies_, nullptr)) copies->arrive(i_, std::move(status), std::move(tensor));
  }

 private:
  std::shared_ptr<CopiesUnderWay> copies_;
  std::size_t i_;
};

/// Blocks until the copies are there or are given up.
void wait_for_copies(const std::shared_ptr<CopiesUnderWay>& copies, ThreadPool& pool, const CopyLimits& limits) {
  if (copies->ended().is_set()) return;
  std::optional<TimerId> timer;
  if (limits.clock != nullptr && limits.deadline != Clock::never) {
    const auto give_up = [copies] { copies->give_up(Status::deadline_exceeded("the step's deadline has passed")); };
    if (limits.clock->now() >= limits.deadline) return give_up();
    timer = limits.clock->schedule_at(limits.deadline, give_up);
  }
  {
    const std::stop_callback on_stop(limits.stop,
                                     [&copies] { copies->give_up(Status::cancelled("stop was requested")); });
    pool.wait(copies->ended());
  }
  if (timer) limits.clock->cancel(*timer);
}

BroughtConstants bring_constants(const DeviceContext& device, std::span<const AnyTensor> hosts, DeviceConstants* shared,
                                 const CopyLimits& limits) {
  BroughtConstants brought;
  brought.constants.resize(hosts.size());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (shared != nullptr) brought.constants[i] = shared->find(device, hosts[i]);
    if (brought.constants[i] == nullptr) missing.push_back(i);
  }
  if (missing.empty()) return brought;
  const auto copies = std::make_shared<CopiesUnderWay>(missing.size());
  for (std::size_t m = 0; m < missing.size(); ++m)
    device.memory->copy_in_async(hosts[missing[m]], CopyArrival(copies, m));
  wait_for_copies(copies, *device.pool, limits);
  brought.status = copies->status();
  if (!brought.status.ok()) {
    if (copies->failed() >= 0)
      brought.failed = static_cast<std::ptrdiff_t>(missing[static_cast<std::size_t>(copies->failed())]);
    return brought;
  }
  for (std::size_t m = 0; m < missing.size(); ++m) {
    const AnyTensor& host = hosts[missing[m]];
    auto copy = std::make_shared<const DeviceConstants::Copy>(DeviceConstants::Copy{host, copies->take(m)});
    brought.constants[missing[m]] = shared == nullptr ? std::move(copy) : shared->keep(device, std::move(copy));
  }
  return brought;
}

}  // namespace detail
}  // namespace dflow
