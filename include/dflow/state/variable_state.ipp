#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/base/threads/wait_word.hpp>
#include <dflow/state/variable_state.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace dflow {

std::string VariableState::debug_string() const {
  return str_cat("Variable '", name_, "' (", dtype_name(dtype_), shape_.to_string(), ")");
}

bool VariableState::is_initialized() const {
  const detail::SpinGuard guard(lock_);
  return value_.is_initialized();
}

namespace detail {

/// A small variable is declared so in a graph: its value may be larger all the same.
void check_is_brief(const AnyTensor& value) {
  constexpr std::size_t large_bytes = std::size_t{1} << 20;
  if (value.is_initialized() && value.bytes() > large_bytes) NoWaiting::check();
}

}  // namespace detail

void VariableState::lock_updates() {
  if (update_lock_.try_lock()) return;
  detail::NoWaiting::check();
  update_lock_.lock();
}

void VariableState::reject_uninitialized() const {
  throw_error(Status::failed_precondition(
      str_cat("variable '", name_, "' has not been initialized: run initialize_variables, or restore it")));
}

void VariableState::reject_value(const AnyTensor& value) const {
  throw_error(Status::invalid_argument(str_cat(debug_string(), " cannot be assigned a value of type ",
                                               dtype_name(value.dtype()), " and shape ", value.shape().to_string())));
}

AnyTensor VariableState::read_value(bool& has_any_shape) const {
  AnyTensor value;
  for (;;) {
    {
      const detail::SpinGuard guard(lock_);
      // Acquires the data that an update has written in place.
      std::uint32_t writing = writing_.load(std::memory_order_acquire);
      if (writing != nothing) copies_due_ = copies_after_read;
      if (writing == nothing || writing == a_copy) {
        value = value_;
        has_any_shape = has_any_shape_;
        break;
      }
      // The update may end at any moment, without the lock.
      if (writing == in_place) writing_.compare_exchange_strong(writing, in_place_awaited, std::memory_order_relaxed);
    }
    detail::NoWaiting::check();
    wait_while_equal(writing_, in_place_awaited);
  }
  if (!value.is_initialized()) reject_uninitialized();
  detail::check_is_brief(value);
  return value;
}

AnyTensor VariableState::read() const {
  bool has_any_shape = false;
  return read_value(has_any_shape);
}

AnyTensor VariableState::read(const PartialShape& wanted) const {
  bool has_any_shape = false;
  AnyTensor value = read_value(has_any_shape);
  if (!wanted.is_compatible_with(value.shape()) && !has_any_shape) {
    throw_error(
        Status::failed_precondition(str_cat("variable '", name_, "' holds a value of shape ", value.shape().to_string(),
                                            ", which is read as ", wanted.to_string())));
  }
  return value;
}

void VariableState::assign(AnyTensor value) {
  if (value.dtype() != dtype_ || !shape_.is_compatible_with(value.shape())) reject_value(value);
  replace(value, false);
}

void VariableState::assign_first(AnyTensor value) {
  if (value.dtype() != dtype_ || !shape_.is_compatible_with(value.shape())) reject_value(value);
  lock_updates();
  const std::lock_guard lock(update_lock_, std::adopt_lock);
  const detail::SpinGuard guard(lock_);
  if (!value_.is_initialized()) std::swap(value_, value);
}

void VariableState::assign_any_shape(AnyTensor value) {
  if (value.dtype() != dtype_) reject_value(value);
  replace(value, true);
}

/// The old value goes to the caller, to be freed after the locks are released.
void VariableState::replace(AnyTensor& value, bool has_any_shape) {
  lock_updates();
  const std::lock_guard lock(update_lock_, std::adopt_lock);
  const detail::SpinGuard guard(lock_);
  std::swap(value_, value);
  has_any_shape_ = has_any_shape;
}

VariableUpdate::VariableUpdate(std::initializer_list<VariableState*> variables) : size_(variables.size()) {
  if (size_ > max_size) {
    throw_error(Status::invalid_argument(
        str_cat("an update of ", size_, " variables; at most ", max_size, " can be held at once")));
  }
  std::copy(variables.begin(), variables.end(), few_.begin());
  few_locked_ = few_;
  const auto end = few_locked_.begin() + static_cast<std::ptrdiff_t>(size_);
  std::sort(few_locked_.begin(), end, std::less<>());
  if (std::adjacent_find(few_locked_.begin(), end) != end) {
    throw_error(Status::invalid_argument("one variable is given twice to the same update"));
  }
  lock();
  try {
    for (std::size_t i = 0; i < size_; ++i) require_value(i);
  } catch (...) {
    unlock(size_);
    throw;
  }
}

VariableUpdate::VariableUpdate(std::span<VariableState* const> variables)
    : many_(variables.begin(), variables.end()), many_locked_(many_) {
  std::sort(many_locked_.begin(), many_locked_.end(), std::less<>());
  many_locked_.erase(std::unique(many_locked_.begin(), many_locked_.end()), many_locked_.end());
  lock();
}

VariableUpdate::~VariableUpdate() {
  for (VariableState* const variable : locked()) publish(*variable);
  unlock(locked().size());
}

void VariableUpdate::lock() {
  std::size_t num_locked = 0;
  try {
    for (VariableState* const variable : locked()) {
      variable->lock_updates();
      ++num_locked;
    }
  } catch (...) {
    unlock(num_locked);
    throw;
  }
}

void VariableUpdate::unlock(std::size_t count) noexcept {
  while (count-- > 0) locked()[count]->update_lock_.unlock();
}

void VariableUpdate::require_value(std::size_t i) const {
  const VariableState& variable = *variables()[i];
  if (!variable.value_.is_initialized()) variable.reject_uninitialized();
  detail::check_is_brief(variable.value_);
}

AnyTensor& VariableUpdate::writable(std::size_t i, Allocator& allocator) {
  return writable(i, [&](const AnyTensor& value) { return value.deep_copy(allocator); });
}

AnyTensor& VariableUpdate::writable(std::size_t i, FunctionRef<AnyTensor(const AnyTensor&)> copy) {
  VariableState& variable = *variables()[i];
  if (variable.next_.is_initialized()) return variable.next_;
  {
    const detail::SpinGuard guard(variable.lock_);
    if (variable.writing_.load(std::memory_order_relaxed) >= VariableState::in_place) return variable.value_;
    if (variable.copies_due_ == 0 && variable.value_.buffer_is_unique()) {
      variable.writing_.store(VariableState::in_place, std::memory_order_relaxed);
      return variable.value_;
    }
    variable.writing_.store(VariableState::a_copy, std::memory_order_relaxed);
  }
  variable.next_ = copy(variable.value_);
  return variable.next_;
}

void VariableUpdate::publish(VariableState& variable) noexcept {
  if (variable.writing_.load(std::memory_order_relaxed) == VariableState::nothing) return;
  if (variable.next_.is_initialized()) {
    const detail::SpinGuard guard(variable.lock_);
    std::swap(variable.value_, variable.next_);
    if (variable.copies_due_ > 0) --variable.copies_due_;
  }
  variable.next_.reset();
  const std::uint32_t was = variable.writing_.exchange(VariableState::nothing, std::memory_order_release);
  if (was == VariableState::in_place_awaited) wake_all(variable.writing_);
}

}  // namespace dflow
