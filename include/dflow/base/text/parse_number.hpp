#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>
#include <string_view>

namespace dflow {

/// Reads the number that a text spells, whole: spaces around it and a sign in front count for nothing. A float may be
/// hexadecimal ("0x1p3"), "inf", "infinity" or "nan", in any case. A float that is too large is infinite, a float that
/// is too small is 0. An integer is decimal. The locale plays no part. The rules are the same as in TensorFlow's
/// StringToNumber.
///
/// Returns false, and leaves `value` alone, if the text is not a number, or an integer is out of range.
[[nodiscard]] bool parse_number(std::string_view text, float& value) noexcept;
[[nodiscard]] bool parse_number(std::string_view text, double& value) noexcept;
[[nodiscard]] bool parse_number(std::string_view text, std::int32_t& value) noexcept;
[[nodiscard]] bool parse_number(std::string_view text, std::int64_t& value) noexcept;

}  // namespace dflow
