#pragma once

#include <dflow/core/memory/allocator.hpp>
#include <dflow/core/savable_resource.hpp>
#include <dflow/core/shape.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

/// The state that a MutableHashTable or HashTable node keeps across steps: values, tensors of one shape, by key.
///
/// Thread safety: all functions may be called from any thread; each is done whole before the next one that changes the
/// table.
/// Errors: InvalidArgument for other element types or shapes.
class LookupTableState final : public SavableResource {
 public:
  struct Kind {
    DType key = DType::invalid;    ///< int32, int64, string
    DType value = DType::invalid;  ///< any
    Shape value_shape;
    bool is_mutable = true;  ///< else it is filled once

    friend bool operator==(const Kind&, const Kind&) = default;
  };

  LookupTableState(std::string name, const Kind& kind);
  ~LookupTableState() override;

  const Kind& kind() const noexcept { return kind_; }
  std::string debug_string() const override;
  /// Whether it has been filled, and how many keys it has: int64 [2]; the keys; the values, flat.
  std::vector<AnyTensor> saved_state() const override;
  void restore_state(std::span<const AnyTensor> state) override;

  /// keys [k...], default_value [value shape] -> [k..., value shape]. Errors also: FailedPrecondition before it is
  /// filled.
  AnyTensor find(const AnyTensor& keys, const AnyTensor& default_value, Allocator& allocator) const;
  /// keys [k...], values [k..., value shape]; the last one of a key counts. Errors also: Unimplemented unless mutable.
  /// Out of memory the first ones may be in.
  void insert(const AnyTensor& keys, const AnyTensor& values);
  void remove(const AnyTensor& keys);
  /// Replaces all entries with the given ones, or, unless mutable, fills the table. Errors also, unless mutable:
  /// FailedPrecondition for a key with two values, or if it has been filled with other entries. Nothing is changed
  /// then.
  void import(const AnyTensor& keys, const AnyTensor& values);
  /// keys [n], values [n, value shape]. Errors also: FailedPrecondition before it is filled.
  std::pair<AnyTensor, AnyTensor> export_all(Allocator& allocator) const;
  std::int64_t size() const;

 private:
  struct State;
  class Rows;

  void check_keys(const AnyTensor& keys) const;
  void check_values(const AnyTensor& keys, const AnyTensor& values) const;

  const std::string name_;
  const Kind kind_;
  const std::unique_ptr<State> state_;
};

}  // namespace dflow
