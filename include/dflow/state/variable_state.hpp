#pragma once

/// Public: the value of a variable, on a device of any type.

#include <dflow/base/function_ref.hpp>
#include <dflow/base/threads/flag_lock.hpp>
#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/core/tensor.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace dflow {

/// The value that a Variable node keeps across steps.
///
/// A read shares the buffer and sees the value before or after an update, never a half-written value. An update writes
/// in place if nobody else holds the buffer. Otherwise it writes into a copy, which takes the buffer's place when it
/// is done.
///
/// Thread safety: all functions may be called from any thread. Updates and assignments of one variable wait for each
/// other. A read waits for them in one case only: if it comes while an update writes in place, it waits for that
/// update. The next `copies_after_read` updates then write into copies, so that readers beside them go on with the
/// value before. If steps read and update in turn, as in training by one session, every update stays in place.
/// Errors: FailedPrecondition, naming the variable, if it has no value yet. WouldWait (base/threads/no_waiting.hpp),
/// before anything was done, if a thread that must not be kept would have to wait or meets a large value.
class VariableState final : public Resource {
 public:
  static constexpr int copies_after_read = 64;

  VariableState(std::string name, DType dtype, const PartialShape& shape)
      : name_(std::move(name)), dtype_(dtype), shape_(shape) {}

  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  /// The shape that the values must fit.
  const PartialShape& shape() const noexcept { return shape_; }
  std::string debug_string() const override;

  bool is_initialized() const;
  AnyTensor read() const;
  /// The same for a reader that counts on a shape: variables are found by name, and each graph declares its own shape.
  /// Errors: also FailedPrecondition, naming both shapes, if the value does not fit `wanted` and `assign` took it.
  AnyTensor read(const PartialShape& wanted) const;
  /// The caller hands over a tensor whose buffer nobody will write any more.
  /// Errors: InvalidArgument, naming the variable, if the value's element type or shape is not the variable's. The
  /// variable keeps the value that it had.
  void assign(AnyTensor value);
  /// The same if the variable has no value yet, else nothing. If several threads do so at once, one of them assigns.
  void assign_first(AnyTensor value);
  /// As `assign`, for a value of any shape and of the variable's element type. Readers take the value as it is.
  void assign_any_shape(AnyTensor value);

 private:
  friend class VariableUpdate;

  /// How the current update writes.
  enum Writing : std::uint32_t {
    nothing,
    a_copy,            ///< `value_` may be read
    in_place,          ///< the elements of `value_` are in flux
    in_place_awaited,  ///< the same, and somebody sleeps until it ends
  };

  [[noreturn]] void reject_uninitialized() const;
  [[noreturn]] void reject_value(const AnyTensor& value) const;
  AnyTensor read_value(bool& has_any_shape) const;
  void lock_updates();
  void replace(AnyTensor& value, bool has_any_shape);

  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;

  detail::FlagLock update_lock_;  ///< held during an update or an assignment
  AnyTensor next_;                ///< the copy that an update writes; guarded by `update_lock_`
  /// Held for a few instructions; guards the members below.
  mutable detail::SpinLock lock_;
  AnyTensor value_;  ///< written with both locks held, so read with either
  mutable int copies_due_ = 0;
  /// Becomes anything but `nothing` under the lock. It becomes `nothing` again when the update ends, without the lock.
  mutable std::atomic<std::uint32_t> writing_{nothing};
  bool has_any_shape_ = false;  ///< the shape of `value_` was not checked; guarded as `value_` is
};

/// Holds variables against other updates while it lives, and lends their values. A tensor is written only through
/// `writable`, after everything that can fail.
///
/// ```cpp
/// VariableUpdate update({&var, &accum});
/// void* elements = update.writable(0, allocator).raw_data();
/// ```
///
/// Thread safety: one thread uses it, and must not take part in foreign work meanwhile. All updates lock variables in
/// one order, so two updates cannot wait for each other.
/// Errors: the constructor from a list throws FailedPrecondition if a variable has no value, and InvalidArgument if a
/// variable is given twice or there are more than `max_size`. Both constructors throw WouldWait as `VariableState`
/// does.
class VariableUpdate {
 public:
  static constexpr std::size_t max_size = 4;

  explicit VariableUpdate(std::initializer_list<VariableState*> variables);
  /// Any number of variables, for several updates one after the other. A variable may be given several times, and need
  /// not have a value: `require_value` checks that.
  explicit VariableUpdate(std::span<VariableState* const> variables);
  /// Readers see the written values from here on.
  ~VariableUpdate();
  VariableUpdate(const VariableUpdate&) = delete;
  VariableUpdate& operator=(const VariableUpdate&) = delete;

  /// Errors: FailedPrecondition if the variable has no value; WouldWait, as long as nothing was written.
  void require_value(std::size_t i) const;
  /// One of the variables was given several times.
  bool has_repeated() const noexcept { return many_locked_.size() < many_.size(); }
  const AnyTensor& value(std::size_t i) const noexcept {
    const VariableState& variable = *variables()[i];
    return variable.next_.is_initialized() ? variable.next_ : variable.value_;
  }
  /// The value in a buffer that nobody else reads. Errors: ResourceExhausted; the variable keeps its value then.
  AnyTensor& writable(std::size_t i, Allocator& allocator);
  /// The same; `copy` makes another tensor of the same value, and may throw any error.
  AnyTensor& writable(std::size_t i, FunctionRef<AnyTensor(const AnyTensor&)> copy);

 private:
  std::span<VariableState* const> variables() const noexcept {
    return many_.empty() ? std::span<VariableState* const>(few_.data(), size_) : many_;
  }
  std::span<VariableState* const> locked() const noexcept {
    return many_locked_.empty() ? std::span<VariableState* const>(few_locked_.data(), size_) : many_locked_;
  }
  void lock();
  void publish(VariableState& variable) noexcept;
  void unlock(std::size_t count) noexcept;

  std::array<VariableState*, max_size> few_{};
  std::array<VariableState*, max_size> few_locked_{};  ///< the same variables, in the order of their addresses
  std::size_t size_ = 0;                               ///< of variables in `few_`
  std::vector<VariableState*> many_;                   ///< instead of `few_`
  std::vector<VariableState*> many_locked_;            ///< each variable once, in the order of their addresses
};

}  // namespace dflow
