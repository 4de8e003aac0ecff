#pragma once

#include <dflow/ops/strings/string_op.hpp>

#include <string>

namespace dflow {

/// The number that each text spells, elementwise.
struct StringToNumber : TextOp<"StringToNumber", TypeList<float, double, std::int32_t, std::int64_t>> {
  using Inputs = In<std::string>;
  using Outputs = Out<T>;
  static constexpr std::array<std::string_view, 1> type_names{"out_type"};
  static void infer(InferContext& context);
};

/// Writes each element as text, elementwise, as C's printf does.
struct AsString : TextOp<"AsString", AllTypes> {
  struct Attrs {
    std::int64_t precision = -1;  ///< digits behind the point, with `shortest` all of them; -1: 6
    bool scientific = false;      ///< "1.5e+00"
    bool shortest = false;        ///< without zeros at the end, in the shorter of the two forms
    std::int64_t width = -1;      ///< the least number of bytes, filled up in front
    std::string fill = {};        ///< a flag of printf: '0', '-', '+', ' ' or '#'
  };
  using Inputs = In<T>;
  using Outputs = Out<std::string>;
  static constexpr std::int64_t max_width = 1 << 16;
  static void infer(InferContext& context);
};

/// texts [d0, ..., dn] as numbers of type T (float, double, int32, int64). `parse_number` says which texts are numbers.
///
/// ```cpp
/// auto prices = df::string_to_number<float>(texts);
/// ```
/// Errors: InvalidArgument in the step for a text that is no number, or an integer out of range. The message names the
/// text.
template <AllowedFor<StringToNumber> T = float>
Output<T> string_to_number(const Output<std::string>& texts, const At& at = {}) {
  return Output<T>::unchecked(build<StringToNumber>({texts}, {}, at, type_args<T>()));
}

/// x [d0, ..., dn] as texts: integers decimal, floats with 6 digits behind the point, "true" and "false", complex
/// numbers in parentheses. A string stays as it is. With a width, a string is written as printf's %s does: a precision
/// limits its number of bytes.
///
/// Errors: InvalidArgument for a precision or a form that the element type does not have, and for both forms at once.
/// Also for a width or precision above 65536, and for a `fill` that is no flag.
template <AllowedFor<AsString> T>
Output<std::string> as_string(const Output<T>& x, AsString::Attrs attrs = {}, const At& at = {}) {
  return Output<std::string>::unchecked(build<AsString>({x}, std::move(attrs), at));
}

}  // namespace dflow
