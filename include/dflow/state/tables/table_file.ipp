#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/records/line_file.hpp>
#include <dflow/state/tables/table_file.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dflow {

namespace detail {

/// Elements of a type that is known at run time, as they come.
///
/// Thread safety: used by one thread.
class TableColumn {
 public:
  /// Errors: InvalidArgument for a type that the file's column does not give.
  TableColumn(std::int64_t index, DType dtype) : index_(index) {
    using Format = TableFileFormat;
    const bool fits = index == Format::whole_line    ? dtype == DType::string
                      : index == Format::line_number ? dtype == DType::int64
                                                     : index >= 0;
    if (!fits || !start(dtype, TypeList<std::int32_t, std::int64_t, float, double, std::string>{})) {
      throw_error(Status::invalid_argument(str_cat("column ", index, " of a file gives no ", dtype_name(dtype))));
    }
  }

  /// The part of the line that is no element; nothing if all is well.
  std::optional<std::string> add(std::string_view line, std::int64_t number, const TableFileFormat& format) {
    if (index_ == TableFileFormat::line_number) {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(number, format.offset, &sum)) return "its number is too large";
      std::get<std::vector<std::int64_t>>(elements_).push_back(sum);
      return std::nullopt;
    }
    std::string_view text = line;
    for (std::int64_t i = 0; i < index_; ++i) {
      const std::size_t end = text.find(format.delimiter);
      if (end == std::string_view::npos) return str_cat("it has ", i + 1, " columns, wanted column ", index_);
      text.remove_prefix(end + 1);
    }
    if (index_ >= 0) text = text.substr(0, text.find(format.delimiter));
    return std::visit([&](auto& elements) { return add_text(elements, text); }, elements_);
  }
  AnyTensor tensor() && {
    return std::visit(
        [](auto& elements) {
          using T = typename std::remove_cvref_t<decltype(elements)>::value_type;
          Tensor<T> tensor(Shape{static_cast<std::int64_t>(elements.size())});
          std::move(elements.begin(), elements.end(), tensor.data());
          return AnyTensor(tensor);
        },
        elements_);
  }

 private:
  template <class... Ts>
  bool start(DType dtype, TypeList<Ts...>) {
    return ((dtype == dtype_of<Ts> && (elements_.emplace<std::vector<Ts>>(), true)) || ...);
  }
  static std::optional<std::string> add_text(std::vector<std::string>& elements, std::string_view text) {
    elements.emplace_back(text);
    return std::nullopt;
  }
  template <class T>
  static std::optional<std::string> add_text(std::vector<T>& elements, std::string_view text) {
    T number = 0;
    if (!parse_number(text, number)) {
      constexpr std::size_t shown = 40;
      return str_cat("'", printable(text, shown), "' is no ", dtype_name(dtype_of<T>));
    }
    elements.push_back(number);
    return std::nullopt;
  }

  const std::int64_t index_;
  std::variant<std::vector<std::int32_t>, std::vector<std::int64_t>, std::vector<float>, std::vector<double>,
               std::vector<std::string>>
      elements_;
};

}  // namespace detail

TableEntries read_table_file(FileSystem& files, const std::string& path, const TableFileFormat& format, DType key,
                             DType value) {
  detail::TableColumn keys(format.key_index, key), values(format.value_index, value);
  LineReader lines(files, path);
  std::string_view line;
  std::int64_t count = 0;
  for (; count != format.max_lines && lines.next(line); ++count) {
    std::optional<std::string> wrong;
    if (line.empty()) wrong = "it is empty";
    if (!wrong) wrong = keys.add(line, count, format);
    if (!wrong) wrong = values.add(line, count, format);
    if (wrong) throw_error(Status::invalid_argument(str_cat(path, ", line ", count + 1, ": ", *wrong)));
  }
  if (format.max_lines >= 0 && count < format.max_lines) {
    throw_error(Status::invalid_argument(str_cat(path, " has ", count, " lines, wanted ", format.max_lines)));
  }
  if (count == 0) throw_error(Status::out_of_range(str_cat(path, " has no lines")));
  return {std::move(keys).tensor(), std::move(values).tensor()};
}

}  // namespace dflow
