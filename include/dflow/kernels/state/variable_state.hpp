#pragma once

#include <dflow/core/partial_shape.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/core/tensor.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <string>

namespace dflow {

/// What a Variable node keeps across steps.
///
/// A read shares the buffer. An update writes in place if nobody else holds the buffer, else into a copy that takes its
/// place (copy on write): a reader sees the value before or after it and never one half written.
///
/// Thread safety: all functions may be called from any thread; they block on each other, an update for as long as it
/// writes.
/// Errors: FailedPrecondition, naming the variable, if it has no value yet.
class VariableState final : public Resource {
 public:
  VariableState(std::string name, DType dtype, const PartialShape& shape)
      : name_(std::move(name)), dtype_(dtype), shape_(shape) {}

  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  /// What its values' shapes must fit.
  const PartialShape& shape() const noexcept { return shape_; }
  std::string debug_string() const override;

  bool is_initialized() const;
  AnyTensor read() const;
  /// The caller hands over a tensor whose buffer nobody will write any more.
  void assign(AnyTensor value);

 private:
  friend class VariableUpdate;
  void require_value() const;

  const std::string name_;
  const DType dtype_;
  const PartialShape shape_;
  mutable std::mutex mutex_;
  AnyTensor value_;
};

/// Locks up to four variables while it lives and lends their values. A tensor is written only through `writable`, after
/// everything that can fail.
///
/// ```cpp
/// VariableUpdate update({&var, &accum});
/// cpu::apply_momentum(pool, n, Tensor<T>::of(update.writable(0, allocator)).data(), ...);
/// ```
///
/// Thread safety: used by one thread, which must not take part in foreign work meanwhile. Variables are locked in one
/// order everywhere, so two updates cannot wait for each other.
/// Errors: the constructor throws FailedPrecondition if a variable has no value, InvalidArgument if one is given twice.
class VariableUpdate {
 public:
  explicit VariableUpdate(std::initializer_list<VariableState*> variables);
  ~VariableUpdate();
  VariableUpdate(const VariableUpdate&) = delete;
  VariableUpdate& operator=(const VariableUpdate&) = delete;

  const AnyTensor& value(std::size_t i) const noexcept { return variables_[i]->value_; }
  /// The value in a buffer that nobody else holds. Errors: ResourceExhausted; the variable keeps its value then.
  AnyTensor& writable(std::size_t i, Allocator& allocator);

 private:
  static constexpr std::size_t max_size = 4;
  void unlock(std::size_t count) noexcept;

  std::array<VariableState*, max_size> variables_{};
  std::array<VariableState*, max_size> locked_{};  ///< the same, in the order of their addresses
  std::size_t size_ = 0;
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/state/variable_state.ipp>
#endif
