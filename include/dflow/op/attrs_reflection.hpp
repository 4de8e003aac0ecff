#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/shape.hpp>
#include <dflow/graph/attr_value.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Reads the fields of an op's `Attrs` struct, names and all, so that attributes need no declaration beside the struct
/// itself. Names come from the compiler's spelling of a pointer to the field; both GCC and Clang print one.

namespace dflow::reflect {

template <class T>
struct Specimen {
  const T value;
  static const Specimen object;  ///< never defined: only the addresses of its fields are named
};

struct AnyField {
  template <class T>
  constexpr operator T() const noexcept;
};

template <class T, class... Fields>
constexpr std::size_t field_count() {
  if constexpr (requires { T{Fields{}..., AnyField{}}; }) {
    return field_count<T, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

template <class T>
inline constexpr std::size_t num_fields = field_count<std::remove_const_t<T>>();

/// References to all fields of an aggregate, in order.
template <class T>
constexpr auto tie_fields(T& object) {
  constexpr std::size_t n = num_fields<T>;
  static_assert(n <= 10, "an op's Attrs struct may have at most 10 fields");
  if constexpr (n == 0) {
    return std::tuple<>{};
  } else if constexpr (n == 1) {
    auto& [a] = object;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = object;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = object;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = object;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = object;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = object;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
}

template <class P>
struct FieldPointer {
  P pointer;
};
template <class P>
FieldPointer(P) -> FieldPointer<P>;

template <FieldPointer field>
constexpr std::string_view pretty_name() {
  return __PRETTY_FUNCTION__;
}

/// The identifier at the end of "...Attrs::strides)}]" (GCC) or "...value.strides}]" (Clang).
constexpr std::string_view last_identifier(std::string_view text) {
  const auto in_identifier = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
#if !defined(__clang__)
  text = text.substr(0, text.find(';'));  // GCC goes on with the spelling of std::string_view
#endif
  std::size_t end = text.size();
  while (end > 0 && !in_identifier(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && in_identifier(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

#if defined(__CUDACC__)
/// nvcc does not take a pointer to a field as a template argument; device code has no use for names.
template <class T, std::size_t I>
consteval std::string_view field_name_in_device_code() {
  static_assert(sizeof(T) == 0, "the definition of an op is asked for in a unit that nvcc compiles");
  return {};
}
template <class T, std::size_t I>
inline constexpr std::string_view field_name = field_name_in_device_code<T, I>();
#else
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif
template <class T, std::size_t I>
inline constexpr std::string_view field_name =
    last_identifier(pretty_name<FieldPointer{&std::get<I>(tie_fields(Specimen<T>::object.value))}>());
#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#endif

/// An enumeration usable as an attribute: `attr_enum_names(E)` lists its names from enumerator 0 on.
template <class E>
concept NamedEnum = std::is_enum_v<E> && !std::same_as<E, DType> && requires(E e) { attr_enum_names(e)[0]; };

[[noreturn]] void reject_attr(std::string_view field, AttrKind want, const AttrValue& got);
[[noreturn]] void reject_attr_range(std::string_view field, std::int64_t value);
[[noreturn]] void reject_attr_range(std::string_view field, double value);
std::int64_t enum_from_name(std::string_view field, std::span<const std::string_view> names, std::string_view name);

template <class F>
struct Codec;  // an attribute field must be bool, a number, string, enum, DType, shape, tensor, a vector of these, or
               // FunctionName

template <>
struct Codec<bool> {
  static constexpr AttrKind kind = AttrKind::boolean;
  static AttrValue get(bool value) { return value; }
  static bool set(std::string_view, bool value) { return value; }
  using stored = bool;
};
template <std::integral I>
  requires(!std::same_as<I, bool>)
struct Codec<I> {
  static constexpr AttrKind kind = AttrKind::integer;
  using stored = std::int64_t;
  static AttrValue get(I value) { return static_cast<std::int64_t>(value); }
  static I set(std::string_view field, std::int64_t value) {
    if (!std::in_range<I>(value)) {
      // 64-bit unsigned seeds travel as their two's complement.
      if constexpr (!std::same_as<I, std::uint64_t>) reject_attr_range(field, value);
    }
    return static_cast<I>(value);
  }
};
template <std::floating_point F>
struct Codec<F> {
  static constexpr AttrKind kind = AttrKind::real;
  using stored = double;
  static AttrValue get(F value) { return static_cast<double>(value); }
  static F set(std::string_view field, double value) {
    // Infinities and NaNs pass.
    if (value > std::numeric_limits<F>::max() && value <= std::numeric_limits<double>::max())
      reject_attr_range(field, value);
    if (value < std::numeric_limits<F>::lowest() && value >= std::numeric_limits<double>::lowest())
      reject_attr_range(field, value);
    return static_cast<F>(value);
  }
};
template <NamedEnum E>
struct Codec<E> {
  static constexpr AttrKind kind = AttrKind::string;
  using stored = std::string;
  static AttrValue get(E value) { return std::string(attr_enum_names(value)[static_cast<std::size_t>(value)]); }
  static E set(std::string_view field, const std::string& name) {
    return static_cast<E>(enum_from_name(field, attr_enum_names(E{}), name));
  }
};

template <class V, AttrKind k>
struct PlainCodec {
  static constexpr AttrKind kind = k;
  using stored = V;
  static AttrValue get(const V& value) { return value; }
  static V set(std::string_view, const V& value) { return value; }
};
template <>
struct Codec<std::string> : PlainCodec<std::string, AttrKind::string> {};
template <>
struct Codec<DType> : PlainCodec<DType, AttrKind::dtype> {};
template <>
struct Codec<FunctionName> : PlainCodec<FunctionName, AttrKind::function> {};
template <>
struct Codec<PartialShape> : PlainCodec<PartialShape, AttrKind::shape> {};
template <>
struct Codec<AnyTensor> : PlainCodec<AnyTensor, AttrKind::tensor> {};
template <>
struct Codec<std::vector<bool>> : PlainCodec<std::vector<bool>, AttrKind::boolean_list> {};
template <>
struct Codec<std::vector<std::int64_t>> : PlainCodec<std::vector<std::int64_t>, AttrKind::integer_list> {};
template <>
struct Codec<std::vector<double>> : PlainCodec<std::vector<double>, AttrKind::real_list> {};
template <>
struct Codec<std::vector<std::string>> : PlainCodec<std::vector<std::string>, AttrKind::string_list> {};
template <>
struct Codec<std::vector<DType>> : PlainCodec<std::vector<DType>, AttrKind::dtype_list> {};
template <>
struct Codec<std::vector<PartialShape>> : PlainCodec<std::vector<PartialShape>, AttrKind::shape_list> {};

template <class Attrs, std::size_t I>
using FieldType = std::remove_cvref_t<std::tuple_element_t<I, decltype(tie_fields(std::declval<Attrs&>()))>>;

template <class Attrs, std::size_t I>
AttrValue get_field(const void* attrs) {
  return Codec<FieldType<Attrs, I>>::get(std::get<I>(tie_fields(*static_cast<const Attrs*>(attrs))));
}

template <class Attrs, std::size_t I>
void set_field(void* attrs, const AttrValue& value) {
  using FieldCodec = Codec<FieldType<Attrs, I>>;
  const auto* stored = std::get_if<typename FieldCodec::stored>(&value);
  if (stored == nullptr) reject_attr(field_name<Attrs, I>, FieldCodec::kind, value);
  std::get<I>(tie_fields(*static_cast<Attrs*>(attrs))) = FieldCodec::set(field_name<Attrs, I>, *stored);
}

template <class Attrs, std::size_t... I>
constexpr std::array<AttrField, sizeof...(I)> make_fields(std::index_sequence<I...>) {
  return {
      AttrField{field_name<Attrs, I>, Codec<FieldType<Attrs, I>>::kind, &get_field<Attrs, I>, &set_field<Attrs, I>}...};
}

/// The fields of `Attrs` as erased accessors.
template <class Attrs>
inline constexpr auto fields_of = make_fields<Attrs>(std::make_index_sequence<num_fields<Attrs>>{});

template <class Attrs>
std::shared_ptr<void> make_default() {
  return std::make_shared<Attrs>();
}

}  // namespace dflow::reflect
