#pragma once

#include <dflow/base/plain_nan.hpp>
#include <dflow/kernels/cpu/strings/string_number.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdlib>
#include <string_view>
#include <type_traits>

namespace dflow {

namespace detail {

void fail_number(const KernelContext& context, const Tensor<std::string>& texts, std::int64_t i) {
  context.fail(str_cat("could not convert string", index_to_string(i, texts.shape()), " = ",
                       quoted_start(texts.data()[i]), " to ", dtype_name(context.node().types[0])));
}

/// Writes numbers as C's printf does, in any locale, but NaN without a sign.
class NumberWriter {
 public:
  explicit NumberWriter(const AsString::Attrs& attrs)
      : attrs_(attrs),
        flag_(attrs.fill.empty() ? '\0' : attrs.fill[0]),
        width_(static_cast<std::size_t>(std::max<std::int64_t>(attrs.width, 0))),
        precision_(attrs.precision < 0 ? 6 : static_cast<int>(attrs.precision)) {}

  template <std::integral I>
  std::string written(I value) const {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const std::string_view text(digits, static_cast<std::size_t>(end - digits));
    const bool is_negative = text.starts_with('-');
    return padded(is_negative, std::is_signed_v<I>, text.substr(is_negative ? 1 : 0), true);
  }

  std::string written(double value) const {
    const bool is_negative = std::signbit(plain_nan(value));
    if (std::isnan(value)) return padded(is_negative, true, "nan", false);
    if (std::isinf(value)) return padded(is_negative, true, "inf", false);
    std::string digits = attrs_.shortest     ? general(std::fabs(value))
                         : attrs_.scientific ? formatted(std::fabs(value), std::chars_format::scientific, precision_)
                                             : formatted(std::fabs(value), std::chars_format::fixed, precision_);
    if (flag_ == '#' && digits.find('.') == digits.npos) {
      digits.insert(std::min(digits.find('e'), digits.size()), 1, '.');
    }
    return padded(is_negative, true, digits, true);
  }

  /// As it is or, where there is a width, as %s has it.
  std::string written(const std::string& text) const {
    if (width_ == 0) return text;
    const std::string part = attrs_.precision < 0 ? text : text.substr(0, static_cast<std::size_t>(attrs_.precision));
    const std::string spaces(width_ - std::min(width_, part.size()), ' ');
    return flag_ == '-' ? part + spaces : spaces + part;
  }

 private:
  static std::string formatted(double value, std::chars_format format, int precision) {
    // The integer part has at most 309 digits.
    std::string text(static_cast<std::size_t>(precision) + 320, '\0');
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, precision).ptr;
    text.resize(static_cast<std::size_t>(end - text.data()));
    return text;
  }

  /// %g, and with the flag '#' its form that keeps the zeros.
  std::string general(double value) const {
    if (flag_ != '#') return formatted(value, std::chars_format::general, precision_);
    const int digits = std::max(precision_, 1);
    std::string scientific = formatted(value, std::chars_format::scientific, digits - 1);
    const int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
    if (exponent < -4 || exponent >= digits) return scientific;
    return formatted(value, std::chars_format::fixed, digits - 1 - exponent);
  }

  std::string padded(bool is_negative, bool is_signed, std::string_view digits, bool may_have_zeros) const {
    std::string text;
    if (is_negative) {
      text = "-";
    } else if (is_signed && (flag_ == '+' || flag_ == ' ')) {
      text = flag_;
    }
    const std::size_t size = text.size() + digits.size(), missing = width_ - std::min(width_, size);
    if (flag_ == '0' && may_have_zeros) {
      text.append(missing, '0');
    } else if (flag_ != '-') {
      text.insert(0, missing, ' ');
    }
    text += digits;
    if (flag_ == '-') text.append(missing, ' ');
    return text;
  }

  const AsString::Attrs& attrs_;
  const char flag_;
  const std::size_t width_;
  const int precision_;
};

template <class T>
std::string text_of(const NumberWriter& writer, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (is_complex_element<T>) {
    return str_cat("(", writer.written(static_cast<double>(value.real())), ",",
                   writer.written(static_cast<double>(value.imag())), ")");
  } else if constexpr (is_floating_element<T>) {
    return writer.written(static_cast<double>(value));
  } else {
    return writer.written(value);
  }
}

void AsStringKernel::operator()(KernelContext& context) const {
  const AnyTensor& x = context.input(0);
  Tensor<std::string>& texts = context.allocate_output<std::string>(0, x.shape());
  const NumberWriter writer(attrs);
  visit_dtype<AllTypes>(x.dtype(), [&]<class T>() {
    const std::span<const T> values = x.span<T>();
    each_text(context, x.num_elements(),
              [&](std::int64_t i) { texts.data()[i] = text_of(writer, values[static_cast<std::size_t>(i)]); });
  });
}

}  // namespace detail

}  // namespace dflow
