#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/lifetime.hpp>

#include <mutex>

namespace dflow {

namespace detail {

struct LifetimeCell {
  std::mutex mutex;
  bool is_over = false;
};

bool enter_lifetime(LifetimeCell& cell) noexcept {
  cell.mutex.lock();
  if (!cell.is_over) return true;
  cell.mutex.unlock();
  return false;
}
void leave_lifetime(LifetimeCell& cell) noexcept { cell.mutex.unlock(); }
bool is_lifetime_over(LifetimeCell& cell) noexcept {
  const std::lock_guard lock(cell.mutex);
  return cell.is_over;
}

}  // namespace detail

void Lifetime::begin() {
  if (cell_ == nullptr) cell_ = std::make_shared<detail::LifetimeCell>();
}

void Lifetime::end() noexcept {
  const std::lock_guard lock(cell_->mutex);
  cell_->is_over = true;
}

}  // namespace dflow
