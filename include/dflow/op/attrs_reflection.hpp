#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/shape.hpp>
#include <dflow/graph/attr_value.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
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

/// The number of fields of an aggregate.
template <class T>
constexpr std::size_t field_count() {
  constexpr AnyField any{};
  if constexpr (!requires { T{any}; }) {
    return 0;
  } else if constexpr (!requires { T{any, any}; }) {
    return 1;
  } else if constexpr (!requires { T{any, any, any}; }) {
    return 2;
  } else if constexpr (!requires { T{any, any, any, any}; }) {
    return 3;
  } else if constexpr (!requires { T{any, any, any, any, any}; }) {
    return 4;
  } else if constexpr (!requires { T{any, any, any, any, any, any}; }) {
    return 5;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any}; }) {
    return 6;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any, any}; }) {
    return 7;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any, any, any}; }) {
    return 8;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any, any, any, any}; }) {
    return 9;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any, any, any, any, any}; }) {
    return 10;
  } else if constexpr (!requires { T{any, any, any, any, any, any, any, any, any, any, any, any}; }) {
    return 11;
  } else {
    static_assert(
        !requires { T{any, any, any, any, any, any, any, any, any, any, any, any, any}; },
        "an op's Attrs struct may have at most 12 fields");
    return 12;
  }
}

template <class T>
inline constexpr std::size_t num_fields = field_count<std::remove_const_t<T>>();

/// Calls `visitor` with all fields of an aggregate, in order.
template <class T, class Visitor>
constexpr auto visit_fields(T& object, const Visitor& visitor) {
  constexpr std::size_t n = num_fields<T>;
  if constexpr (n == 0) {
    return visitor();
  } else if constexpr (n == 1) {
    auto& [a] = object;
    return visitor(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = object;
    return visitor(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = object;
    return visitor(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = object;
    return visitor(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = object;
    return visitor(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = object;
    return visitor(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    return visitor(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    return visitor(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    return visitor(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    return visitor(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    return visitor(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    return visitor(a, b, c, d, e, f, g, h, i, j, k, l);
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

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#endif

#if defined(__CUDACC__)
/// nvcc does not take a pointer to a field as a template argument; device code has no use for names.
template <class T>
consteval std::array<std::string_view, num_fields<T>> names_of_fields() {
  static_assert(sizeof(T) == 0, "the definition of an op is asked for in a unit that nvcc compiles");
  return {};
}
#else
template <FieldPointer field>
inline constexpr std::string_view name_of = last_identifier(pretty_name<field>());

template <class T>
consteval std::array<std::string_view, num_fields<T>> names_of_fields() {
  constexpr std::size_t n = num_fields<T>;
  if constexpr (n == 0) {
    return {};
  } else if constexpr (n == 1) {
    auto& [a] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>};
  } else if constexpr (n == 2) {
    auto& [a, b] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>};
  } else if constexpr (n == 3) {
    auto& [a, b, c] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>};
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>};
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>};
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>,
            name_of<FieldPointer{&d}>, name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>};
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>, name_of<FieldPointer{&g}>};
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>, name_of<FieldPointer{&g}>, name_of<FieldPointer{&h}>};
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>,
            name_of<FieldPointer{&d}>, name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>,
            name_of<FieldPointer{&g}>, name_of<FieldPointer{&h}>, name_of<FieldPointer{&i}>};
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>, name_of<FieldPointer{&g}>, name_of<FieldPointer{&h}>,
            name_of<FieldPointer{&i}>, name_of<FieldPointer{&j}>};
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>, name_of<FieldPointer{&g}>, name_of<FieldPointer{&h}>,
            name_of<FieldPointer{&i}>, name_of<FieldPointer{&j}>, name_of<FieldPointer{&k}>};
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = Specimen<T>::object.value;
    return {name_of<FieldPointer{&a}>, name_of<FieldPointer{&b}>, name_of<FieldPointer{&c}>, name_of<FieldPointer{&d}>,
            name_of<FieldPointer{&e}>, name_of<FieldPointer{&f}>, name_of<FieldPointer{&g}>, name_of<FieldPointer{&h}>,
            name_of<FieldPointer{&i}>, name_of<FieldPointer{&j}>, name_of<FieldPointer{&k}>, name_of<FieldPointer{&l}>};
  }
}
#endif

template <class T, std::size_t I>
inline constexpr std::string_view field_name = names_of_fields<T>()[I];

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

template <class F>
AttrValue read_field(const void* field) {
  return Codec<F>::get(*static_cast<const F*>(field));
}

template <class F>
void write_field(void* field, std::string_view name, const AttrValue& value) {
  const auto* stored = std::get_if<typename Codec<F>::stored>(&value);
  if (stored == nullptr) reject_attr(name, Codec<F>::kind, value);
  *static_cast<F*>(field) = Codec<F>::set(name, *stored);
}

/// Visits fields: where the one with that number lies.
struct AddressOfField {
  std::size_t number;

  template <class... Fs>
  const void* operator()(const Fs&... fields) const noexcept {
    const void* const addresses[]{&fields...};
    return addresses[number];
  }
};

template <class Attrs>
const void* field_address(const void* attrs, std::size_t number) noexcept {
  return visit_fields(*static_cast<const Attrs*>(attrs), AddressOfField{number});
}

/// Visits fields: their erased accessors.
struct DescribeFields {
  const std::string_view* names;
  const void* (*address)(const void* attrs, std::size_t number) noexcept;

  template <class F>
  constexpr AttrField field(std::uint8_t number) const {
    return {names[number], Codec<F>::kind, number, address, &read_field<F>, &write_field<F>};
  }
  template <class... Fs>
  constexpr std::array<AttrField, sizeof...(Fs)> operator()(const Fs&...) const {
    [[maybe_unused]] std::uint8_t next = 0;
    return {field<Fs>(next++)...};
  }
};

template <class Attrs>
consteval std::array<AttrField, num_fields<Attrs>> describe_fields() {
  constexpr auto names = names_of_fields<Attrs>();
  return visit_fields(Specimen<Attrs>::object.value, DescribeFields{names.data(), &field_address<Attrs>});
}
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// The fields of `Attrs` as erased accessors.
template <class Attrs>
inline constexpr auto fields_of = describe_fields<Attrs>();

/// A shared object in one allocation with its count. `construct` makes it from what `from` points to; `destroy` ends
/// it, and is null where there is nothing to do.
std::shared_ptr<void> make_shared_object(std::size_t bytes, void (*construct)(void* object, void* from), void* from,
                                         void (*destroy)(void* object) noexcept);

template <class Attrs>
constexpr auto destroyer_of() -> void (*)(void*) noexcept {
  static_assert(alignof(Attrs) <= alignof(std::max_align_t), "an op's Attrs struct has no larger alignment than usual");
  if constexpr (std::is_trivially_destructible_v<Attrs>) {
    return nullptr;
  } else {
    return [](void* object) noexcept { static_cast<Attrs*>(object)->~Attrs(); };
  }
}

/// Moves `attrs` into an object that nodes share.
template <class Attrs>
  requires(!std::is_reference_v<Attrs>)
std::shared_ptr<void> share(Attrs&& attrs) {
  const auto construct = [](void* object, void* from) { ::new (object) Attrs(std::move(*static_cast<Attrs*>(from))); };
  return make_shared_object(sizeof(Attrs), construct, &attrs, destroyer_of<Attrs>());
}

template <class Attrs>
std::shared_ptr<void> make_default() {
  const auto construct = [](void* object, void*) { ::new (object) Attrs(); };
  return make_shared_object(sizeof(Attrs), construct, nullptr, destroyer_of<Attrs>());
}

}  // namespace dflow::reflect
