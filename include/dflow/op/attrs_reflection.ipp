#pragma once

#include <dflow/op/attrs_reflection.hpp>

namespace dflow::reflect {

void reject_attr(std::string_view field, AttrKind want, const AttrValue& got) {
  throw_error(invalid_argument(
      str_cat("attribute '", field, "' must be ", attr_kind_name(want), ", got ", attr_kind_name(kind_of(got)))));
}

void reject_attr_range(std::string_view field, std::int64_t value) {
  throw_error(invalid_argument(str_cat("attribute '", field, "' cannot hold ", value)));
}

void reject_attr_range(std::string_view field, double value) {
  throw_error(invalid_argument(str_cat("attribute '", field, "' cannot hold ", value)));
}

std::int64_t enum_from_name(std::string_view field, std::span<const std::string_view> names, std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<std::int64_t>(i);
    known += str_cat(i == 0 ? "" : ", ", names[i]);
  }
  throw_error(invalid_argument(str_cat("attribute '", field, "' is '", name, "', which is none of ", known)));
}

}  // namespace dflow::reflect
