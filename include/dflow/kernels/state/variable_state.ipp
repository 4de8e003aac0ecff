#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/variable_state.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace dflow {

DFLOW_INLINE std::string VariableState::debug_string() const {
  return str_cat("Variable '", name_, "' (", dflow::name(dtype_), shape_.to_string(), ")");
}

DFLOW_INLINE bool VariableState::is_initialized() const {
  const std::lock_guard lock(mutex_);
  return value_.is_initialized();
}

DFLOW_INLINE void VariableState::require_value() const {
  if (value_.is_initialized()) return;
  throw Error(failed_precondition(str_cat("variable '", name_, "' has not been initialized")));
}

DFLOW_INLINE AnyTensor VariableState::read() const {
  const std::lock_guard lock(mutex_);
  require_value();
  return value_;
}

DFLOW_INLINE void VariableState::assign(AnyTensor value) {
  // The old value is freed after the lock is released.
  const std::lock_guard lock(mutex_);
  std::swap(value_, value);
}

DFLOW_INLINE VariableUpdate::VariableUpdate(std::initializer_list<VariableState*> variables) : size_(variables.size()) {
  std::copy(variables.begin(), variables.end(), variables_.begin());
  locked_ = variables_;
  const auto end = locked_.begin() + static_cast<std::ptrdiff_t>(size_);
  std::sort(locked_.begin(), end, std::less<>());
  if (std::adjacent_find(locked_.begin(), end) != end) {
    throw Error(invalid_argument("one variable is given twice to the same update"));
  }
  for (std::size_t i = 0; i < size_; ++i) locked_[i]->mutex_.lock();
  try {
    for (std::size_t i = 0; i < size_; ++i) variables_[i]->require_value();
  } catch (...) {
    unlock(size_);
    throw;
  }
}

DFLOW_INLINE VariableUpdate::~VariableUpdate() { unlock(size_); }

DFLOW_INLINE void VariableUpdate::unlock(std::size_t count) noexcept {
  while (count-- > 0) locked_[count]->mutex_.unlock();
}

DFLOW_INLINE AnyTensor& VariableUpdate::writable(std::size_t i, Allocator& allocator) {
  AnyTensor& value = variables_[i]->value_;
  if (!value.buffer_is_unique()) value = value.deep_copy(allocator);
  return value;
}

}  // namespace dflow
