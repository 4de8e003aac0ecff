#pragma once

/// Public: the element types of tensors.

#include <dflow/base/status.hpp>
#include <dflow/base/type_list.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace dflow {

/// The element type of a tensor or edge at run time. The numbers are TensorFlow's and are written to files and sockets.
/// The quantised types are reserved: they have a name and a size but no C++ type yet.
enum class DType : std::uint8_t {
  invalid = 0,
  float32 = 1,
  float64 = 2,
  int32 = 3,
  uint8 = 4,
  int16 = 5,
  int8 = 6,
  string = 7,
  complex64 = 8,
  int64 = 9,
  boolean = 10,
  qint8 = 11,
  quint8 = 12,
  qint32 = 13,
  bfloat16 = 14,
  qint16 = 15,
  quint16 = 16,
  uint16 = 17,
  complex128 = 18,
  float16 = 19,
  resource = 20,  ///< a handle to state that outlives a step
  variant = 21,   ///< a value that is not an array of elements: a list of tensors
  uint32 = 22,
  uint64 = 23,
};

using FloatTypes = TypeList<float, double, Half, BFloat16>;
using IntTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                          std::uint32_t, std::uint64_t>;
using SignedIntTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
using RealTypes = concat_t<FloatTypes, IntTypes>;
using SignedRealTypes = concat_t<FloatTypes, SignedIntTypes>;
using ComplexTypes = TypeList<std::complex<float>, std::complex<double>>;
using NumberTypes = concat_t<RealTypes, ComplexTypes>;
/// Types whose tensors are plain bytes: numbers and bool.
using PlainTypes = concat_t<NumberTypes, TypeList<bool>>;
using AllTypes = concat_t<PlainTypes, TypeList<std::string>>;
using IndexTypes = TypeList<std::int32_t, std::int64_t>;

/// A C++ type that can be the element of a tensor.
template <class T>
concept Element = contains_v<T, AllTypes>;

template <class T>
inline constexpr bool is_floating_element = contains_v<T, FloatTypes>;
template <class T>
inline constexpr bool is_integer_element = contains_v<T, IntTypes>;
template <class T>
inline constexpr bool is_complex_element = contains_v<T, ComplexTypes>;

namespace detail {
inline constexpr std::array<DType, AllTypes::size> element_dtypes{
    DType::float32,   DType::float64,    DType::float16, DType::bfloat16, DType::int8,   DType::int16,
    DType::int32,     DType::int64,      DType::uint8,   DType::uint16,   DType::uint32, DType::uint64,
    DType::complex64, DType::complex128, DType::boolean, DType::string};
}  // namespace detail

/// The run-time number of an element type: `dtype_of<float> == DType::float32`.
template <Element T>
inline constexpr DType dtype_of = detail::element_dtypes[index_of_v<T, AllTypes>];

namespace detail {
template <class List>
struct DTypesOf;
template <class... Ts>
struct DTypesOf<TypeList<Ts...>> {
  static constexpr std::array<DType, sizeof...(Ts)> list{dtype_of<Ts>...};
  static constexpr std::uint32_t mask = ((std::uint32_t{1} << static_cast<unsigned>(dtype_of<Ts>)) | ... | 0u);
};
}  // namespace detail

/// The run-time numbers of a type list, in its order.
template <class List>
inline constexpr auto dtypes_of = detail::DTypesOf<List>::list;

/// A type list as a set: bit `n` stands for the element type with number `n`.
template <class List>
inline constexpr std::uint32_t dtype_mask = detail::DTypesOf<List>::mask;

/// In place of a type list: all types that an edge may have, including types without a C++ type.
struct EdgeTypes {};
template <>
inline constexpr std::uint32_t dtype_mask<EdgeTypes> =
    dtype_mask<AllTypes> | std::uint32_t{1} << static_cast<unsigned>(DType::resource) |
    std::uint32_t{1} << static_cast<unsigned>(DType::variant);

constexpr bool in_mask(DType dtype, std::uint32_t mask) noexcept {
  return (mask >> (static_cast<unsigned>(dtype) & 31u)) & 1u;
}

constexpr bool is_floating(DType dtype) noexcept { return in_mask(dtype, dtype_mask<FloatTypes>); }
constexpr bool is_integer(DType dtype) noexcept { return in_mask(dtype, dtype_mask<IntTypes>); }
constexpr bool is_signed_integer(DType dtype) noexcept { return in_mask(dtype, dtype_mask<SignedIntTypes>); }
constexpr bool is_unsigned_integer(DType dtype) noexcept { return is_integer(dtype) && !is_signed_integer(dtype); }
constexpr bool is_real(DType dtype) noexcept { return in_mask(dtype, dtype_mask<RealTypes>); }
constexpr bool is_complex(DType dtype) noexcept { return in_mask(dtype, dtype_mask<ComplexTypes>); }
constexpr bool is_number(DType dtype) noexcept { return in_mask(dtype, dtype_mask<NumberTypes>); }
/// True for the types that have a C++ type: users of the library can make tensors of them.
constexpr bool is_element(DType dtype) noexcept { return in_mask(dtype, dtype_mask<AllTypes>); }
/// True if a tensor's elements are plain bytes: numbers and bool, not strings and handles.
constexpr bool is_plain(DType dtype) noexcept { return in_mask(dtype, dtype_mask<PlainTypes>); }

/// True for handles: their values stay in the memory of the process that made them, and are neither fed nor fetched.
constexpr bool is_handle(DType dtype) noexcept { return dtype == DType::resource || dtype == DType::variant; }

namespace detail {
inline constexpr std::array<std::uint8_t, 32> dtype_sizes = [] {
  std::array<std::uint8_t, 32> sizes{};
  for_each_type<AllTypes>([&]<class T>() { sizes[static_cast<std::size_t>(dtype_of<T>)] = sizeof(T); });
  sizes[static_cast<std::size_t>(DType::qint8)] = sizes[static_cast<std::size_t>(DType::quint8)] = 1;
  sizes[static_cast<std::size_t>(DType::qint16)] = sizes[static_cast<std::size_t>(DType::quint16)] = 2;
  sizes[static_cast<std::size_t>(DType::qint32)] = 4;
  sizes[static_cast<std::size_t>(DType::resource)] = sizes[static_cast<std::size_t>(DType::variant)] =
      2 * sizeof(void*);
  return sizes;
}();
[[noreturn]] void throw_not_in_list(DType dtype, const DType* allowed, std::size_t count);
}  // namespace detail

/// Bytes of one element in memory: sizeof(std::string) for strings, the size of a shared_ptr for resource handles and
/// variants, 0 for a number that stands for no type.
constexpr std::size_t size_of(DType dtype) noexcept {
  return detail::dtype_sizes[static_cast<std::size_t>(dtype) & 31u];
}

/// TensorFlow's name: "float", "double", "half", "bfloat16", "int32", "bool", "string", "complex64", "resource",
/// "variant"; "invalid" for a number that stands for no type.
std::string_view dtype_name(DType dtype) noexcept;
/// Prints `dtype_name(dtype)`.
std::ostream& operator<<(std::ostream& out, DType dtype);

/// The type with that name, or nothing.
std::optional<DType> parse_dtype(std::string_view text) noexcept;

/// The type with that number, or nothing for a number that stands for no type.
std::optional<DType> dtype_from_number(std::uint64_t number) noexcept;

/// "{float, double}", for error messages.
std::string mask_to_string(std::uint32_t mask);

/// Calls `f.template operator()<T>()` for the T of `List` that `dtype` stands for and returns its result by value.
/// Errors: InvalidArgument that names the type and the list, if T is not in it.
template <class List, class F>
constexpr auto visit_dtype(DType dtype, F&& f) {
  using Result = std::decay_t<decltype(f.template operator()<element_t<0, List>>())>;
  return [&]<class... Ts>(TypeList<Ts...>) -> Result {
    if constexpr (std::is_void_v<Result>) {
      if (!((dtype == dtype_of<Ts> && (f.template operator()<Ts>(), true)) || ...)) {
        detail::throw_not_in_list(dtype, dtypes_of<List>.data(), sizeof...(Ts));
      }
    } else {
      std::optional<Result> result;
      if (!((dtype == dtype_of<Ts> && (result.emplace(f.template operator()<Ts>()), true)) || ...)) {
        detail::throw_not_in_list(dtype, dtypes_of<List>.data(), sizeof...(Ts));
      }
      return *std::move(result);
    }
  }(List{});
}

}  // namespace dflow
