#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/protocol/byte_budget.hpp>

#include <limits>

namespace dflow::net {

Status ByteBudget::take(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > most_ || bytes > most_ - used) {
      return Status::resource_exhausted(str_cat("this task keeps ", used, " bytes for ", of_, ": ", bytes,
                                                " more would be over the limit of ", most_));
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  if (all_ == nullptr) return {};
  Status status = all_->take(bytes);
  if (!status.ok()) used_.fetch_sub(bytes, std::memory_order_relaxed);
  return status;
}

void ByteBudget::give_back(std::uint64_t bytes) noexcept {
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  if (all_ != nullptr) all_->give_back(bytes);
}

namespace detail {
std::uint64_t or_no_limit(std::uint64_t most) { return most == 0 ? std::numeric_limits<std::uint64_t>::max() : most; }
}  // namespace detail

ClientBudgets::ClientBudgets(std::uint64_t most_of_client, std::uint64_t most_of_all)
    : most_of_client_(detail::or_no_limit(most_of_client)),
      all_(std::make_shared<ByteBudget>("all its clients", detail::or_no_limit(most_of_all))) {}

std::shared_ptr<ByteBudget> ClientBudgets::of(const TaskIdentity& client) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<ByteBudget>& known = of_[{client.task, client.incarnation}];
  std::shared_ptr<ByteBudget> budget = known.lock();
  if (budget != nullptr) return budget;
  budget = std::make_shared<ByteBudget>(client.task, most_of_client_, all_);
  known = budget;
  std::erase_if(of_, [](const auto& entry) { return entry.second.expired(); });
  return budget;
}

}  // namespace dflow::net
