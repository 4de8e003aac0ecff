#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/graph/op_def.hpp>

#include <array>
#include <string_view>

namespace dflow {

/// Stands for the element type of an op's type parameter `I` in `In<...>` and `Out<...>`.
template <std::uint8_t I>
struct TypeParam {};

/// Any number of edges of one element type, the type parameter's.
template <class Param>
struct List {};

/// Any number of edges of any element types.
struct AnyList {};

/// A handle to state that lives across steps: a variable, a queue.
struct ResourceHandle {};

template <class... Args>
struct In {};
template <class... Args>
struct Out {};

namespace detail {

template <class Arg>
struct ArgOf;
template <std::uint8_t I>
struct ArgOf<TypeParam<I>> {
  static constexpr ArgDef value{ArgDef::Kind::param, DType::invalid, I};
};
template <std::uint8_t I>
struct ArgOf<List<TypeParam<I>>> {
  static constexpr ArgDef value{ArgDef::Kind::param_list, DType::invalid, I};
};
template <>
struct ArgOf<AnyList> {
  static constexpr ArgDef value{ArgDef::Kind::any_list, DType::invalid, 0};
};
template <>
struct ArgOf<ResourceHandle> {
  static constexpr ArgDef value{ArgDef::Kind::fixed, DType::resource, 0};
};
template <Element T>
struct ArgOf<T> {
  static constexpr ArgDef value{ArgDef::Kind::fixed, dtype_of<T>, 0};
};

template <class Signature>
struct ArgsOf;
template <template <class...> class Signature, class... Args>
struct ArgsOf<Signature<Args...>> {
  static constexpr std::array<ArgDef, sizeof...(Args)> value{ArgOf<Args>::value...};
};

}  // namespace detail

}  // namespace dflow
