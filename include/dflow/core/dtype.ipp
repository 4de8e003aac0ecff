#pragma once

#include <dflow/core/dtype.hpp>

#include <ostream>

namespace dflow {

namespace detail {
// Indexed by number; TensorFlow's names.
inline constexpr std::array<std::string_view, 24> dtype_names{
    "",          "float",  "double",     "int32", "uint8",    "int16",   "int8",     "string",
    "complex64", "int64",  "bool",       "qint8", "quint8",   "qint32",  "bfloat16", "qint16",
    "quint16",   "uint16", "complex128", "half",  "resource", "variant", "uint32",   "uint64"};
}  // namespace detail

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

std::string_view dtype_name(DType dtype) noexcept {
  const auto number = static_cast<std::size_t>(dtype);
  if (number >= detail::dtype_names.size() || detail::dtype_names[number].empty()) return "invalid";
  return detail::dtype_names[number];
}

std::optional<DType> parse_dtype(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  for (std::size_t number = 0; number < detail::dtype_names.size(); ++number) {
    if (detail::dtype_names[number] == text) return static_cast<DType>(number);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_number(std::uint64_t number) noexcept {
  if (number >= detail::dtype_names.size() || detail::dtype_names[static_cast<std::size_t>(number)].empty())
    return std::nullopt;
  return static_cast<DType>(number);
}

std::string mask_to_string(std::uint32_t mask) {
  std::string text = "{";
  for (std::size_t number = 0; number < detail::dtype_names.size(); ++number) {
    if (!in_mask(static_cast<DType>(number), mask)) continue;
    if (text.size() > 1) text += ", ";
    text += dtype_name(static_cast<DType>(number));
  }
  return text += "}";
}

void detail::throw_not_in_list(DType dtype, const DType* allowed, std::size_t count) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) list += str_cat(i == 0 ? "" : ", ", dtype_name(allowed[i]));
  throw_error(Status::invalid_argument(str_cat("element type ", dtype_name(dtype), " is not one of {", list, "}")));
}

}  // namespace dflow
