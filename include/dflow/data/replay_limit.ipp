#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/replay_limit.hpp>

namespace dflow::data {

namespace detail {

[[noreturn]] void reject_replay(std::uint64_t most) {
  throw_error(
      Status::invalid_argument(str_cat("data: to restore this state more than ", most,
                                       " elements would have to be read again; limit_restoring allows for more")));
}

}  // namespace detail

void ReplayLimit::begin(std::uint64_t most) {
  const std::lock_guard lock(mutex_);
  left_.store(most, std::memory_order_relaxed);
  most_ = most;
  is_exceeded_ = false;
  is_on_.store(true, std::memory_order_relaxed);
}

void ReplayLimit::end() {
  const std::lock_guard lock(mutex_);
  is_on_.store(false, std::memory_order_relaxed);
  if (is_exceeded_) detail::reject_replay(most_);
}

void ReplayLimit::count_more(std::uint64_t elements) {
  std::uint64_t left = left_.load(std::memory_order_relaxed);
  while (elements <= left) {
    if (left_.compare_exchange_weak(left, left - elements, std::memory_order_relaxed)) return;
  }
  const std::lock_guard lock(mutex_);
  if (!is_on()) return;  // it has just ended
  if (lender_ == nullptr) {
    is_exceeded_ = true;
    detail::reject_replay(most_);
  }
  try {
    lender_->count(elements);
  } catch (...) {
    is_exceeded_ = true;
    throw;
  }
}

LentReplayLimit::LentReplayLimit(ReplayLimit& borrower, ReplayLimit& lender) : borrower_(borrower) {
  const std::lock_guard lock(borrower_.mutex_);
  borrower_.is_exceeded_ = false;
  if (!lender.is_on()) return;
  borrower_.left_.store(0, std::memory_order_relaxed);
  borrower_.lender_ = &lender;
  borrower_.is_on_.store(true, std::memory_order_relaxed);
}

LentReplayLimit::~LentReplayLimit() {
  const std::lock_guard lock(borrower_.mutex_);
  borrower_.lender_ = nullptr;
  borrower_.is_on_.store(false, std::memory_order_relaxed);
}

bool LentReplayLimit::is_exceeded() const {
  const std::lock_guard lock(borrower_.mutex_);
  return borrower_.is_exceeded_;
}

}  // namespace dflow::data
