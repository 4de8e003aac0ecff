#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/core/partial_shape.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dflow {

/// The name of a function, as the attribute of an op that calls it.
struct FunctionName {
  std::string name;

  friend bool operator==(const FunctionName&, const FunctionName&) = default;
};

/// One attribute of a node in its erased form, as it stands in a GraphDef. Integers are 64 bit, reals are double; an
/// op's `Attrs` struct narrows them with a range check. An enumerator is written as its name (`"SAME"`).
///
/// Thread safety: a value type; distinct objects may be used from distinct threads.
using AttrValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, DType, PartialShape, AnyTensor,
                               std::vector<bool>, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, std::vector<DType>, std::vector<PartialShape>, FunctionName>;

/// The kind of value in an `AttrValue`; the numbers are the variant's indices and part of the GraphDef format.
enum class AttrKind : std::uint8_t {
  none = 0,
  boolean,
  integer,
  real,
  string,
  dtype,
  shape,
  tensor,
  boolean_list,
  integer_list,
  real_list,
  string_list,
  dtype_list,
  shape_list,
  function,
};

inline AttrKind kind_of(const AttrValue& value) noexcept { return static_cast<AttrKind>(value.index()); }

/// "int", "list(shape)", ... as error messages print it.
std::string_view attr_kind_name(AttrKind kind) noexcept;

/// Equality by value; tensors compare by type, shape and bytes, reals bit by bit.
bool attr_equal(const AttrValue& a, const AttrValue& b);

/// A hash that agrees with `attr_equal`.
std::uint64_t attr_hash(const AttrValue& value);

/// The value as error messages and listings print it; long lists and tensors are cut.
std::string attr_to_string(const AttrValue& value);

/// One field of an op's `Attrs` struct, made by `op/attrs_reflection.hpp`.
struct AttrField {
  std::string_view name;
  AttrKind kind;
  std::uint8_t number;  ///< among the struct's fields
  const void* (*address)(const void* attrs, std::size_t number) noexcept;
  AttrValue (*read)(const void* field);
  void (*write)(void* field, std::string_view name, const AttrValue& value);

  AttrValue get(const void* attrs) const { return read(address(attrs, number)); }
  /// Throws InvalidArgument if the value is of another kind or out of the field's range.
  void set(void* attrs, const AttrValue& value) const { write(const_cast<void*>(address(attrs, number)), name, value); }
};

}  // namespace dflow
