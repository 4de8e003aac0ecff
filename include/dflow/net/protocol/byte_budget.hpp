#pragma once

#include <dflow/base/status.hpp>
#include <dflow/net/protocol/identity.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace dflow::net {

/// Limits the bytes that a task keeps for one client, or for all its clients together. A `ByteCharge` counts the bytes
/// where the task takes the memory.
///
/// Thread safety: safe.
class ByteBudget {
 public:
  /// `of` is named in errors. Bytes that are taken from this budget are taken from `all`, too; null: only here.
  ByteBudget(std::string of, std::uint64_t most, std::shared_ptr<ByteBudget> all = nullptr)
      : of_(std::move(of)), most_(most), all_(std::move(all)) {}

  std::uint64_t most() const noexcept { return most_; }
  std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  /// Errors: ResourceExhausted, and nothing is taken, if more than `most` bytes would be in use.
  Status take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) noexcept;

 private:
  const std::string of_;
  const std::uint64_t most_;
  const std::shared_ptr<ByteBudget> all_;
  std::atomic<std::uint64_t> used_{0};
};

/// The budgets of a task's clients, and of all of them together.
///
/// Thread safety: safe.
class ClientBudgets {
 public:
  /// 0: no limit.
  ClientBudgets(std::uint64_t most_of_client, std::uint64_t most_of_all);

  /// The same for all connections of one start of a client.
  std::shared_ptr<ByteBudget> of(const TaskIdentity& client);
  std::uint64_t used() const noexcept { return all_->used(); }

 private:
  const std::uint64_t most_of_client_;
  const std::shared_ptr<ByteBudget> all_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, std::weak_ptr<ByteBudget>> of_;  ///< by task and incarnation
};

/// Bytes that are taken from a budget, and given back with this object.
///
/// Thread safety: one thread at a time.
class ByteCharge {
 public:
  ByteCharge() = default;
  /// Of no budget, if it is null: then nothing is counted.
  explicit ByteCharge(std::shared_ptr<ByteBudget> budget) noexcept : budget_(std::move(budget)) {}
  ByteCharge(ByteCharge&& other) noexcept : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteCharge& operator=(ByteCharge&& other) noexcept {
    if (this == &other) return *this;
    release();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~ByteCharge() { release(); }

  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Errors: as of `ByteBudget::take`.
  Status add(std::uint64_t bytes) {
    if (budget_ == nullptr) return {};
    Status status = budget_->take(bytes);
    if (status.ok()) bytes_ += bytes;
    return status;
  }
  void release() noexcept {
    if (budget_ != nullptr) budget_->give_back(std::exchange(bytes_, 0));
  }

 private:
  std::shared_ptr<ByteBudget> budget_;
  std::uint64_t bytes_ = 0;
};

}  // namespace dflow::net
