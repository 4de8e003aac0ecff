#pragma once

/// Public: inputs and outputs of an op of your own.

#include <dflow/base/fixed_string.hpp>
#include <dflow/base/type_list.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/graph/op_def.hpp>
#include <dflow/op/attrs_reflection.hpp>

#include <array>
#include <span>
#include <string_view>

namespace dflow {

/// Stands for the element type of an op's type parameter `I` in `In<...>` and `Out<...>`.
template <std::uint8_t I>
struct TypeParam {};

/// Edges of one element type: the type parameter's, or a fixed one. An op may have one open `List` or `AnyList` among
/// its inputs; its length is the rest that the other inputs leave. It may have one open list among its outputs; the
/// op's `output_list_size` gives its length. Any number of other lists name the integer attribute that is their length:
///
/// ```cpp
/// struct Attrs { std::int64_t N = 1; std::vector<df::DType> Tcomponents; };
/// using Inputs = df::In<df::List<T, "N">, df::List<float, "N">, df::TypedList<"Tcomponents">, df::List<U>>;
/// using Outputs = df::Out<df::TypedList<"Tcomponents">>;
/// ```
template <class Param, FixedString length = "">
struct List {};

/// Any number of edges of any element types; inputs only.
struct AnyList {};

/// One edge for each element type in the attribute named `dtypes`, a `std::vector<DType>`.
template <FixedString dtypes>
struct TypedList {};

/// A handle to state that lives across steps: a variable, a queue.
struct ResourceHandle {};
/// A list of tensors; a value, as tensors are.
struct TensorListHandle {};

template <class... Args>
struct In {};
template <class... Args>
struct Out {};

namespace detail {

/// The spelling of an argument: the attribute's name, and its definition without the attribute's position.
template <class Arg>
struct ArgOf;
template <std::uint8_t I>
struct ArgOf<TypeParam<I>> {
  static constexpr ArgDef value{ArgDef::Kind::param, DType::invalid, I};
};
template <std::uint8_t I, FixedString length>
struct ArgOf<List<TypeParam<I>, length>> {
  static constexpr ArgDef value{ArgDef::Kind::param_list, DType::invalid, I};
  static constexpr std::string_view attr = length.view();
  static constexpr AttrKind attr_kind = AttrKind::integer;
};
template <Element T, FixedString length>
struct ArgOf<List<T, length>> {
  static constexpr ArgDef value{ArgDef::Kind::fixed_list, dtype_of<T>, 0};
  static constexpr std::string_view attr = length.view();
  static constexpr AttrKind attr_kind = AttrKind::integer;
};
template <FixedString dtypes>
struct ArgOf<TypedList<dtypes>> {
  static constexpr ArgDef value{ArgDef::Kind::typed_list, DType::invalid, 0};
  static constexpr std::string_view attr = dtypes.view();
  static constexpr AttrKind attr_kind = AttrKind::dtype_list;
};
template <>
struct ArgOf<AnyList> {
  static constexpr ArgDef value{ArgDef::Kind::any_list, DType::invalid, 0};
};
template <>
struct ArgOf<ResourceHandle> {
  static constexpr ArgDef value{ArgDef::Kind::fixed, DType::resource, 0};
};
template <>
struct ArgOf<TensorListHandle> {
  static constexpr ArgDef value{ArgDef::Kind::fixed, DType::variant, 0};
};
template <Element T>
struct ArgOf<T> {
  static constexpr ArgDef value{ArgDef::Kind::fixed, dtype_of<T>, 0};
};

/// The position of an attribute among an op's fields, or -1.
constexpr int position_of(std::span<const AttrField> fields, std::string_view name, AttrKind kind) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name && fields[i].kind == kind) return static_cast<int>(i);
  }
  return -1;
}

template <class O, class Arg>
constexpr ArgDef arg_of() {
  ArgDef arg = ArgOf<Arg>::value;
  if constexpr (requires { ArgOf<Arg>::attr; }) {
    if constexpr (!ArgOf<Arg>::attr.empty()) {
      constexpr int position =
          position_of(reflect::fields_of<typename O::Attrs>, ArgOf<Arg>::attr, ArgOf<Arg>::attr_kind);
      static_assert(position >= 0, "a list of an op's signature names an attribute that the op does not have");
      arg.attr = static_cast<std::int8_t>(position);
    }
  }
  return arg;
}

/// The arguments of one side of an op's signature.
template <class O, class Signature>
struct ArgsOf;
template <class O, template <class...> class Signature, class... Args>
struct ArgsOf<O, Signature<Args...>> {
  static constexpr std::array<ArgDef, sizeof...(Args)> value{arg_of<O, Args>()...};
  static constexpr int num_open_lists = (0 + ... + static_cast<int>(arg_of<O, Args>().is_open_list()));
};

}  // namespace detail

}  // namespace dflow
