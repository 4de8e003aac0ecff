#pragma once

#include <dflow/base/plain_nan.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/kernels/cpu/control/print.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace dflow {

namespace detail {

/// Writes as many digits as every number of type T can keep; more only if they are needed to read the same number
/// back.
template <class T>
std::string summarized_float(T value) {
  for (const int digits : {std::numeric_limits<T>::digits10, std::numeric_limits<T>::max_digits10}) {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, plain_nan(value), std::chars_format::general, digits).ptr;
    const std::string_view written(text, static_cast<std::size_t>(end - text));
    T read = 0;
    const bool is_exact = parse_number(written, read) && read == value;
    if (is_exact || digits == std::numeric_limits<T>::max_digits10) return std::string(written);
  }
  return {};
}

/// C's escapes for unprintable characters; bytes of characters of more than one byte stay.
std::string escaped(std::string_view text) {
  constexpr std::string_view marked = "\n\r\t\"'\\", marks = "nrt\"'\\";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t which = marked.find(c); which != marked.npos) {
      result += '\\';
      result += marks[which];
    } else if (byte < 0x20 || byte == 0x7f) {
      result += '\\';
      for (const int shift : {6, 3, 0}) result += static_cast<char>('0' + (byte >> shift & 7));
    } else {
      result += c;
    }
  }
  return result;
}

template <class T>
std::string summarized_element(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return escaped(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (is_complex_element<T>) {
    return str_cat("(", summarized_float(value.real()), ",", summarized_float(value.imag()), ")");
  } else if constexpr (std::is_same_v<T, double>) {
    return summarized_float(value);
  } else if constexpr (is_floating_element<T>) {
    return summarized_float(static_cast<float>(value));
  } else {
    return str_cat(value);
  }
}

/// Writes the rows of a dimension and of the dimensions after it, up to a number of elements.
template <class T>
class RowSummary {
 public:
  RowSummary(const Shape& shape, std::span<const T> values) : shape_(shape), values_(values) {}

  void add(int dimension) {
    if (next_ >= values_.size()) return;
    const bool is_last = dimension == shape_.rank() - 1;
    for (std::int64_t i = 0; i < shape_[dimension]; ++i) {
      if (next_ >= values_.size()) {
        if (is_last && dimension != 0) text_ += "...";
        return;
      }
      if (!is_last) {
        text_ += '[';
        add(dimension + 1);
        text_ += ']';
      } else {
        text_ += i > 0 ? " " : "";
        text_ += summarized_element(values_[next_++]);
      }
    }
  }
  std::string& text() noexcept { return text_; }

 private:
  const Shape& shape_;
  std::span<const T> values_;  ///< the written values
  std::size_t next_ = 0;
  std::string text_;
};

std::string summarized(const AnyTensor& tensor, std::int64_t max_elements) {
  const std::int64_t all = tensor.num_elements(), shown = max_elements < 0 ? all : std::min(max_elements, all);
  return visit_dtype<AllTypes>(tensor.dtype(), [&]<class T>() {
    const std::span<const T> values = tensor.span<T>().first(static_cast<std::size_t>(shown));
    RowSummary<T> rows(tensor.shape(), values);
    if (tensor.rank() > 0) {
      rows.add(0);
    } else if (!values.empty()) {
      rows.text() = summarized_element(values[0]);
    }
    if (shown < all) rows.text() += "...";
    return std::move(rows.text());
  });
}

void PrintKernel::operator()(KernelContext& context) const {
  if (attrs_.first_n < 0 || lines_.load(std::memory_order_relaxed) < attrs_.first_n) {
    NoWaiting::check();  // whoever reads standard error may have stopped
    if (attrs_.first_n < 0 || lines_.fetch_add(1, std::memory_order_relaxed) < attrs_.first_n) write(context);
  }
  context.set_output(0, context.input(0));
}

void PrintKernel::write(const KernelContext& context) const {
  std::string line = attrs_.message;
  for (int i = 1; i < context.num_inputs(); ++i) {
    if (!is_element(context.input(i).dtype())) context.fail(str_cat("input ", i, " is no tensor that can be written"));
    line += str_cat("[", summarized(context.input(i), attrs_.summarize), "]");
  }
  line += '\n';
  // One call, so that lines are not mixed.
  static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
}

}  // namespace detail

}  // namespace dflow
